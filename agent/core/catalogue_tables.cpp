#include <algorithm>
#include <array>
#include <utility>

#include "agent/core/typical_host.h"

// The values of docs/reference/topology.md.
namespace neuron::core {
namespace {

using model::Family;

// Address in domain 0, function 0.
constexpr model::Bdf at(int bus, int slot = 0) {
  return {0, static_cast<std::uint8_t>(bus), static_cast<std::uint8_t>(slot), 0};
}

// A type with `count` devices of a family, without other facts; NUMA node 0 holds all CPUs.
InstanceType neuron_type(std::string name, model::Family family, int count, int vcpus, int host_memory_gib) {
  const FamilyFacts facts = family_facts(family);
  InstanceType type;
  type.name = std::move(name);
  type.family = family;
  type.device_count = count;
  type.physical_cores_per_device = facts.physical_cores;
  type.default_lnc = facts.default_lnc;
  type.vcpus = vcpus;
  type.host_memory_gib = host_memory_gib;
  type.devices.resize(static_cast<std::size_t>(count));
  type.numa = {{0, "0-" + std::to_string(std::max(vcpus, 1) - 1)}};
  return type;
}

// Callers add in ascending BDF order.
void add_efa(InstanceType& type, model::Bdf bdf, int device_id, int numa_node, std::string pci_parent) {
  type.efas.push_back({bdf, static_cast<std::uint16_t>(device_id), numa_node, std::move(pci_parent)});
  type.efa_count = static_cast<int>(type.efas.size());
}

// Downstream port of a switch by the bus of the device behind it: port i sits at slot i / 8, function i % 8 of the port
// bus and leads to bus port_bus + 2 + i (docs/reference/topology.md#trn2-eight-switches, inferred from one machine).
std::string switch_port(int port_bus, int device_bus) {
  const int port = device_bus - port_bus - 2;
  return model::to_string({0, static_cast<std::uint8_t>(port_bus), static_cast<std::uint8_t>(port / 8),
                           static_cast<std::uint8_t>(port % 8)});
}

// Inf1 and Inf2, without a published EFA address. docs/reference/topology.md#pci-addresses, by device index of
// inf2.48xlarge; inf2.24xlarge has the last six. Bus 10 is NUMA node 0, 20 -> 1, 80 -> 2, 90 -> 3.
constexpr std::array kInf2Bus = {0x80, 0x90, 0x80, 0x90, 0x80, 0x90, 0x20, 0x20, 0x10, 0x10, 0x10, 0x20};
constexpr std::array kInf2Slot = {0x1e, 0x1e, 0x1d, 0x1f, 0x1f, 0x1d, 0x1e, 0x1f, 0x1e, 0x1f, 0x1d, 0x1d};

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

void place_inf2(InstanceType& type) {
  const std::size_t skipped = kInf2Bus.size() - type.devices.size();
  for (std::size_t i = 0; i < type.devices.size(); ++i) {
    type.devices[i].bdf = at(kInf2Bus[skipped + i], kInf2Slot[skipped + i]);
    type.devices[i].numa_node = inf2_numa_node(kInf2Bus[skipped + i]);
  }
}

// One device without NUMA affinity.
InstanceType single(std::string name, Family family, int vcpus, int host_memory_gib, std::optional<model::Bdf> bdf) {
  InstanceType type = neuron_type(std::move(name), family, 1, vcpus, host_memory_gib);
  type.devices[0].bdf = bdf;
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
  for (std::size_t i = 0; i < type.devices.size(); ++i) type.devices[i].bdf = at(0, 0x1c + static_cast<int>(i));
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
  place_inf2(type);
  type.numa = {{0, "0-23,48-71"}, {1, "24-47,72-95"}};
  return type;
}

InstanceType inf2_48xlarge() {
  InstanceType type = neuron_type("inf2.48xlarge", Family::inferentia2, 12, 192, 768);
  connect_line(type, TopologyShape::ring);
  type.devices.front().neighbours = {11, 1};
  type.devices.back().neighbours = {10, 0};
  place_inf2(type);
  type.numa = {{0, "0-23,96-119"}, {1, "24-47,120-143"}, {2, "48-71,144-167"}, {3, "72-95,168-191"}};
  return type;
}

void add_inferentia(std::vector<InstanceType>& types) {
  types.push_back(single("inf1.xlarge", Family::inferentia, 4, 8, at(0, 0x1f)));
  types.push_back(single("inf1.2xlarge", Family::inferentia, 8, 16, std::nullopt));
  types.push_back(inf1_6xlarge());
  types.push_back(inf1_24xlarge());
  types.push_back(single("inf2.xlarge", Family::inferentia2, 4, 16, at(0, 0x1f)));
  types.push_back(neuron_type("inf2.8xlarge", Family::inferentia2, 1, 32, 128));
  types.push_back(inf2_24xlarge());
  types.push_back(inf2_48xlarge());
}

// Trn1, Trn2, Trn3 (docs/reference/topology.md#instance-types).

using Torus = std::array<int, 64>;  // the four neighbours of each device
using Buses = std::array<int, 16>;

// docs/reference/topology.md#neighbours: connected_devices in file order.
constexpr Torus kTrn1Neighbours = {
    12, 3,  4,  1,  13, 0,  5,  2,  14, 1,  6,  3,  15, 2,  7,  0,   // 0 to 3
    0,  7,  8,  5,  1,  4,  9,  6,  2,  5,  10, 7,  3,  6,  11, 4,   // 4 to 7
    4,  11, 12, 9,  5,  8,  13, 10, 6,  9,  14, 11, 7,  10, 15, 8,   // 8 to 11
    8,  15, 0,  13, 9,  12, 1,  14, 10, 13, 2,  15, 11, 14, 3,  12,  // 12 to 15
};
constexpr Torus kTrn2Neighbours = {
    12, 1,  3,  4,  0,  13, 5,  2,  14, 3,  1,  6,  2,  15, 7,  0,   // 0 to 3
    8,  5,  7,  0,  4,  9,  1,  6,  10, 7,  5,  2,  6,  11, 3,  4,   // 4 to 7
    4,  9,  11, 12, 8,  5,  13, 10, 6,  11, 9,  14, 10, 7,  15, 8,   // 8 to 11
    0,  13, 15, 8,  12, 1,  9,  14, 2,  15, 13, 10, 14, 3,  11, 12,  // 12 to 15
};

// docs/reference/topology.md#pci-addresses, the real node; only the bus of an index is stable.
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
    const auto* const first = neighbours.data() + 4 * i;
    type.devices[i].neighbours.assign(first, first + 4);
  }
}

InstanceType trn1_base(std::string name, const Buses& efa_slots) {
  InstanceType type = neuron_type(std::move(name), Family::trainium1, 16, 128, 512);
  connect(type, TopologyShape::torus_4x4, kTrn1Neighbours);
  type.numa = {{0, "0-31,64-95"}, {1, "32-63,96-127"}};
  for (std::size_t i = 0; i < 16; ++i) {
    type.devices[i].numa_node = trn1_numa_node(kTrn1Bus[i]);
    type.devices[i].nearest_efa = at(kTrn1Bus[i], efa_slots[i]);
  }
  const auto [first, last] = std::minmax_element(efa_slots.begin(), efa_slots.end());
  for (const int bus : kTrn1Roots) {
    for (int slot = *first; slot <= *last; ++slot) {
      add_efa(type, at(bus, slot), 0xefa1, trn1_numa_node(bus), host_bridge_of(at(bus)));
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
  return type;
}

InstanceType trn2_3xlarge() {
  InstanceType type = single("trn2.3xlarge", Family::trainium2, 12, 0, at(0x33));
  type.devices[0].numa_node = 0;
  type.efa_count = 1;  // its address is not public
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
  // trn3n and trn3en are known from the list in AWS's chart alone; the rest is that of their sizes (inferred).
  for (const char* name : {"trn3n.48xlarge", "trn3s-es.48xlarge", "trn3sn.48xlarge", "trn3sn-es.48xlarge"}) {
    types.push_back(large(name, Family::trainium3, kSwitched));
  }
  for (const char* name : {"trn3e.24xlarge", "trn3e-dev0.24xlarge", "trn3en.24xlarge"}) {
    types.push_back(max_24xlarge(name, Family::trainium3));
  }
  for (const char* name :
       {"trn3.3xlarge", "trn3pd98.3xlarge", "trn3s-es.3xlarge", "trn3sn.3xlarge", "trn3sn-es.3xlarge"}) {
    types.push_back(neuron_type(name, Family::trainium3, 1, 12, 0));
  }
}

void add_trainium(std::vector<InstanceType>& types) {
  types.push_back(single("trn1.2xlarge", Family::trainium1, 8, 32, at(0, 0x1e)));
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
}

// Types without Neuron (docs/reference/topology.md#gpu-instances) have addresses only where a machine was published;
// p4de and p5e are the boards of p4d and p5. The names of switch ports are inferred.
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
  add_efa(type, at(0, slot), 0xefa0, -1, host_bridge_of(at(0)));
  return type;
}

InstanceType p4d(std::string name) {
  InstanceType type = efa_type(std::move(name), 4, 96, 1152);
  type.numa = {{0, "0-23,48-71"}, {1, "24-47,72-95"}};
  for (const int bus : {0x10, 0x20, 0x90, 0xa0}) {
    add_efa(type, at(bus, 0x1b), 0xefa0, bus < 0x80 ? 0 : 1, host_bridge_of(at(bus)));
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

void add_efa_only(std::vector<InstanceType>& types) {
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
  types.push_back(efa_type("g4dn.8xlarge", 1, 32, 128));
  types.push_back(efa_type("g6e.48xlarge", 4, 192, 1536));
  types.push_back(one_nic("c5n.18xlarge", 0x1f, 72, 192));
}

}  // namespace

std::span<const InstanceType> all_instance_types() {
  static const std::vector<InstanceType> kAll = [] {
    std::vector<InstanceType> types;
    add_inferentia(types);
    add_trainium(types);
    add_efa_only(types);
    // docs/reference/driver.md#platform-classes
    constexpr std::array<std::string_view, 4> kInUltraServer = {"trn2p.48xlarge", "trn2eu.48xlarge", "trn2u.48xlarge",
                                                                "trn3p.48xlarge"};
    for (InstanceType& type : types) {
      type.numa_is_known = type.numa_is_known || type.numa.size() > 1;  // a node for all CPUs is made up
      type.in_ultraserver = std::ranges::count(kInUltraServer, type.name) > 0;
      type.efa_count_is_known = type.efa_count > 0 || type.family < Family::trainium2 || type.name == "trn3.3xlarge";
    }
    return types;
  }();
  return kAll;
}

}  // namespace neuron::core
