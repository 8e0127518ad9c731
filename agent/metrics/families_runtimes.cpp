#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/core/logical_cores.h"
#include "agent/core/memory_bounds.h"
#include "agent/metrics/families_parts.h"

// neuron-monitor's metrics of runtimes, as far as the driver tells of processes and cores. neuron-monitor asks the
// runtimes themselves (docs/metrics.md says what is different).
namespace neuron::metrics {
namespace {

using model::CoreSignals;
using model::ExecutionStatus;

constexpr double kPercent = 100;

using Bytes = std::optional<std::uint64_t>;

struct Memory {
  Bytes host = 0;
  Bytes device = 0;

  void add(const Bytes& more_host, const Bytes& more_device) {
    core::add_bytes(host, more_host);
    core::add_bytes(device, more_device);
  }
};

// What a process uses on all devices.
struct Used {
  Memory memory;
  std::optional<Labels> holder;  // of what it is on; nullopt before the first
};

// The container that holds the cores that a process is on, or the device where the driver names no core; nobody's as
// soon as there are two.
void add_holder(const Scrape& scrape, const model::NeuronDevice& device, const model::Process& process,
                std::optional<Labels>& holder) {
  const auto merge = [&](const Labels& one) {
    if (holder.value_or(one) == one) {
      holder = one;
    } else {
      holder = scrape.holders.of_core(-1);
    }
  };
  bool names_cores = false;
  const std::vector<int> ids = core::core_ids_of(device, scrape.host);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (!is_on(process, core::physical_cores_of(device, scrape.host, static_cast<int>(i)))) continue;
    names_cores = true;
    merge(scrape.holders.of_core(ids[i]));
  }
  if (!names_cores) merge(scrape.holders.of_device(device.index));
}

// By pid; nullopt where there are no processes, or not all memory is told.
std::optional<std::map<int, Used>> used_by_processes(const Scrape& scrape) {
  std::map<int, Used> processes;
  for (const model::NeuronDevice& device : scrape.host.devices) {
    if (!device.processes) continue;
    for (const model::Process& process : *device.processes) {
      if (!process.host_memory_bytes || !process.device_memory_bytes) return std::nullopt;
      Used& used = processes[process.pid];
      used.memory.add(process.host_memory_bytes, process.device_memory_bytes);
      add_holder(scrape, device, process, used.holder);
    }
  }
  return processes.empty() ? std::nullopt : std::optional(std::move(processes));
}

void add_memory(const Memory& memory, const Labels& labels, FamilySet::Family family) {
  family.add(with(labels, {{"memory_location", "host"}}), memory.host);
  family.add(with(labels, {{"memory_location", "neuron_device"}}), memory.device);
}

void add_used_memory(const Scrape& scrape, FamilySet::Family family) {
  if (const auto processes = used_by_processes(scrape)) {
    for (const auto& [pid, used] : *processes) {
      const Labels labels = with(scrape.instance, {{"runtime_tag", std::to_string(pid)}});
      add_memory(used.memory, with(labels, *used.holder), family);
    }
    return;
  }
  std::map<Labels, Memory> containers;
  for (const core::CoreRates& core : scrape.rates.cores) {
    containers[scrape.holders.of_core(core.id)].add(core.host_memory_bytes, core.device_memory_bytes);
  }
  for (const auto& [holder, memory] : containers) {
    add_memory(memory, with(with(scrape.instance, {{"runtime_tag", ""}}), holder), family);
  }
}

void add_vcpus(const Scrape& scrape, FamilySet::Family family) {
  for (const core::ProcessRates& process : scrape.rates.processes) {
    if (!process.user_percent || !process.system_percent) continue;
    const Labels labels = with(scrape.instance, {{"runtime_tag", std::to_string(process.pid)}});
    family.add(with(labels, {{"usage_type", "user"}}), *process.user_percent / kPercent);
    family.add(with(labels, {{"usage_type", "system"}}), *process.system_percent / kPercent);
  }
}

constexpr std::array kStatusTypes = {
    std::pair{ExecutionStatus::success, "completed"},
    std::pair{ExecutionStatus::execute_completed_with_error, "completed_with_err"},
    std::pair{ExecutionStatus::execute_completed_with_num_error, "completed_with_num_err"},
    std::pair{ExecutionStatus::timeout, "timed_out"},
    std::pair{ExecutionStatus::exec_bad_input, "incorrect_input"},
    std::pair{ExecutionStatus::execute_failed_to_queue, "failed_to_queue"},
};

constexpr std::array kHardwareErrors = {&CoreSignals::hw_error, &CoreSignals::hw_hbm_ue_error,
                                        &CoreSignals::hw_nc_ue_error, &CoreSignals::hw_dma_abort_error,
                                        &CoreSignals::hw_repairable_hbm_ue_error};

// What the physical cores behind a logical one counted, added up; unknown as soon as one is.
struct Counts {
  model::ExecutionCounts by_status;
  Bytes hardware;

  [[nodiscard]] const Bytes& of(ExecutionStatus status) const { return by_status[static_cast<std::size_t>(status)]; }
};

template <typename Core>
const Core* find_core(const std::vector<Core>& cores, int physical) {
  const auto found = std::find_if(cores.begin(), cores.end(),
                                  [physical](const Core& core) { return core.physical_index == physical; });
  return found == cores.end() ? nullptr : &*found;
}

Counts counts_of(const model::NeuronDevice& device, const model::DeviceUsage& usage, const std::vector<int>& physical) {
  Counts counts;
  if (physical.empty()) return counts;
  counts.by_status.fill(0);
  counts.hardware = 0;
  for (const int index : physical) {
    const auto* const core = find_core(usage.cores, index);
    const auto* const signals = find_core(device.cores, index);
    if (core == nullptr || signals == nullptr) return {};
    for (std::size_t i = 0; i < core->executions.size(); ++i) core::add_bytes(counts.by_status[i], core->executions[i]);
    core::add_bytes(counts.hardware, core->executions[static_cast<std::size_t>(ExecutionStatus::hw_collectives_error)]);
    for (const auto error : kHardwareErrors) core::add_bytes(counts.hardware, signals->*error);
  }
  return counts;
}

}  // namespace

void add_runtimes(const Scrape& scrape, FamilySet& families) {
  add_used_memory(scrape, families["neuron_runtime_memory_used_bytes"]);
  add_vcpus(scrape, families["neuron_runtime_vcpu_usage_ratio"]);
}

void add_executions(const Scrape& scrape, FamilySet& families) {
  auto statuses = families["execution_status_total"];
  auto errors = families["execution_errors_total"];
  for (const core::CoreRates& core : scrape.rates.cores) {
    const auto* const device = find_device(scrape.host, core.device);
    const auto* const usage = find_device(*scrape.usage, core.device);
    if (device == nullptr || usage == nullptr) continue;
    const Counts counts = counts_of(*device, *usage, core.physical);
    // One core counts for all processes that used it, so that a pid would be wrong.
    const Labels place = with(scrape.instance, {{"runtime_tag", ""}, {"neuroncore", std::to_string(core.id)}});
    const Labels labels = with(place, scrape.holders.of_core(core.id));
    for (const auto& [status, name] : kStatusTypes)
      statuses.add(with(labels, {{"status_type", name}}), counts.of(status));
    errors.add(with(labels, {{"error_type", "generic"}}), counts.of(ExecutionStatus::generic_error));
    errors.add(with(labels, {{"error_type", "numerical"}}),
               counts.of(ExecutionStatus::execute_completed_with_num_error));
    errors.add(with(labels, {{"error_type", "hardware"}}), counts.hardware);
  }
}

}  // namespace neuron::metrics
