#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/base/result.h"
#include "agent/core/catalogue.h"
#include "tools/neuron-sim/host_plan.h"

namespace neuron::sim {

// One PCI function as it will stand in sysfs.
struct PciFunction {
  model::Bdf bdf;
  std::string path;  // "sys/devices/pci0000:10/0000:10:1b.0"
  std::uint16_t vendor = 0x1d0f;
  std::uint16_t device = 0;
  std::uint32_t class_code = 0;  // 24 bits, 0x088000
  int numa_node = -1;
  std::string driver;  // "" = unbound
};

// A bridge or switch port on the way to a function; the buses are those below it.
struct PciBridge {
  PciFunction function;
  std::uint8_t secondary_bus = 0;
  std::uint8_t subordinate_bus = 0;
};

struct NeuronFunction {
  int index = 0;  // the driver's N
  std::string serial;
  std::vector<int> neighbours;  // as the driver prints them: empty when it cannot know
  PciFunction pci;
};

// An RDMA-capable function: EFA, or the ConnectX that some GPU nodes carry for themselves.
struct RdmaFunction {
  std::string name;
  bool is_efa = true;
  int uverbs = 0;  // N of uverbsN; on purpose not in the order of the names
  PciFunction pci;
};

// Everything about a node that must be decided before files are written. Deterministic: no clock, no randomness.
struct MachinePlan {
  const core::InstanceType* type = nullptr;  // never null
  HostPlan options;                          // driver_version and instance_id filled in
  DriverGeneration driver;
  Platform platform = Platform::standard;
  std::vector<NeuronFunction> neurons;  // ascending index, without the missing ones
  std::vector<RdmaFunction> rdma;       // ascending BDF
  std::vector<PciFunction> others;      // an ENA and an NVMe function, as on every node
  std::vector<PciBridge> bridges;       // ascending BDF

  [[nodiscard]] bool has_driver() const { return type->family && !options.without.contains(Part::driver); }
  [[nodiscard]] bool has_uverbs() const { return !rdma.empty() && !options.without.contains(Part::uverbs); }
};

// Errors: invalid_argument, see write_host.
[[nodiscard]] Result<MachinePlan> plan_machine(const HostPlan& plan);

// A made-up but stable 64-bit number for a text: serial numbers, MAC addresses, instance ids.
[[nodiscard]] std::uint64_t stable_number(std::string_view text);

}  // namespace neuron::sim
