#include <array>

#include "agent/core/catalogue_tables.h"

// Inf1 and Inf2 (docs/reference/topology.md#instance-types). None of them has a published EFA address.
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

}  // namespace neuron::core::tables
