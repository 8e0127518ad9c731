#include "agent/core/complete.h"

#include <algorithm>

#include "agent/base/parse.h"
#include "agent/core/catalogue.h"
#include "agent/core/memory_bounds.h"

namespace neuron::core {
namespace {

using model::HostScan;
using model::NeuronDevice;
using model::Origin;

constexpr int kMaxCpu = 4095;

template <typename T>
model::Sourced<T> assumed(T value) {
  return {std::move(value), Origin::assumed};
}

// The facts of this device by its instance type; nullptr when the type says nothing about it.
const DeviceFacts* facts_of(const NeuronDevice& device, const InstanceType* type) {
  if (type == nullptr || !type->family || (device.family && *device.family != *type->family)) return nullptr;
  if (device.index < 0 || device.index >= type->device_count) return nullptr;
  return &type->devices[static_cast<std::size_t>(device.index)];
}

bool machine_has_numa_node(const HostScan& scan, int node) {
  if (node < 0 || scan.numa_nodes.empty()) return true;
  return std::any_of(scan.numa_nodes.begin(), scan.numa_nodes.end(), [&](const auto& n) { return n.index == node; });
}

// CPUs of a NUMA node: the machine's own answer, else the table. Node -1: every CPU of a machine with one node.
std::optional<std::vector<int>> cpus_of_node(const HostScan& scan, const InstanceType& type, int node) {
  if (node < 0 && scan.numa_nodes.size() == 1) return scan.numa_nodes.front().cpus;
  for (const model::NumaNode& live : scan.numa_nodes) {
    if (live.index == node) return live.cpus;
  }
  for (const NumaFacts& facts : type.numa) {
    if (facts.index != node && !(node < 0 && type.numa.size() == 1)) continue;
    if (auto cpus = parse_int_list(facts.cpu_list, kMaxCpu)) return *std::move(cpus);
  }
  return std::nullopt;
}

void complete_locality(NeuronDevice& device, const HostScan& scan, const InstanceType& type, const DeviceFacts& facts) {
  if (!device.bdf && facts.bdf && type.bdf_is_stable) device.bdf = assumed(*facts.bdf);
  if (!type.numa_is_known) return;
  if (!device.numa_node && machine_has_numa_node(scan, facts.numa_node)) device.numa_node = assumed(facts.numa_node);
  if (device.cpus || !device.numa_node) return;
  if (auto cpus = cpus_of_node(scan, type, device.numa_node->value)) device.cpus = assumed(*std::move(cpus));
}

// The driver prints an empty list for all when one of 16 devices is missing
// (docs/reference/driver.md#connected-devices), so an empty live list is silence wherever the table has neighbours.
void complete_neighbours(NeuronDevice& device, const InstanceType& type, const DeviceFacts& facts) {
  if (device.neighbours && (!device.neighbours->value.empty() || facts.neighbours.empty())) return;
  if (type.shape == TopologyShape::unknown) return;
  device.neighbours = assumed(facts.neighbours);
}

void complete_device(NeuronDevice& device, const HostScan& scan, const InstanceType* type) {
  const DeviceFacts* facts = facts_of(device, type);
  const auto family = device.family ? device.family : facts != nullptr ? type->family : std::nullopt;
  if (family) {
    const FamilyFacts chip = family_facts(*family);
    if (!device.physical_cores) device.physical_cores = assumed(chip.physical_cores);
    if (!device.memory_bytes) device.memory_bytes = chip.memory_bytes;
  }
  if (facts == nullptr) return;
  complete_neighbours(device, *type, *facts);
  complete_locality(device, scan, *type, *facts);
}

std::optional<int> default_lnc(const HostScan& scan, const InstanceType* type) {
  if (scan.devices.empty()) return std::nullopt;
  for (const NeuronDevice& device : scan.devices) {
    if (device.family) return family_facts(*device.family).default_lnc;
  }
  if (type != nullptr && type->family) return type->default_lnc;
  return std::nullopt;
}

}  // namespace

HostScan complete(HostScan scan) {
  const InstanceType* type = find_instance_type(scan.instance_type);
  for (NeuronDevice& device : scan.devices) complete_device(device, scan, type);
  const auto lnc = default_lnc(scan, type);
  // The default is the most that a chip can do: cores are joined where it is 2, and nowhere else.
  if (scan.lnc && lnc && scan.lnc->value > *lnc) {
    scan.problems.push_back({model::ProblemKind::lnc_file, "opt/aws/neuron/logical_nc_config",
                             "asks for LNC " + std::to_string(scan.lnc->value) + ", but these chips support only " +
                                 std::to_string(*lnc) + "; it is ignored"});
    scan.lnc.reset();
  }
  if (!scan.lnc && lnc) scan.lnc = assumed(*lnc);
  forget_impossible_memory(scan);
  return scan;
}

}  // namespace neuron::core
