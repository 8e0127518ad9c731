#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/base/parse.h"
#include "agent/core/complete.h"
#include "agent/core/logical_cores.h"
#include "agent/metrics/families.h"

// Metrics with the agent's own names: devices, logical cores, EFA interfaces and counters, kernel log, the agent. A
// logical core has the id that the kubelet sees; counts of its physical cores are added up.
namespace neuron::metrics {
namespace {

using model::DeviceSignals;

constexpr double kPercent = 100;

// Names of their files (health/signals).
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

using model::CoreSignals;
using model::CoreUsage;
using Count = std::optional<std::uint64_t>;

constexpr double kMicroseconds = 1e-6;

constexpr std::array kHwErrors = {
    std::pair{&CoreSignals::hw_error, "hw_error"},
    std::pair{&CoreSignals::hw_nc_ue_error, "hw_nc_ue_error"},
    std::pair{&CoreSignals::hw_hbm_ue_error, "hw_hbm_ue_error"},
    std::pair{&CoreSignals::hw_dma_abort_error, "hw_dma_abort_error"},
    std::pair{&CoreSignals::hw_repairable_hbm_ue_error, "hw_repairable_hbm_ue_error"},
};

// The sum of a member over those of `cores` that are in `physical`; unknown when one of them is.
template <typename Core>
Count sum_of(const std::vector<Core>& cores, const std::vector<int>& physical, Count Core::*member) {
  Count sum;
  if (!physical.empty()) sum = 0;
  for (const int index : physical) {
    const auto found = std::ranges::find(cores, index, &Core::physical_index);
    core::add_bytes(sum, found == cores.end() ? Count() : (*found).*member);
  }
  return sum;
}

void add_usage(const model::DeviceUsage& usage, const std::vector<int>& physical, const Labels& labels,
               FamilySet& families) {
  if (const Count busy = sum_of(usage.cores, physical, &CoreUsage::busy_us)) {
    const double mean = static_cast<double>(*busy) / static_cast<double>(physical.size());
    families["neuron_core_busy_seconds_total"].add(labels, mean * kMicroseconds);
  }
  families["neuron_core_flops_total"].add(labels, sum_of(usage.cores, physical, &CoreUsage::flops));
  families["neuron_core_inferences_total"].add(labels, sum_of(usage.cores, physical, &CoreUsage::inferences));
  auto memory = families["neuron_core_memory_used_bytes"];
  memory.add(with(labels, {{"memory_location", "host"}}), sum_of(usage.cores, physical, &CoreUsage::host_memory_bytes));
  memory.add(with(labels, {{"memory_location", "neuron_device"}}),
             sum_of(usage.cores, physical, &CoreUsage::device_memory_bytes));
}

void add_core(const Scrape& scrape, const model::NeuronDevice& device, int id, int position, FamilySet& families) {
  const Labels place{{"neuroncore", std::to_string(id)}, {"neuron_device_index", std::to_string(device.index)}};
  const Labels labels = with(place, scrape.holders.of_core(id));
  const std::vector<int> physical = core::physical_cores_of(device, scrape.host, position);
  std::vector<int> ascending = physical;
  std::ranges::sort(ascending);
  families["neuron_core_info"].add(with(labels, {{"physical_cores", format_int_list(ascending)}}), 1);
  add_health(core::health_of_cores(device, physical), labels, families["neuron_core_healthy"],
             families["neuron_core_health_info"]);
  for (const auto& [member, name] : kHwErrors) {
    families["neuron_core_hw_errors_total"].add(with(labels, {{"kind", name}}), sum_of(device.cores, physical, member));
  }
  const auto* const usage = scrape.usage != nullptr ? model::find_device(scrape.usage->devices, device.index) : nullptr;
  if (usage != nullptr) add_usage(*usage, physical, labels, families);
}

std::string hex(std::uint16_t value) {
  std::array<char, 4> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value, 16);
  return std::string(digits.data(), end.ptr);
}

std::string file_of(const Metric& counter) {
  return std::string(counter.name.substr(kEfaCounterPrefix.size()));
}

// Of the interface with that RDMA name, which the usage sample may have from an older scan.
Labels holder_of(const Scrape& scrape, const std::string& name) {
  const auto& efas = scrape.host.efas;
  for (std::size_t position = 0; position < efas.size(); ++position) {
    if (efas[position].name == name) return scrape.holders.of_efa(static_cast<int>(position));
  }
  return scrape.holders.of_efa(-1);
}

using model::KernelErrorKind;
using model::KernelLogState;

std::string_view name_of(KernelErrorKind kind) {
  constexpr std::array<std::string_view, 7> kNames = {"sram", "core",        "hbm",  "hbm_repairable",
                                                      "dma",  "collectives", "other"};
  return kNames.at(static_cast<std::size_t>(kind));
}

std::string text_of(const std::optional<int>& number) {
  return number ? std::to_string(*number) : "";
}

// `counts`: by the label's value.
void add_counts(const std::map<std::string, std::uint64_t>& counts, const std::string& label,
                FamilySet::Family family) {
  for (const auto& [value, count] : counts) family.add({{label, value}}, static_cast<double>(count));
}

// Empty where bounds and counts do not match.
prometheus::ClientMetric::Histogram histogram_of(const Durations& durations) {
  prometheus::ClientMetric::Histogram histogram;
  if (durations.counts.size() != durations.bounds.size() + 1) return histogram;
  for (std::size_t i = 0; i < durations.counts.size(); ++i) {
    histogram.sample_count += durations.counts[i];
    const bool last = i == durations.bounds.size();
    const double bound = last ? std::numeric_limits<double>::infinity() : durations.bounds[i];
    histogram.bucket.push_back({histogram.sample_count, bound});
  }
  histogram.sample_sum = durations.sum_seconds;
  return histogram;
}

void add_scan(const Scrape& scrape, FamilySet& families) {
  families["neuron_agent_scans_total"].add({}, static_cast<double>(scrape.input.agent.scans));
  families["neuron_agent_last_scan_seconds"].add({}, scrape.input.agent.last_scan_seconds);
  if (const auto age = scrape.input.usage_age) families["neuron_agent_usage_age_seconds"].add({}, age->count());
  if (scrape.input.snapshot == nullptr) return;
  std::size_t problems = scrape.host.problems.size();
  for (const model::NeuronDevice& device : scrape.host.devices) problems += device.problems.size();
  for (const model::EfaInterface& efa : scrape.host.efas) problems += efa.problems.size();
  families["neuron_agent_scan_unanswered"].add({}, static_cast<double>(scrape.host.unanswered.size()));
  families["neuron_agent_scan_problems"].add({}, static_cast<double>(problems));
}

void add_offered(const Offered& offered, FamilySet& families) {
  const Labels labels{{"resource", std::string(resource_name(offered.resource))}};
  families["neuron_agent_units"].add(labels, offered.units);
  families["neuron_agent_units_healthy"].add(labels, offered.healthy);
  families["neuron_agent_units_held"].add(labels, offered.held);
  families["neuron_agent_units_free"].add(labels, offered.free);
  if (offered.largest_request) families["neuron_agent_largest_request_units"].add(labels, *offered.largest_request);
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
    const auto* const usage =
        scrape.usage != nullptr ? model::find_device(scrape.usage->devices, device.index) : nullptr;
    if (usage != nullptr) add_usage(*usage, labels, families);
  }
}

void add_cores(const Scrape& scrape, FamilySet& families) {
  for (const model::NeuronDevice& device : scrape.host.devices) {
    int position = 0;
    for (const int id : core::core_ids_of(device, scrape.host)) add_core(scrape, device, id, position++, families);
  }
}

void add_efas(const Scrape& scrape, FamilySet& families) {
  int position = 0;
  for (const model::EfaInterface& efa : scrape.host.efas) {
    const Labels place{{"device", efa.name}, {"bdf", to_string(efa.bdf)}};
    const Labels labels = with(place, scrape.holders.of_efa(position++));
    const std::string numa = efa.numa_node ? std::to_string(*efa.numa_node) : "";
    families["efa_info"].add(with(labels, {{"pci_device", hex(efa.pci_device_id)},
                                           {"numa_node", numa},
                                           {"driver_version", scrape.host.efa_driver_version}}),
                             1);
    add_presence(efa.presence, place, families["efa_present"]);
    add_health(efa.health, labels, families["efa_healthy"], families["efa_health_info"]);
  }
}

void add_efa_counters(const Scrape& scrape, FamilySet& families) {
  if (scrape.usage == nullptr) return;
  for (const model::EfaUsage& efa : scrape.usage->efas) {
    if (efa.counters.empty()) continue;
    const Labels labels = with({{"device", efa.name}, {"port", "1"}}, holder_of(scrape, efa.name));
    families["node_amazonefa_info"].add(labels, 1);
    // By the table: a driver may have further counters, of unknown meaning.
    for (const Metric& metric : metrics_of(Subject::efa_counters)) {
      if (metric.type != MetricType::counter) continue;
      const auto found = efa.counters.find(file_of(metric));
      if (found != efa.counters.end()) families[metric.name].add(labels, static_cast<double>(found->second));
    }
  }
}

void add_kernel_log(const Scrape& scrape, FamilySet& families) {
  const model::KernelLog& log = scrape.host.kernel_log;
  if (log.state == KernelLogState::off) return;
  families["neuron_kernel_log_reading"].add({}, log.state == KernelLogState::reading ? 1 : 0);
  families["neuron_kernel_log_lost_records_total"].add({}, static_cast<double>(log.lost_records));
  families["neuron_kernel_log_ignored_lines_total"].add({}, static_cast<double>(log.ignored_lines));
  add_health(log.node_health, {}, families["neuron_kernel_log_healthy"], families["neuron_kernel_log_health_info"]);
  for (const model::KernelLogError& error : log.errors) {
    const Labels place{{"neuron_device_index", text_of(error.device)},
                       {"physical_core", text_of(error.core)},
                       {"kind", std::string(name_of(error.kind))}};
    const Labels labels = with(place, scrape.holders.of_device(error.device.value_or(-1)));
    families["neuron_kernel_log_errors_total"].add(labels, static_cast<double>(error.lines));
  }
}

void add_agent(const Scrape& scrape, FamilySet& families) {
  const AgentFigures& agent = scrape.input.agent;
  families["neuron_agent_build_info"].add({{"version", agent.version}}, 1);
  families["neuron_agent_start_time_seconds"].add({}, agent.start_time_seconds);
  add_scan(scrape, families);
  for (const Offered& offered : scrape.input.offered) add_offered(offered, families);
  for (const auto& [resource, registered] : agent.registered) {
    families["neuron_agent_registered"].add({{"resource", resource}}, registered ? 1 : 0);
  }
  add_counts(agent.registrations, "resource", families["neuron_agent_registrations_total"]);
  add_counts(agent.allocations, "resource", families["neuron_agent_allocations_total"]);
  add_counts(agent.refusals, "reason", families["neuron_agent_refusals_total"]);
  add_counts(agent.calls_failed, "method", families["neuron_agent_calls_failed_total"]);
  add_counts(agent.api_calls, "outcome", families["neuron_agent_api_calls_total"]);
  for (const auto& [method, durations] : agent.calls) {
    auto histogram = histogram_of(durations);
    if (!histogram.bucket.empty())
      families["neuron_agent_call_seconds"].add({{"method", method}}, std::move(histogram));
  }
}

}  // namespace neuron::metrics
