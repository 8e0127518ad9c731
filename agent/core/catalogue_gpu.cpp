#include <array>
#include <utility>

#include "agent/core/catalogue_tables.h"

// Types without Neuron that carry EFA (docs/reference/topology.md#gpu-instances). Addresses only where a machine was
// published; p4de and p5e are the boards of p4d and p5. Switch ports are inferred: the page tells which interfaces
// share a switch, not the port's name.
namespace neuron::core::tables {
namespace {

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
