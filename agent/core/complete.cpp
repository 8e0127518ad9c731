#include "agent/core/complete.h"

#include <algorithm>
#include <string>

#include "agent/base/parse.h"
#include "agent/core/catalogue.h"

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

// The facts of this device by its instance type; nullptr when there are none.
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
// (docs/reference/driver.md#connected-devices), so an empty live list is unknown wherever the table has neighbours.
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

using Bytes = std::optional<std::uint64_t>;

constexpr std::size_t kMaxProblems = 8;  // NeuronDevice::problems

// True when the value was above.
bool forget_above(Bytes& bytes, std::uint64_t most) {
  if (!bytes || *bytes <= most) return false;
  bytes.reset();
  return true;
}

std::uint64_t host_memory_of(const model::HostScan& scan) {
  const InstanceType* type = find_instance_type(scan.instance_type);
  if (type == nullptr || type->host_memory_gib <= 0) return kMoreThanAnyMemory;
  return static_cast<std::uint64_t>(type->host_memory_gib) << 30U;
}

void forget_in(model::NeuronDevice& device, std::uint64_t host_memory) {
  const std::uint64_t device_memory = device.memory_bytes.value_or(kMoreThanAnyMemory);
  for (model::CoreSignals& core : device.cores) {
    if (!forget_above(core.device_memory_bytes, device_memory) || device.problems.size() >= kMaxProblems) continue;
    device.problems.push_back({model::ProblemKind::file,
                               "sys/class/neuron_device/neuron" + std::to_string(device.index) + "/neuron_core" +
                                   std::to_string(core.physical_index) + "/stats/memory_usage/device_mem/total",
                               "more than the device has"});
  }
  if (!device.processes) return;
  for (model::Process& process : *device.processes) {
    forget_above(process.device_memory_bytes, device_memory);
    forget_above(process.host_memory_bytes, host_memory);
  }
}

std::uint64_t device_memory_of(const model::HostScan& scan, int index) {
  const auto found = std::find_if(scan.devices.begin(), scan.devices.end(),
                                  [index](const model::NeuronDevice& device) { return device.index == index; });
  return found == scan.devices.end() ? kMoreThanAnyMemory : found->memory_bytes.value_or(kMoreThanAnyMemory);
}

}  // namespace

HostScan complete(HostScan scan) {
  const InstanceType* type = find_instance_type(scan.instance_type);
  for (NeuronDevice& device : scan.devices) complete_device(device, scan, type);
  const auto lnc = default_lnc(scan, type);
  // The default is a chip's maximum: cores are joined only where it is 2.
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

void forget_impossible_memory(model::HostScan& scan) {
  const std::uint64_t host_memory = host_memory_of(scan);
  for (model::NeuronDevice& device : scan.devices) forget_in(device, host_memory);
}

void forget_impossible_memory(model::UsageSample& sample, const model::HostScan& scan) {
  const std::uint64_t host_memory = sample.memory ? sample.memory->total_bytes : host_memory_of(scan);
  for (model::DeviceUsage& device : sample.devices) {
    const std::uint64_t device_memory = device_memory_of(scan, device.index);
    for (Bytes& bytes : device.host_memory) forget_above(bytes, host_memory);
    for (model::CoreUsage& core : device.cores) {
      forget_above(core.device_memory_bytes, device_memory);
      forget_above(core.host_memory_bytes, host_memory);
      for (Bytes& bytes : core.device_memory) forget_above(bytes, device_memory);
    }
  }
  for (model::ProcessUsage& process : sample.processes) forget_above(process.resident_bytes, host_memory);
}

}  // namespace neuron::core
