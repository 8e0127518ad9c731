#pragma once

#include <span>
#include <string>
#include <vector>

#include "agent/core/catalogue.h"

// Internal to the catalogue: its tables and their helpers. All values are those of docs/reference/topology.md.
namespace neuron::core::tables {

[[nodiscard]] std::vector<InstanceType> inferentia_types();
[[nodiscard]] std::vector<InstanceType> trainium_types();
[[nodiscard]] std::vector<InstanceType> efa_only_types();

// Address in domain 0, function 0.
[[nodiscard]] constexpr model::Bdf at(int bus, int slot = 0) {
  return {0, static_cast<std::uint8_t>(bus), static_cast<std::uint8_t>(slot), 0};
}

// A type with `count` devices of a family, without other facts; NUMA node 0 holds all CPUs.
[[nodiscard]] InstanceType neuron_type(std::string name, model::Family family, int count, int vcpus,
                                       int host_memory_gib);

// Adds one EFA interface. Callers add in ascending BDF order.
void add_efa(InstanceType& type, model::Bdf bdf, int device_id, int numa_node, std::string pci_parent);

// "pci0000:10"
[[nodiscard]] std::string host_bridge(int bus);

// Downstream port of a switch by the bus of the device behind it: port i sits at slot i / 8, function i % 8 of the port
// bus and leads to bus port_bus + 2 + i (docs/reference/topology.md#trn2-eight-switches, inferred from one machine).
[[nodiscard]] std::string switch_port(int port_bus, int device_bus);

}  // namespace neuron::core::tables
