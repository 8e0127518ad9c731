#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/core/complete.h"
#include "agent/core/logical_cores.h"
#include "agent/metrics/families.h"

// Metrics with neuron-monitor's names and labels (docs/reference/official-tools.md#prometheus-metrics).
// Those of runtimes come from what the driver reports of processes and cores; neuron-monitor asks the runtimes
// themselves (differences: docs/metrics.md).
namespace neuron::metrics {
namespace {

using model::DeviceMemoryKind;
using model::DeviceSignals;

constexpr double kPercent = 100;

constexpr std::array kMemoryKinds = {
    std::pair{DeviceMemoryKind::constants, "neuroncore_memory_usage_constants"},
    std::pair{DeviceMemoryKind::model_code, "neuroncore_memory_usage_model_code"},
    std::pair{DeviceMemoryKind::model_shared_scratchpad, "neuroncore_memory_usage_model_shared_scratchpad"},
    std::pair{DeviceMemoryKind::runtime_memory, "neuroncore_memory_usage_runtime_memory"},
    std::pair{DeviceMemoryKind::tensors, "neuroncore_memory_usage_tensors"},
};

constexpr std::array kEccEvents = {
    std::pair{&DeviceSignals::mem_ecc_corrected, "mem_ecc_corrected"},
    std::pair{&DeviceSignals::mem_ecc_uncorrected, "mem_ecc_uncorrected"},
    std::pair{&DeviceSignals::sram_ecc_corrected, "sram_ecc_corrected"},
    std::pair{&DeviceSignals::sram_ecc_uncorrected, "sram_ecc_uncorrected"},
};

void add_core(const Scrape& scrape, const core::CoreRates& core, FamilySet& families) {
  const model::NeuronDevice* const device = model::find_device(scrape.host.devices, core.device);
  const std::string tag = device != nullptr ? runtime_tag(*device, core.physical) : "";
  const Labels place = with(scrape.instance, {{"neuroncore", std::to_string(core.id)}, {"runtime_tag", tag}});
  const Labels labels = with(place, scrape.holders.of_core(core.id));
  if (core.utilization_percent) {
    families["neuroncore_utilization_ratio"].add(labels, *core.utilization_percent / kPercent);
  }
  // the value that neuron-monitor gives
  const Labels of_memory = with(labels, {{"memory_location", "None"}});
  for (const auto& [kind, name] : kMemoryKinds) {
    families[name].add(of_memory, core.device_memory[static_cast<std::size_t>(kind)]);
  }
}

void add_ecc(const Scrape& scrape, FamilySet::Family family) {
  for (const model::NeuronDevice& device : scrape.host.devices) {
    const Labels labels = with(with(scrape.instance, {{"neuron_device_index", std::to_string(device.index)}}),
                               scrape.holders.of_device(device.index));
    for (const auto& [value, name] : kEccEvents) {
      family.add(with(labels, {{"event_type", name}}), device.signals.*value);
    }
  }
}

void add_system(const Scrape& scrape, FamilySet& families) {
  if (scrape.usage == nullptr) return;
  const Labels& labels = scrape.instance;
  if (scrape.usage->cpu_count > 0) families["system_vcpu_count"].add(labels, scrape.usage->cpu_count);
  if (scrape.rates.cpu) {
    auto ratio = families["system_vcpu_usage_ratio"];
    ratio.add(with(labels, {{"usage_type", "user"}}), scrape.rates.cpu->user_percent / kPercent);
    ratio.add(with(labels, {{"usage_type", "system"}}), scrape.rates.cpu->system_percent / kPercent);
  }
  const auto& memory = scrape.usage->memory;
  if (!memory) return;
  const auto used = [](std::uint64_t total, std::uint64_t free) {
    return static_cast<double>(total > free ? total - free : 0);
  };
  families["system_memory_total_bytes"].add(labels, static_cast<double>(memory->total_bytes));
  families["system_memory_used_bytes"].add(labels, used(memory->total_bytes, memory->available_bytes));
  families["system_swap_total_bytes"].add(labels, memory->swap_total_bytes);
  if (memory->swap_total_bytes && memory->swap_free_bytes) {
    families["system_swap_used_bytes"].add(labels, used(*memory->swap_total_bytes, *memory->swap_free_bytes));
  }
}

void add_hardware(const Scrape& scrape, FamilySet::Family family) {
  const auto& devices = scrape.host.devices;
  if (devices.empty()) return;
  Labels labels = with(scrape.instance, {{"neuron_device_count", std::to_string(devices.size())}});
  const int cores = core::cores_per_device(scrape.host);
  if (cores > 0) labels.push_back({"neuroncore_per_device_count", std::to_string(cores)});
  const auto& memory = devices.front().memory_bytes;
  if (memory) labels.push_back({"neuron_device_memory_size", std::to_string(*memory)});
  family.add(labels, 1);
}

using model::CoreSignals;
using model::ExecutionStatus;

using Bytes = std::optional<std::uint64_t>;

struct Memory {
  Bytes host = 0;
  Bytes device = 0;

  void add(const Bytes& more_host, const Bytes& more_device) {
    core::add_bytes(host, more_host);
    core::add_bytes(device, more_device);
  }
};

// By one process on all devices.
struct Used {
  Memory memory;
  std::optional<Labels> holder;  // of its cores or devices; nullopt before the first
};

// Adds the container that holds the cores of a process, or the device where the driver names no core; no container when
// there are several.
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

// By pid; nullopt without processes, or where the memory of one is unknown.
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

// Sums over the physical cores of a logical one; unknown when one of them is.
struct Counts {
  model::ExecutionCounts by_status;
  Bytes hardware;

  [[nodiscard]] const Bytes& of(ExecutionStatus status) const { return by_status[static_cast<std::size_t>(status)]; }
};

template <typename Core>
const Core* find_core(const std::vector<Core>& cores, int physical) {
  const auto found = std::ranges::find(cores, physical, &Core::physical_index);
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

void add_monitored_cores(const Scrape& scrape, FamilySet& families) {
  for (const core::CoreRates& core : scrape.rates.cores) add_core(scrape, core, families);
}

void add_machine(const Scrape& scrape, FamilySet& families) {
  add_ecc(scrape, families["hardware_ecc_events_total"]);
  add_system(scrape, families);
  add_hardware(scrape, families["neuron_hardware_info"]);
  families["instance_info"].add(scrape.instance, 1);
}

void add_runtimes(const Scrape& scrape, FamilySet& families) {
  add_used_memory(scrape, families["neuron_runtime_memory_used_bytes"]);
  add_vcpus(scrape, families["neuron_runtime_vcpu_usage_ratio"]);
}

void add_executions(const Scrape& scrape, FamilySet& families) {
  auto statuses = families["execution_status_total"];
  auto errors = families["execution_errors_total"];
  for (const core::CoreRates& core : scrape.rates.cores) {
    const auto* const device = model::find_device(scrape.host.devices, core.device);
    const auto* const usage = model::find_device(scrape.usage->devices, core.device);
    if (device == nullptr || usage == nullptr) continue;
    const Counts counts = counts_of(*device, *usage, core.physical);
    // A core counts for all processes that used it: a pid would be wrong.
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
