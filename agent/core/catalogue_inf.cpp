#include <array>
#include <utility>

#include "agent/core/catalogue_tables.h"

// Inf1 and Inf2 (docs/reference/topology.md#instance-types), without a published EFA address, and types with EFA but no
// Neuron (docs/reference/topology.md#gpu-instances).
namespace neuron::core::tables {
namespace {

using model::Family;

struct Address {
  int bus = 0;
  int slot = 0;
};

// docs/reference/topology.md#pci-addresses, by device index; bus 10 is NUMA node 0, 20 -> 1, 80 -> 2, 90 -> 3 (the last
// two on inf2.48xlarge only).
constexpr std::array<Address, 12> kInf2x48 = {{{0x80, 0x1e},
                                               {0x90, 0x1e},
                                               {0x80, 0x1d},
                                               {0x90, 0x1f},
                                               {0x80, 0x1f},
                                               {0x90, 0x1d},
                                               {0x20, 0x1e},
                                               {0x20, 0x1f},
                                               {0x10, 0x1e},
                                               {0x10, 0x1f},
                                               {0x10, 0x1d},
                                               {0x20, 0x1d}}};
constexpr std::array<Address, 6> kInf2x24 = {
    {{0x20, 0x1e}, {0x20, 0x1f}, {0x10, 0x1e}, {0x10, 0x1f}, {0x10, 0x1d}, {0x20, 0x1d}}};
constexpr std::array<Address, 4> kInf1x6 = {{{0, 0x1c}, {0, 0x1d}, {0, 0x1e}, {0, 0x1f}}};

int inf2_numa_node(int bus) {
  return bus == 0x10 ? 0 : bus == 0x20 ? 1 : bus == 0x80 ? 2 : 3;
}

// A neighbour on either side, lower index first, as the Inf2 driver prints them.
void connect_line(InstanceType& type, TopologyShape shape) {
  type.shape = shape;
  for (int i = 0; i < type.device_count; ++i) {
    auto& neighbours = type.devices[static_cast<std::size_t>(i)].neighbours;
    if (i > 0) neighbours.push_back(i - 1);
    if (i + 1 < type.device_count) neighbours.push_back(i + 1);
  }
}

template <std::size_t N>
void place(InstanceType& type, const std::array<Address, N>& addresses) {
  for (std::size_t i = 0; i < N; ++i) type.devices[i].bdf = at(addresses[i].bus, addresses[i].slot);
}

template <std::size_t N>
void place_inf2(InstanceType& type, const std::array<Address, N>& addresses) {
  place(type, addresses);
  for (std::size_t i = 0; i < N; ++i) type.devices[i].numa_node = inf2_numa_node(addresses[i].bus);
  type.numa_is_known = true;
}

// One device without NUMA affinity.
InstanceType single(std::string name, Family family, int vcpus, int host_memory_gib) {
  InstanceType type = neuron_type(std::move(name), family, 1, vcpus, host_memory_gib);
  type.numa_is_known = true;
  return type;
}

InstanceType inf1_6xlarge() {
  InstanceType type = neuron_type("inf1.6xlarge", Family::inferentia, 4, 24, 48);
  connect_line(type, TopologyShape::chain);
  // AWS's documents print the higher neighbour first here (docs/reference/topology.md#neighbours).
  for (DeviceFacts& device : type.devices) {
    if (device.neighbours.size() == 2) std::swap(device.neighbours[0], device.neighbours[1]);
  }
  place(type, kInf1x6);
  return type;
}

InstanceType inf1_24xlarge() {
  InstanceType type = neuron_type("inf1.24xlarge", Family::inferentia, 16, 96, 192);
  type.shape = TopologyShape::unknown;  // east/west links exist, the lists are not public
  type.efa_count = 1;
  return type;
}

InstanceType inf2_24xlarge() {
  InstanceType type = neuron_type("inf2.24xlarge", Family::inferentia2, 6, 96, 384);
  connect_line(type, TopologyShape::line);
  place_inf2(type, kInf2x24);
  type.numa = {{0, "0-23,48-71"}, {1, "24-47,72-95"}};
  return type;
}

InstanceType inf2_48xlarge() {
  InstanceType type = neuron_type("inf2.48xlarge", Family::inferentia2, 12, 192, 768);
  connect_line(type, TopologyShape::ring);
  type.devices.front().neighbours = {11, 1};
  type.devices.back().neighbours = {10, 0};
  place_inf2(type, kInf2x48);
  type.numa = {{0, "0-23,96-119"}, {1, "24-47,120-143"}, {2, "48-71,144-167"}, {3, "72-95,168-191"}};
  return type;
}

// Types without Neuron have addresses only where a machine was published; p4de and p5e are the boards of p4d and p5.
// Switch ports are inferred: the page lists the interfaces of a switch, not the names of its ports.
InstanceType efa_type(std::string name, int efa_count, int vcpus, int host_memory_gib) {
  InstanceType type;
  type.name = std::move(name);
  type.efa_count = efa_count;
  type.vcpus = vcpus;
  type.host_memory_gib = host_memory_gib;
  type.numa = {{0, "0-" + std::to_string(vcpus - 1)}};
  return type;
}

// One interface on bus 00, below the only host bridge.
InstanceType one_nic(std::string name, int slot, int vcpus, int host_memory_gib) {
  InstanceType type = efa_type(std::move(name), 1, vcpus, host_memory_gib);
  add_efa(type, at(0, slot), 0xefa0, -1, host_bridge(0));
  return type;
}

InstanceType p4d(std::string name) {
  InstanceType type = efa_type(std::move(name), 4, 96, 1152);
  type.numa = {{0, "0-23,48-71"}, {1, "24-47,72-95"}};
  for (const int bus : {0x10, 0x20, 0x90, 0xa0}) {
    add_efa(type, at(bus, 0x1b), 0xefa0, bus < 0x80 ? 0 : 1, host_bridge(bus));
  }
  return type;
}

// Switches in ascending bus order, the first half on NUMA node 0.
struct SwitchedBoard {
  int device_id = 0;
  int efas_per_switch = 0;
  int port_bus_offset = 0;  // first EFA's bus minus port bus
};

template <std::size_t N>
InstanceType switched(std::string name, SwitchedBoard board, const std::array<int, N>& first_buses) {
  InstanceType type = efa_type(std::move(name), 0, 192, 2048);
  type.numa = {{0, "0-47,96-143"}, {1, "48-95,144-191"}};
  for (std::size_t i = 0; i < N; ++i) {
    for (int k = 0; k < board.efas_per_switch; ++k) {
      const int bus = first_buses[i] + k;
      add_efa(type, at(bus), board.device_id, i < N / 2 ? 0 : 1,
              switch_port(first_buses[i] - board.port_bus_offset, bus));
    }
  }
  return type;
}

constexpr std::array kP5 = {0x4f, 0x60, 0x71, 0x82, 0x93, 0xa4, 0xb5, 0xc6};
constexpr std::array kP5en = {0x55, 0x6e, 0x87, 0xa0};
constexpr std::array kP6B200 = {0x4f, 0x60, 0x71, 0x84};

InstanceType g6_48xlarge() {
  InstanceType type = efa_type("g6.48xlarge", 1, 192, 768);
  type.numa = {{0, "0-47,96-143"}, {1, "48-95,144-191"}};
  add_efa(type, at(0x96), 0xefa1, 0, "");
  return type;
}

}  // namespace

std::vector<InstanceType> inferentia_types() {
  std::vector<InstanceType> types;
  types.push_back(single("inf1.xlarge", Family::inferentia, 4, 8));
  types.back().devices[0].bdf = at(0x00, 0x1f);
  types.push_back(single("inf1.2xlarge", Family::inferentia, 8, 16));
  types.push_back(inf1_6xlarge());
  types.push_back(inf1_24xlarge());
  types.push_back(single("inf2.xlarge", Family::inferentia2, 4, 16));
  types.back().devices[0].bdf = at(0x00, 0x1f);
  types.push_back(neuron_type("inf2.8xlarge", Family::inferentia2, 1, 32, 128));
  types.push_back(inf2_24xlarge());
  types.push_back(inf2_48xlarge());
  return types;
}

std::vector<InstanceType> efa_only_types() {
  std::vector<InstanceType> types;
  types.push_back(one_nic("p3dn.24xlarge", 0x15, 96, 768));
  types.push_back(p4d("p4d.24xlarge"));
  types.push_back(p4d("p4de.24xlarge"));
  types.push_back(efa_type("p5.4xlarge", 1, 16, 256));
  types.push_back(switched("p5.48xlarge", {0xefa1, 4, 11}, kP5));
  types.push_back(switched("p5e.48xlarge", {0xefa1, 4, 11}, kP5));
  types.push_back(switched("p5en.48xlarge", {0xefa2, 4, 16}, kP5en));
  types.push_back(switched("p6-b200.48xlarge", {0xefa3, 2, 11}, kP6B200));
  types.push_back(efa_type("p6-b300.48xlarge", 16, 192, 4096));
  types.push_back(efa_type("dl1.24xlarge", 4, 96, 768));
  types.push_back(one_nic("g5.48xlarge", 0x15, 192, 768));
  types.push_back(g6_48xlarge());
  types.push_back(efa_type("g6e.48xlarge", 4, 192, 1536));
  types.push_back(one_nic("c5n.18xlarge", 0x1f, 72, 192));
  return types;
}

}  // namespace neuron::core::tables
