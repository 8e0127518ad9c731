#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "agent/core/memory_bounds.h"
#include "agent/metrics/families_parts.h"

namespace neuron::metrics {
namespace {

using model::DeviceSignals;

constexpr double kPercent = 100;

// Named like their files (health/signals).
constexpr std::array kEccEvents = {
    std::pair{&DeviceSignals::sram_ecc_uncorrected, "sram_ecc_uncorrected"},
    std::pair{&DeviceSignals::sram_ecc_corrected, "sram_ecc_corrected"},
    std::pair{&DeviceSignals::mem_ecc_uncorrected, "mem_ecc_uncorrected"},
    std::pair{&DeviceSignals::mem_ecc_corrected, "mem_ecc_corrected"},
    std::pair{&DeviceSignals::mem_ecc_repairable_uncorrected, "mem_ecc_repairable_uncorrected"},
    std::pair{&DeviceSignals::sram_ecc_errors, "sram_ecc_err_count"},
    std::pair{&DeviceSignals::hbm_ecc_errors, "hbm_ecc_err_count"},
    std::pair{&DeviceSignals::repairable_hbm_ecc_errors, "repairable_hbm_ecc_err_count"},
};

Labels facts_of(const model::NeuronDevice& device, const std::string& driver_version) {
  return {{"family", device.family ? std::string(to_string(*device.family)) : ""},
          {"serial", device.serial.value_or("")},
          {"bdf", device.bdf ? to_string(device.bdf->value) : ""},
          {"numa_node", device.numa_node ? std::to_string(device.numa_node->value) : ""},
          {"driver_version", driver_version}};
}

void add_signals(const DeviceSignals& signals, const Labels& labels, FamilySet& families) {
  for (const auto& [value, name] : kEccEvents) {
    families["neuron_device_ecc_events_total"].add(with(labels, {{"event_type", name}}), signals.*value);
  }
  families["neuron_device_hw_error_events_total"].add(labels, signals.hw_error_events);
  if (signals.unhealthy_components) {
    families["neuron_device_unhealthy_components"].add(labels,
                                                       static_cast<double>(signals.unhealthy_components->size()));
  }
}

std::optional<std::uint64_t> used_memory(const model::DeviceUsage& usage) {
  std::optional<std::uint64_t> used;
  if (!usage.cores.empty()) used = 0;
  for (const model::CoreUsage& core : usage.cores) core::add_bytes(used, core.device_memory_bytes);
  return used;
}

void add_usage(const model::DeviceUsage& usage, const Labels& labels, FamilySet& families) {
  families["neuron_device_memory_used_bytes"].add(labels, used_memory(usage));
  for (std::size_t i = 0; i < usage.host_memory.size(); ++i) {
    const std::string kind(to_string(static_cast<model::HostMemoryKind>(i)));
    families["neuron_device_host_memory_used_bytes"].add(with(labels, {{"kind", kind}}), usage.host_memory[i]);
  }
  if (!usage.power) return;
  auto power = families["neuron_device_power_ratio"];
  power.add(with(labels, {{"statistic", "min"}}), usage.power->min_percent / kPercent);
  power.add(with(labels, {{"statistic", "avg"}}), usage.power->average_percent / kPercent);
  power.add(with(labels, {{"statistic", "max"}}), usage.power->max_percent / kPercent);
}

}  // namespace

void add_devices(const Scrape& scrape, FamilySet& families) {
  for (const model::NeuronDevice& device : scrape.host.devices) {
    const Labels place{{"neuron_device_index", std::to_string(device.index)}};
    const Labels labels = with(place, scrape.holders.of_device(device.index));
    families["neuron_device_info"].add(with(labels, facts_of(device, scrape.host.driver_version)), 1);
    add_presence(device.presence, place, families["neuron_device_present"]);
    add_health(device.health, labels, families["neuron_device_healthy"], families["neuron_device_health_info"]);
    add_signals(device.signals, labels, families);
    families["neuron_device_memory_bytes"].add(labels, device.memory_bytes);
    if (device.processes) {
      families["neuron_device_processes"].add(labels, static_cast<double>(device.processes->size()));
    }
    const auto* const usage = scrape.usage != nullptr ? find_device(*scrape.usage, device.index) : nullptr;
    if (usage != nullptr) add_usage(*usage, labels, families);
  }
}

}  // namespace neuron::metrics
