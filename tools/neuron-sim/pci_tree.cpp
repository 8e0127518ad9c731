#include <fmt/format.h>

#include <string>

#include "agent/base/parse.h"
#include "tools/neuron-sim/trees.h"

namespace neuron::sim {
namespace {

constexpr std::size_t kConfigBytes = 256;

void put16(std::string& bytes, std::size_t offset, std::uint32_t value) {
  bytes[offset] = static_cast<char>(value & 0xffU);
  bytes[offset + 1] = static_cast<char>((value >> 8U) & 0xffU);
}

// The part of configuration space that hwloc reads. Bridges have header type 1 and their buses at 0x18.
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
  const std::string vendor = fmt::format("{:#06x}", function.vendor);
  const std::string device = fmt::format("{:#06x}", function.device);
  tree.lines(base, {{"vendor", vendor},
                    {"device", device},
                    {"class", fmt::format("{:#08x}", function.class_code)},
                    {"revision", "0x00"},
                    {"subsystem_vendor", vendor},
                    {"subsystem_device", device},
                    {"numa_node", std::to_string(function.numa_node), 0644},
                    {"local_cpus", format_cpumask(cpus, cpu_count(type))},
                    {"local_cpulist", format_int_list(cpus)},
                    {"current_link_speed", "16.0 GT/s PCIe"},
                    {"current_link_width", "16"},
                    {"uevent", "PCI_SLOT_NAME=" + bdf, 0644}});
  tree.file(base + "config", config_space(function, bridge), 0644);
  tree.link(base + "subsystem", "sys/bus/pci");
  tree.link("sys/bus/pci/devices/" + bdf, function.path);
  if (function.driver.empty()) return;
  const std::string driver = "sys/bus/pci/drivers/" + function.driver;
  tree.directory(driver);
  tree.link(base + "driver", driver);
  tree.link(driver + "/" + bdf, function.path);
}

// By EFA generation: 100, 100, 200 and 400 Gb/s per interface.
std::string_view rate_of(std::uint16_t device) {
  return device == 0xefa2 ? "200 Gb/sec (4X HDR)" : device == 0xefa3 ? "400 Gb/sec (8X HDR)" : "100 Gb/sec (4X EDR)";
}

// EUI-64 of a made-up locally administered MAC address, in the four groups of node_guid and of a GID's lower half.
std::string interface_id(const RdmaFunction& rdma) {
  const auto number = stable_number(model::to_string(rdma.pci.bdf));
  return fmt::format("02{:02x}:{:02x}ff:fe{:02x}:{:04x}", number >> 8U & 0xffU, number >> 16U & 0xffU,
                     number >> 24U & 0xffU, number >> 32U & 0xffffU);
}

void write_counters(TreeWriter& tree, const RdmaFunction& rdma, const std::string& base) {
  constexpr std::size_t kNitro4Counters = 5;
  if (!rdma.is_efa) {
    return tree.lines(base, {{"ports/1/counters/port_rcv_data", "0"}, {"ports/1/counters/port_xmit_data", "0"}});
  }
  auto port = split(kEfaPortCounters, ' ');
  if (rdma.pci.device == 0xefa0) port.resize(port.size() - kNitro4Counters);
  for (const auto name : port) tree.line(base + "ports/1/hw_counters/" + std::string(name), "0");
  for (const auto name : split(kEfaDeviceCounters, ' ')) tree.line(base + "hw_counters/" + std::string(name), "0");
  tree.lines(base, {{"ports/1/hw_counters/lifespan", "12", 0644}, {"hw_counters/lifespan", "12", 0644}});
}

void write_infiniband(TreeWriter& tree, const RdmaFunction& rdma) {
  const std::string device = rdma.pci.path + "/infiniband/" + rdma.name;
  const std::string base = device + "/";
  tree.link("sys/class/infiniband/" + rdma.name, device);
  tree.link(base + "device", rdma.pci.path);
  tree.link(base + "subsystem", "sys/class/infiniband");
  tree.lines(base, {{"node_type", rdma.is_efa ? "7: unspecified" : "1: CA"},
                    {"node_guid", interface_id(rdma)},
                    {"sys_image_guid", "0000:0000:0000:0000"},
                    {"fw_ver", rdma.is_efa ? "" : "28.43.2566"},
                    {"node_desc", rdma.name, 0644},
                    {"ports/1/state", "4: ACTIVE"},
                    {"ports/1/phys_state", "5: LinkUp"},
                    {"ports/1/link_layer", rdma.is_efa ? "Unknown" : "InfiniBand"},
                    {"ports/1/rate", rate_of(rdma.pci.device)},
                    {"ports/1/lid", "0x0"},
                    {"ports/1/sm_lid", "0x0"},
                    {"ports/1/lid_mask_count", rdma.is_efa ? "1" : "0"},
                    {"ports/1/gids/0", "fe80:0000:0000:0000:" + interface_id(rdma)},
                    {"ports/1/pkeys/0", "0xffff"}});
  write_counters(tree, rdma, base);
}

void write_verbs(TreeWriter& tree, const RdmaFunction& rdma) {
  constexpr int kFirstMinor = 192;
  const std::string name = "uverbs" + std::to_string(rdma.uverbs);
  const std::string device = rdma.pci.path + "/infiniband_verbs/" + name;
  tree.lines(
      device,
      {{"/ibdev", rdma.name}, {"/dev", fmt::format("231:{}", kFirstMinor + rdma.uverbs)}, {"/abi_version", "1"}});
  tree.link(device + "/device", rdma.pci.path);
  tree.link(device + "/subsystem", "sys/class/infiniband_verbs");
  tree.link("sys/class/infiniband_verbs/" + name, device);
  tree.device_node("dev/infiniband/" + name);
}

std::string_view peer_memory(const MachinePlan& machine) {
  return machine.has_driver() ? "NEURON" : machine.type->family ? "" : "NVIDIA";
}

}  // namespace

void write_pci(TreeWriter& tree, const MachinePlan& machine) {
  for (const auto& bridge : machine.bridges) write_function(tree, *machine.type, bridge.function, &bridge);
  for (const auto& function : machine.others) write_function(tree, *machine.type, function, nullptr);
  for (const auto& neuron : machine.neurons) write_function(tree, *machine.type, neuron.pci, nullptr);
  for (const auto& rdma : machine.rdma) write_function(tree, *machine.type, rdma.pci, nullptr);
}

void write_rdma(TreeWriter& tree, const MachinePlan& machine) {
  for (const auto& rdma : machine.rdma) {
    write_infiniband(tree, rdma);
    if (rdma.is_efa) tree.line(rdma.pci.path + "/p2p", peer_memory(machine));
    if (machine.has_uverbs()) write_verbs(tree, rdma);
  }
  if (machine.has_uverbs()) tree.line("sys/class/infiniband_verbs/abi_version", "6");
}

}  // namespace neuron::sim
