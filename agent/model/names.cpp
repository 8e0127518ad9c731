#include "agent/model/health.h"
#include "agent/model/host_scan.h"
#include "agent/model/usage.h"

namespace neuron::model {
namespace {

constexpr std::array<std::string_view, kHostMemoryKinds> kHostKindNames{
    "dma_buffers",   "tensors",       "constants", "application_memory",
    "driver_memory", "notifications", "dma_rings", "uncategorized"};

constexpr std::array<std::string_view, kDeviceMemoryKinds> kDeviceKindNames{
    "model_code",     "tensors",       "constants",    "model_shared_scratchpad",
    "runtime_memory", "driver_memory", "collectives",  "nonshared_scratchpad",
    "notifications",  "dma_rings",     "uncategorized"};

constexpr std::array<std::string_view, kExecutionStatuses> kExecutionNames{"success",
                                                                           "timeout",
                                                                           "exec_bad_input",
                                                                           "execute_completed_with_error",
                                                                           "execute_completed_with_num_error",
                                                                           "execute_failed_to_queue",
                                                                           "generic_error",
                                                                           "hw_collectives_error"};

}  // namespace

std::string_view to_string(HostMemoryKind kind) {
  return kHostKindNames.at(static_cast<std::size_t>(kind));
}

std::string_view to_string(DeviceMemoryKind kind) {
  return kDeviceKindNames.at(static_cast<std::size_t>(kind));
}

std::string_view to_string(ExecutionStatus status) {
  return kExecutionNames.at(static_cast<std::size_t>(status));
}

std::string_view to_string(DriverLayout layout) {
  switch (layout) {
    case DriverLayout::none:
      return "none";
    case DriverLayout::bare:
      return "bare";
    case DriverLayout::stats:
      return "stats";
    case DriverLayout::health_v1:
      return "health_v1";
    case DriverLayout::health_v2:
      return "health_v2";
    case DriverLayout::unknown:
      return "unknown";
  }
  return "unknown";
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

std::string_view to_string(KernelLogState state) {
  switch (state) {
    case KernelLogState::off:
      return "off";
    case KernelLogState::reading:
      return "reading";
    case KernelLogState::denied:
      return "denied";
    case KernelLogState::broken:
      return "broken";
  }
  return "off";
}

std::string_view to_string(HealthState state) {
  switch (state) {
    case HealthState::healthy:
      return "healthy";
    case HealthState::degraded:
      return "degraded";
    case HealthState::unhealthy:
      return "unhealthy";
    case HealthState::unknown:
      return "unknown";
  }
  return "unknown";
}

}  // namespace neuron::model
