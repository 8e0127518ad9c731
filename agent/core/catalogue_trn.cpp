#include <algorithm>
#include <array>

#include "agent/core/catalogue_tables.h"

// Trn1, Trn2, Trn3 (docs/reference/topology.md#instance-types).
namespace neuron::core::tables {
namespace {

using model::Family;

using Torus = std::array<std::array<int, 4>, 16>;
using Buses = std::array<int, 16>;

// docs/reference/topology.md#neighbours: connected_devices in file order.
constexpr Torus kTrn1Neighbours = {{{12, 3, 4, 1},
                                    {13, 0, 5, 2},
                                    {14, 1, 6, 3},
                                    {15, 2, 7, 0},
                                    {0, 7, 8, 5},
                                    {1, 4, 9, 6},
                                    {2, 5, 10, 7},
                                    {3, 6, 11, 4},
                                    {4, 11, 12, 9},
                                    {5, 8, 13, 10},
                                    {6, 9, 14, 11},
                                    {7, 10, 15, 8},
                                    {8, 15, 0, 13},
                                    {9, 12, 1, 14},
                                    {10, 13, 2, 15},
                                    {11, 14, 3, 12}}};
constexpr Torus kTrn2Neighbours = {{{12, 1, 3, 4},
                                    {0, 13, 5, 2},
                                    {14, 3, 1, 6},
                                    {2, 15, 7, 0},
                                    {8, 5, 7, 0},
                                    {4, 9, 1, 6},
                                    {10, 7, 5, 2},
                                    {6, 11, 3, 4},
                                    {4, 9, 11, 12},
                                    {8, 5, 13, 10},
                                    {6, 11, 9, 14},
                                    {10, 7, 15, 8},
                                    {0, 13, 15, 8},
                                    {12, 1, 9, 14},
                                    {2, 15, 13, 10},
                                    {14, 3, 11, 12}}};

// docs/reference/topology.md#pci-addresses, the real node. Only the bus of an index is stable.
constexpr Buses kTrn1Bus = {0x10, 0x10, 0xa0, 0xa0, 0x20, 0x20, 0x90, 0x90,
                            0x20, 0x20, 0x90, 0x90, 0x10, 0x10, 0xa0, 0xa0};
constexpr Buses kTrn1Slot = {0x1b, 0x1e, 0x1b, 0x1e, 0x1e, 0x1c, 0x1e, 0x1c,
                             0x1d, 0x1b, 0x1d, 0x1b, 0x1c, 0x1d, 0x1c, 0x1d};
constexpr std::array<int, 4> kTrn1Roots = {0x10, 0x20, 0x90, 0xa0};
// docs/reference/topology.md#nearest-efa: slot of the nearest EFA on the device's own bus.
constexpr Buses kTrn1EfaSlot = {0x1a, 0x1a, 0x1a, 0x1a, 0x19, 0x19, 0x19, 0x19,
                                0x1a, 0x1a, 0x1a, 0x1a, 0x19, 0x19, 0x19, 0x19};
constexpr Buses kTrn1nEfaSlot = {0x17, 0x1a, 0x17, 0x1a, 0x19, 0x18, 0x19, 0x18,
                                 0x17, 0x1a, 0x17, 0x1a, 0x19, 0x18, 0x19, 0x18};

// docs/reference/topology.md#pci-addresses and #nearest-efa, buses by device index; slot 0.
constexpr Buses kTrn2Bus = {0xcc, 0xb5, 0xb6, 0xcb, 0x6f, 0x58, 0x59, 0x6e,
                            0x9b, 0x84, 0x85, 0x9a, 0xf8, 0xe1, 0xe2, 0xf7};
constexpr Buses kTrn2EfaBus = {0xc9, 0xb4, 0xb3, 0xca, 0x6c, 0x57, 0x56, 0x6d,
                               0x98, 0x83, 0x82, 0x99, 0xf5, 0xe0, 0xdf, 0xf6};
constexpr Buses kTrn3EfaBus = {0xbe, 0xa9, 0xa8, 0xbf, 0x61, 0x4c, 0x4b, 0x62,
                               0x8d, 0x78, 0x77, 0x8e, 0xea, 0xd5, 0xd4, 0xeb};
constexpr Buses kTrn3PdsEfaBus = {0xa9, 0xa8, 0xbf, 0xbe, 0xd5, 0xd4, 0xeb, 0xea,
                                  0x4c, 0x4b, 0x62, 0x61, 0x78, 0x77, 0x8e, 0x8d};

constexpr int trn1_numa_node(int bus) {
  return bus < 0x80 ? 0 : 1;
}
constexpr int trn2_numa_node(int bus) {
  return bus < 0xa0 ? 0 : 1;
}

void connect(InstanceType& type, TopologyShape shape, const Torus& neighbours) {
  type.shape = shape;
  for (std::size_t i = 0; i < type.devices.size(); ++i) {
    type.devices[i].neighbours.assign(neighbours[i].begin(), neighbours[i].end());
  }
}

InstanceType trn1_base(std::string name, const Buses& efa_slots) {
  InstanceType type = neuron_type(std::move(name), Family::trainium1, 16, 128, 512);
  connect(type, TopologyShape::torus_4x4, kTrn1Neighbours);
  type.numa = {{0, "0-31,64-95"}, {1, "32-63,96-127"}};
  type.numa_is_known = true;
  for (std::size_t i = 0; i < 16; ++i) {
    type.devices[i].numa_node = trn1_numa_node(kTrn1Bus[i]);
    type.devices[i].nearest_efa = at(kTrn1Bus[i], efa_slots[i]);
  }
  const auto [first, last] = std::minmax_element(efa_slots.begin(), efa_slots.end());
  for (const int bus : kTrn1Roots) {
    for (int slot = *first; slot <= *last; ++slot) {
      add_efa(type, at(bus, slot), 0xefa1, trn1_numa_node(bus), host_bridge(bus));
    }
  }
  return type;
}

InstanceType trn1_32xlarge() {
  InstanceType type = trn1_base("trn1.32xlarge", kTrn1EfaSlot);
  for (std::size_t i = 0; i < 16; ++i) type.devices[i].bdf = at(kTrn1Bus[i], kTrn1Slot[i]);
  return type;
}

// The 16 EFAs of `nearest`, each the nearest of one device.
void add_efas_on_buses(InstanceType& type, const Buses& nearest, int device_id) {
  Buses sorted = nearest;
  std::sort(sorted.begin(), sorted.end());
  for (const int bus : sorted) add_efa(type, at(bus), device_id, -1, "");
  for (std::size_t i = 0; i < 16; ++i) type.devices[i].nearest_efa = at(nearest[i]);
}

InstanceType large(std::string name, Family family, TopologyShape shape) {
  InstanceType type = neuron_type(std::move(name), family, 16, 192, 2048);
  connect(type, shape, kTrn2Neighbours);
  return type;
}

// trn2.48xlarge and the types that share its tables: eight switches of two EFAs and two devices
// (docs/reference/topology.md#trn2-eight-switches).
InstanceType trn2_48xlarge(std::string name) {
  InstanceType type = large(std::move(name), Family::trainium2, TopologyShape::torus_4x4);
  add_efas_on_buses(type, kTrn2EfaBus, 0xefa2);
  for (std::size_t i = 0; i < 16; ++i) {
    type.devices[i].bdf = at(kTrn2Bus[i]);
    type.devices[i].numa_node = trn2_numa_node(kTrn2Bus[i]);
    // The first EFA of a switch is its port 14.
    const int port_bus = type.efas[i - i % 2].bdf.bus - 16;
    type.efas[i].numa_node = trn2_numa_node(port_bus);
    type.efas[i].pci_parent = switch_port(port_bus, type.efas[i].bdf.bus);
  }
  type.numa = {{0, "0-47,96-143"}, {1, "48-95,144-191"}};
  type.numa_is_known = true;
  return type;
}

InstanceType trn2_3xlarge() {
  InstanceType type = neuron_type("trn2.3xlarge", Family::trainium2, 1, 12, 0);
  type.devices[0].bdf = at(0x33);
  type.devices[0].numa_node = 0;
  type.numa_is_known = true;
  type.efa_count = 1;  // its address is not public
  return type;
}

InstanceType trn1_2xlarge() {
  InstanceType type = neuron_type("trn1.2xlarge", Family::trainium1, 1, 8, 32);
  type.devices[0].bdf = at(0x00, 0x1e);
  type.numa_is_known = true;
  return type;
}

InstanceType trn3_48xlarge(std::string name, TopologyShape shape, const Buses& nearest) {
  InstanceType type = large(std::move(name), Family::trainium3, shape);
  add_efas_on_buses(type, nearest, 0xefa3);
  return type;
}

InstanceType max_24xlarge(std::string name, Family family) {
  InstanceType type = neuron_type(std::move(name), family, 4, 64, 768);
  type.shape = TopologyShape::switched;
  return type;
}

// docs/reference/topology.md#nearest-efa. The PDS platforms print the torus list although their fabric is switched,
// hence neighbours and shape disagree there.
void add_trn3(std::vector<InstanceType>& types) {
  constexpr auto kTorus = TopologyShape::torus_4x4;
  constexpr auto kSwitched = TopologyShape::switched;
  types.push_back(trn3_48xlarge("trn3.48xlarge", kSwitched, kTrn3EfaBus));
  types.push_back(trn3_48xlarge("trn3p.48xlarge", kTorus, kTrn3EfaBus));
  types.push_back(trn3_48xlarge("trn3pd98.48xlarge", kTorus, kTrn3EfaBus));
  types.push_back(trn3_48xlarge("trn3s.48xlarge", kSwitched, kTrn3EfaBus));
  types.push_back(trn3_48xlarge("trn3-dev0.48xlarge", kSwitched, kTrn3PdsEfaBus));
  types.push_back(trn3_48xlarge("trn3-dev1.48xlarge", kSwitched, kTrn3PdsEfaBus));
  for (const char* name : {"trn3s-es.48xlarge", "trn3sn.48xlarge", "trn3sn-es.48xlarge"}) {
    types.push_back(large(name, Family::trainium3, kSwitched));
  }
  types.push_back(max_24xlarge("trn3e.24xlarge", Family::trainium3));
  types.push_back(max_24xlarge("trn3e-dev0.24xlarge", Family::trainium3));
  for (const char* name :
       {"trn3.3xlarge", "trn3pd98.3xlarge", "trn3s-es.3xlarge", "trn3sn.3xlarge", "trn3sn-es.3xlarge"}) {
    types.push_back(neuron_type(name, Family::trainium3, 1, 12, 0));
  }
}

}  // namespace

std::vector<InstanceType> trainium_types() {
  std::vector<InstanceType> types;
  types.push_back(trn1_2xlarge());
  types.push_back(trn1_32xlarge());
  types.push_back(trn1_base("trn1n.32xlarge", kTrn1nEfaSlot));
  types.push_back(trn2_3xlarge());
  types.push_back(trn2_48xlarge("trn2.48xlarge"));
  types.back().bdf_is_stable = true;
  types.push_back(trn2_48xlarge("trn2u.48xlarge"));
  types.push_back(trn2_48xlarge("trn2e.48xlarge"));
  types.push_back(large("trn2p.48xlarge", Family::trainium2, TopologyShape::torus_4x4));
  types.push_back(large("trn2eu.48xlarge", Family::trainium2, TopologyShape::torus_4x4));
  types.push_back(large("trn2es.48xlarge", Family::trainium2, TopologyShape::switched));
  types.push_back(max_24xlarge("trn2en.24xlarge", Family::trainium2));
  add_trn3(types);
  return types;
}

}  // namespace neuron::core::tables
