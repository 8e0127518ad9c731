#include <string>

#include "tools/neuron-sim/trees.h"

namespace neuron::sim {
namespace {

constexpr const char* kClass = "sys/class/neuron_device/";

std::string joined(const std::vector<int>& values) {
  std::string text;
  for (const int value : values) text += (text.empty() ? "" : ", ") + std::to_string(value);
  return text;
}

// The order of physical cores that the driver would tell (docs/reference/driver.md#logical-cores). Platforms with
// switches have a table of their own, in which driver 2.30.2 differs from earlier ones for odd devices.
std::vector<int> core_order(const MachinePlan& machine, int index) {
  const bool switched = machine.platform == Platform::pds || machine.platform == Platform::max;
  if (switched && machine.type->family == model::Family::trainium3) {
    if (index % 2 == 0) return {4, 5, 6, 7, 2, 3, 0, 1};
    if (machine.driver.minor >= 30) return {6, 7, 4, 5, 0, 1, 2, 3};
    return {2, 3, 0, 1, 4, 5, 6, 7};
  }
  return core::assumed_logical_to_physical(*machine.type->family, index, machine.type->physical_cores_per_device);
}

// The driver's recorded answers (docs/fixtures.md#recorded-answers).
std::string driver_answers(const MachinePlan& machine, const NeuronFunction& neuron) {
  return "{ \"bdf\": \"" + model::to_string(neuron.pci.bdf) + "\",\n  \"apps\": [],\n  \"logical_to_physical\": [" +
         joined(core_order(machine, neuron.index)) + "] }\n";
}

// Files next to the neuron<N> links.
void write_class_files(TreeWriter& tree, const MachinePlan& machine) {
  for (const auto& [name, text] : ultraserver_files(machine.platform, machine.driver, machine.options.ultraserver)) {
    tree.file(kClass + name, text);
  }
  if (!machine.driver.platform_class_files) return;
  tree.file(std::string(kClass) + "hbm_7200_capable", "0\n");
  tree.file(std::string(kClass) + "current_perf_profile", "0\n");
}

// A driver whose layout nobody here knows: the folders are made up, so that a reader must notice.
void write_moved(TreeWriter& tree, const MachinePlan& machine, const NeuronFunction& neuron, const std::string& base) {
  tree.file(base + "/device/topology/cores", std::to_string(machine.type->physical_cores_per_device) + "\n");
  tree.file(base + "/device/topology/links", joined(neuron.neighbours) + "\n");
  tree.file(base + "/device/identity/serial", neuron.serial + "\n");
  tree.file(base + "/telemetry/ecc/sram/uncorrected", "0\n");
  tree.file(base + "/telemetry/ecc/hbm/uncorrected", "0\n");
  tree.file(base + "/telemetry/health/components", "\n");
  for (int core = 0; core < machine.type->physical_cores_per_device; ++core) {
    tree.file(base + "/cores/" + std::to_string(core) + "/telemetry/busy_us", "0\n");
  }
}

void write_device(TreeWriter& tree, const MachinePlan& machine, const NeuronFunction& neuron) {
  const auto& driver = machine.driver;
  const std::string name = "neuron" + std::to_string(neuron.index);
  const std::string minor = std::to_string(neuron.index);
  const std::string base = "sys/devices/virtual/neuron_device/" + name;
  tree.file(base + "/dev", "239:" + minor + "\n");
  tree.file(base + "/uevent", "MAJOR=239\nMINOR=" + minor + "\nDEVNAME=" + name + "\n", 0644);
  tree.file(base + "/power/control", "auto\n", 0644);
  tree.file(base + "/power/runtime_status", "unsupported\n");
  tree.link(base + "/subsystem", "sys/class/neuron_device");
  tree.link(kClass + name, base);
  if (driver.known_layout) {
    const mode_t mode = driver.readable_counts ? 0444 : 0400;
    tree.file(base + "/core_count", std::to_string(machine.type->physical_cores_per_device), mode);  // no newline
    tree.file(base + "/connected_devices", joined(neuron.neighbours) + "\n", mode);
    tree.file(base + "/reset", "1\n", 0600);
    if (driver.firmware_files) {
      tree.file(base + "/fw_api_version", "7\n");
      tree.file(base + "/fw_build", "5121\n");
    }
    write_device_stats(tree, machine, neuron, base);
  } else {
    write_moved(tree, machine, neuron, base);
  }
  tree.device_node("dev/" + name);
  if (!machine.options.without.contains(Part::ioctl)) {
    tree.file("neuron-ioctl/" + name + ".json", driver_answers(machine, neuron), 0644);
  }
}

}  // namespace

void write_neuron(TreeWriter& tree, const MachinePlan& machine) {
  if (!machine.has_driver()) return;
  tree.directory("sys/class/neuron_device");
  write_class_files(tree, machine);
  for (const auto& neuron : machine.neurons) write_device(tree, machine, neuron);
}

}  // namespace neuron::sim
