#include "agent/core/memory_bounds.h"

#include <algorithm>
#include <string>

#include "agent/core/catalogue.h"

namespace neuron::core {
namespace {

using Bytes = std::optional<std::uint64_t>;

constexpr std::size_t kMaxProblems = 8;  // NeuronDevice::problems

// True when there was something to forget.
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
