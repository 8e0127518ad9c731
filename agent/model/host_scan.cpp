#include "agent/model/host_scan.h"

#include <array>

namespace neuron::model {

std::string_view to_string(DriverLayout layout) {
  constexpr std::array<std::string_view, 6> kNames = {"none", "bare", "stats", "health_v1", "health_v2", "unknown"};
  return kNames.at(static_cast<std::size_t>(layout));
}

std::string_view to_string(KernelLogState state) {
  constexpr std::array<std::string_view, 4> kNames = {"off", "reading", "denied", "broken"};
  return kNames.at(static_cast<std::size_t>(state));
}

std::string to_string(const ScanPart& part) {
  const std::string number = std::to_string(part.index);
  switch (part.kind) {
    case ScanPart::Kind::host:
      return "reading DMI, sys/module, proc, the LNC file and the kernel log";
    case ScanPart::Kind::pci:
      return "reading sys/bus/pci/devices";
    case ScanPart::Kind::topology:
      return "reading the topology with hwloc";
    case ScanPart::Kind::devices:
      return "listing sys/class/neuron_device";
    case ScanPart::Kind::device:
      return "reading sys/class/neuron_device/neuron" + number;
    case ScanPart::Kind::memory:
      return "reading the memory in use below sys/class/neuron_device/neuron" + number;
    case ScanPart::Kind::driver:
      return "asking the driver and PCI about neuron" + number;
    case ScanPart::Kind::efa_classes:
      return "listing sys/class/infiniband and infiniband_verbs";
    case ScanPart::Kind::verbs:
      return "reading sys/class/infiniband_verbs/uverbs" + number;
    case ScanPart::Kind::efa:
      return "reading sys/bus/pci/devices/" + to_string(part.bdf);
  }
  return "reading the machine";
}

}  // namespace neuron::model
