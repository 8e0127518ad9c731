#include "tools/neuron-ls/node_reader.h"

#include <algorithm>

#include "agent/base/parse.h"
#include "agent/core/catalogue.h"
#include "tools/render/text.h"

namespace neuron::ls {
namespace {

std::string path_in(const std::string& root, const std::string& path) {
  return root.ends_with('/') ? root + path : root + '/' + path;
}

Absence without_device_nodes(const model::HostScan& scan, const std::string& root) {
  return {
      "the Neuron driver shows " + render::counted(scan.devices.size(), "device") + ", but there is no device node " +
          path_in(root, "dev/neuron*"),
      "in a container: request aws.amazon.com/neuron (Kubernetes) or pass --device /dev/neuron0 (docker); on a host: "
      "check the udev rules of package aws-neuronx-dkms"};
}

Absence without_driver(const model::HostScan& scan, const std::string& root) {
  return {render::counted(static_cast<std::size_t>(scan.neuron_pci_functions), "Neuron PCI function") +
              " found, but the kernel driver is not loaded: there is no " + path_in(root, "sys/class/neuron_device"),
          "run: modprobe neuron; if there is no such module, install package aws-neuronx-dkms"};
}

Absence without_registered_device(const model::HostScan& scan, const std::string& root) {
  const std::string version = scan.driver_version.empty() ? "" : ' ' + printable(scan.driver_version);
  return {
      "the Neuron driver" + version + " is loaded, but shows no device in " + path_in(root, "sys/class/neuron_device"),
      "look for errors in: dmesg | grep -i neuron (Inf1 needs driver 2.24 or older)"};
}

Absence without_hardware(const model::HostScan& scan, const std::string& root) {
  const auto* type = core::find_instance_type(scan.instance_type);
  const std::string pci = path_in(root, "sys/bus/pci/devices");
  if (type != nullptr && type->device_count > 0) {
    return {"an instance of type " + type->name + " has " +
                render::counted(static_cast<std::size_t>(type->device_count), "Neuron device") + ", but none is in " +
                pci + " and no driver is loaded",
            "mount /sys of the host here; if it is mounted, stop and start the instance"};
  }
  const std::string where = scan.instance_type.empty() ? "" : " (instance type " + printable(scan.instance_type) + ")";
  return {"this machine has no Neuron device" + where + ": none in " + pci + " and no driver is loaded",
          "run it on an Inf or Trn instance; for a captured or simulated machine set --root to its directory"};
}

Absence without_class_rights(const std::string& root) {
  return {"this user cannot read " + path_in(root, "sys/class/neuron_device"),
          "run it as root, or mount the host's /sys into the container"};
}

Absence without_class_list(const model::HostScan& scan, const std::string& root) {
  const auto problem = std::ranges::find_if(
      scan.problems, [](const model::ReadProblem& one) { return one.path == "sys/class/neuron_device"; });
  const std::string why = problem == scan.problems.end() ? "" : ": " + describe_problem(*problem);
  return {path_in(root, "sys/class/neuron_device") + " cannot be read" + why,
          "try again; if it stays, look at the kernel log"};
}

Absence without_file_rights(const model::HostScan& scan, const std::string& root) {
  const std::string version = scan.driver_version.empty() ? "this driver" : "driver " + printable(scan.driver_version);
  return {version + " shows cores and connections of the devices in " + path_in(root, "sys/class/neuron_device") +
              " only to root",
          "run it as root (required by drivers up to 2.27), or install driver 2.28 or newer"};
}

// Cores or neighbours of a device are neither in its files nor in the tables of the instance type.
bool lacks_facts(const model::HostScan& scan) {
  return std::ranges::any_of(
      scan.devices, [](const model::NeuronDevice& device) { return !device.physical_cores || !device.neighbours; });
}

}  // namespace

std::optional<Absence> explain_absence(const model::HostScan& scan, const std::string& root, const Refusals& refusals) {
  const auto has_node = [](const model::NeuronDevice& device) { return device.node_present; };
  if (std::ranges::any_of(scan.devices, has_node)) {
    if (refusals.root_only_files && lacks_facts(scan)) return without_file_rights(scan, root);
    return std::nullopt;
  }
  if (refusals.class_directory) return without_class_rights(root);
  if (!scan.devices.empty()) return without_device_nodes(scan, root);
  if (is_unread_list(scan, model::ScanPart::Kind::devices)) return without_class_list(scan, root);
  if (scan.layout != model::DriverLayout::none || !scan.driver_version.empty()) {
    return without_registered_device(scan, root);
  }
  if (scan.neuron_pci_functions > 0) return without_driver(scan, root);
  return without_hardware(scan, root);
}

}  // namespace neuron::ls
