#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "agent/core/logical_cores.h"
#include "agent/metrics/families_parts.h"

// Metrics with neuron-monitor's names and labels (docs/reference/official-tools.md#prometheus-metrics).
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
  const model::NeuronDevice* const device = find_device(scrape.host, core.device);
  const std::string tag = device != nullptr ? runtime_tag(*device, core.physical) : "";
  const Labels place = with(scrape.instance, {{"neuroncore", std::to_string(core.id)}, {"runtime_tag", tag}});
  const Labels labels = with(place, scrape.holders.of_core(core.id));
  if (core.utilization_percent) {
    families["neuroncore_utilization_ratio"].add(labels, *core.utilization_percent / kPercent);
  }
  // neuron-monitor's own odd value
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

}  // namespace neuron::metrics
