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

constexpr int kFirstUverbsMinor = 192;
constexpr std::size_t kNitro4Counters = 5;

// By EFA generation: 100, 100, 200 and 400 Gb/s per interface.
std::string_view rate_of(std::uint16_t device) {
  switch (device) {
    case 0xefa2:
      return "200 Gb/sec (4X HDR)\n";
    case 0xefa3:
      return "400 Gb/sec (8X HDR)\n";
    default:
      return "100 Gb/sec (4X EDR)\n";
  }
}

// EUI-64 of a made-up locally administered MAC address, in the four groups of node_guid and of a GID's lower half.
std::string interface_id(const RdmaFunction& rdma) {
  const auto number = stable_number(model::to_string(rdma.pci.bdf));
  char text[24];
  std::snprintf(text, sizeof text, "02%02x:%02xff:fe%02x:%04x", static_cast<unsigned>(number >> 8U) & 0xffU,
                static_cast<unsigned>(number >> 16U) & 0xffU, static_cast<unsigned>(number >> 24U) & 0xffU,
                static_cast<unsigned>(number >> 32U) & 0xffffU);
  return text;
}

void write_efa_counters(TreeWriter& tree, const RdmaFunction& rdma, const std::string& base) {
  const auto& port = efa_port_counters();
  const bool nitro4 = rdma.pci.device != 0xefa0;
  const std::size_t count = nitro4 ? port.size() : port.size() - kNitro4Counters;
  for (std::size_t i = 0; i < count; ++i) tree.file(base + "ports/1/hw_counters/" + std::string(port[i]), "0\n");
  tree.file(base + "ports/1/hw_counters/lifespan", "12\n", 0644);
  for (const auto name : efa_device_counters()) tree.file(base + "hw_counters/" + std::string(name), "0\n");
  tree.file(base + "hw_counters/lifespan", "12\n", 0644);
}

void write_infiniband(TreeWriter& tree, const RdmaFunction& rdma) {
  const std::string device = rdma.pci.path + "/infiniband/" + rdma.name;
  const std::string base = device + "/";
  const std::string port = base + "ports/1/";
  tree.link("sys/class/infiniband/" + rdma.name, device);
  tree.link(base + "device", rdma.pci.path);
  tree.link(base + "subsystem", "sys/class/infiniband");
  tree.file(base + "node_type", rdma.is_efa ? "7: unspecified\n" : "1: CA\n");
  tree.file(base + "node_guid", interface_id(rdma) + "\n");
  tree.file(base + "sys_image_guid", "0000:0000:0000:0000\n");
  tree.file(base + "fw_ver", rdma.is_efa ? "\n" : "28.43.2566\n");
  tree.file(base + "node_desc", rdma.name + "\n", 0644);
  tree.file(port + "state", "4: ACTIVE\n");
  tree.file(port + "phys_state", "5: LinkUp\n");
  tree.file(port + "link_layer", rdma.is_efa ? "Unknown\n" : "InfiniBand\n");
  tree.file(port + "rate", rate_of(rdma.pci.device));
  tree.file(port + "lid", "0x0\n");
  tree.file(port + "sm_lid", "0x0\n");
  tree.file(port + "lid_mask_count", rdma.is_efa ? "1\n" : "0\n");
  tree.file(port + "gids/0", "fe80:0000:0000:0000:" + interface_id(rdma) + "\n");
  tree.file(port + "pkeys/0", "0xffff\n");
  if (rdma.is_efa) {
    write_efa_counters(tree, rdma, base);
  } else {
    tree.file(port + "counters/port_rcv_data", "0\n");
    tree.file(port + "counters/port_xmit_data", "0\n");
  }
}

void write_verbs(TreeWriter& tree, const RdmaFunction& rdma) {
  const std::string name = "uverbs" + std::to_string(rdma.uverbs);
  const std::string device = rdma.pci.path + "/infiniband_verbs/" + name;
  tree.file(device + "/ibdev", rdma.name + "\n");
  tree.file(device + "/dev", "231:" + std::to_string(kFirstUverbsMinor + rdma.uverbs) + "\n");
  tree.file(device + "/abi_version", "1\n");
  tree.link(device + "/device", rdma.pci.path);
  tree.link(device + "/subsystem", "sys/class/infiniband_verbs");
  tree.link("sys/class/infiniband_verbs/" + name, device);
  tree.device_node("dev/infiniband/" + name);
}

std::string_view peer_memory(const MachinePlan& machine) {
  if (machine.has_driver()) return "NEURON\n";
  return machine.type->family ? "\n" : "NVIDIA\n";
}

}  // namespace

void write_pci(TreeWriter& tree, const MachinePlan& machine) {
  for (const auto& bridge : machine.bridges) write_function(tree, *machine.type, bridge.function, &bridge);
  for (const auto& function : machine.others) write_function(tree, *machine.type, function, nullptr);
  for (const auto& neuron : machine.neurons) write_function(tree, *machine.type, neuron.pci, nullptr);
  for (const auto& rdma : machine.rdma) write_function(tree, *machine.type, rdma.pci, nullptr);
}

const std::vector<std::string_view>& efa_port_counters() {
  static const std::vector<std::string_view> kNames = {"tx_bytes",
                                                       "tx_pkts",
                                                       "rx_bytes",
                                                       "rx_pkts",
                                                       "rx_drops",
                                                       "send_bytes",
                                                       "send_wrs",
                                                       "recv_bytes",
                                                       "recv_wrs",
                                                       "rdma_read_wrs",
                                                       "rdma_read_bytes",
                                                       "rdma_read_wr_err",
                                                       "rdma_read_resp_bytes",
                                                       "rdma_write_wrs",
                                                       "rdma_write_bytes",
                                                       "rdma_write_wr_err",
                                                       "rdma_write_recv_bytes",
                                                       "retrans_bytes",
                                                       "retrans_pkts",
                                                       "retrans_timeout_events",
                                                       "unresponsive_remote_events",
                                                       "impaired_remote_conn_events"};
  return kNames;
}

const std::vector<std::string_view>& efa_device_counters() {
  static const std::vector<std::string_view> kNames = {
      "submitted_cmds", "completed_cmds", "cmds_err",      "no_completion_cmds", "keep_alive_rcvd",
      "alloc_pd_err",   "create_qp_err",  "create_cq_err", "reg_mr_err",         "alloc_ucontext_err",
      "create_ah_err",  "mmap_err",       "alloc_mr_err",  "get_dma_mr_err"};
  return kNames;
}

void write_rdma(TreeWriter& tree, const MachinePlan& machine) {
  for (const auto& rdma : machine.rdma) {
    write_infiniband(tree, rdma);
    if (rdma.is_efa) tree.file(rdma.pci.path + "/p2p", peer_memory(machine));
    if (machine.has_uverbs()) write_verbs(tree, rdma);
  }
  if (machine.has_uverbs()) tree.file("sys/class/infiniband_verbs/abi_version", "6\n");
}

}  // namespace neuron::sim
