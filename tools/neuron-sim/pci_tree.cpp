#include <cstdio>
#include <string>

#include "agent/base/parse.h"
#include "tools/neuron-sim/trees.h"

namespace neuron::sim {
namespace {

constexpr std::size_t kConfigBytes = 256;

std::string hex(std::uint32_t value, int digits) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%0*x\n", digits, value);
  return text;
}

void put16(std::string& bytes, std::size_t offset, std::uint32_t value) {
  bytes[offset] = static_cast<char>(value & 0xffU);
  bytes[offset + 1] = static_cast<char>((value >> 8U) & 0xffU);
}

// Configuration space as far as hwloc looks at it. Bridges have header type 1 and their buses at 0x18.
std::string config_space(const PciFunction& function, const PciBridge* bridge) {
  std::string bytes(kConfigBytes, '\0');
  put16(bytes, 0x00, function.vendor);
  put16(bytes, 0x02, function.device);
  put16(bytes, 0x09, (function.class_code & 0xffU) | (function.class_code & 0xff00U));
  bytes[0x0b] = static_cast<char>((function.class_code >> 16U) & 0xffU);
  if (bridge == nullptr) {
    put16(bytes, 0x2c, function.vendor);
    put16(bytes, 0x2e, function.device);
    return bytes;
  }
  bytes[0x0e] = 1;
  bytes[0x18] = static_cast<char>(function.bdf.bus);
  bytes[0x19] = static_cast<char>(bridge->secondary_bus);
  bytes[0x1a] = static_cast<char>(bridge->subordinate_bus);
  return bytes;
}

void write_function(TreeWriter& tree, const core::InstanceType& type, const PciFunction& function,
                    const PciBridge* bridge) {
  const std::string base = function.path + "/";
  const std::string bdf = model::to_string(function.bdf);
  const auto cpus = cpus_of_node(type, function.numa_node);
  tree.file(base + "vendor", hex(function.vendor, 4));
  tree.file(base + "device", hex(function.device, 4));
  tree.file(base + "class", hex(function.class_code, 6));
  tree.file(base + "revision", hex(0, 2));
  tree.file(base + "subsystem_vendor", hex(function.vendor, 4));
  tree.file(base + "subsystem_device", hex(function.device, 4));
  tree.file(base + "config", config_space(function, bridge), 0644);
  tree.file(base + "numa_node", std::to_string(function.numa_node) + "\n", 0644);
  tree.file(base + "local_cpus", format_cpumask(cpus, cpu_count(type)) + "\n");
  tree.file(base + "local_cpulist", format_int_list(cpus) + "\n");
  tree.file(base + "current_link_speed", "16.0 GT/s PCIe\n");
  tree.file(base + "current_link_width", "16\n");
  tree.file(base + "uevent", "PCI_SLOT_NAME=" + bdf + "\n", 0644);
  tree.link(base + "subsystem", "sys/bus/pci");
  tree.link("sys/bus/pci/devices/" + bdf, function.path);
  if (function.driver.empty()) return;
  const std::string driver = "sys/bus/pci/drivers/" + function.driver;
  tree.directory(driver);
  tree.link(base + "driver", driver);
  tree.link(driver + "/" + bdf, function.path);
}

}  // namespace

void write_pci(TreeWriter& tree, const MachinePlan& machine) {
  for (const auto& bridge : machine.bridges) write_function(tree, *machine.type, bridge.function, &bridge);
  for (const auto& function : machine.others) write_function(tree, *machine.type, function, nullptr);
  for (const auto& neuron : machine.neurons) write_function(tree, *machine.type, neuron.pci, nullptr);
  for (const auto& rdma : machine.rdma) write_function(tree, *machine.type, rdma.pci, nullptr);
}

}  // namespace neuron::sim
