#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/base/parse.h"
#include "agent/core/logical_cores.h"
#include "agent/core/memory_bounds.h"
#include "agent/metrics/families_parts.h"

// Logical cores, by the ids that the kubelet is told of. What their physical cores counted is added up.
namespace neuron::metrics {
namespace {

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

// A member of those of `cores` that are in `physical`, added up; unknown as soon as one is.
template <typename Core>
Count sum_of(const std::vector<Core>& cores, const std::vector<int>& physical, Count Core::*member) {
  Count sum;
  if (!physical.empty()) sum = 0;
  for (const int index : physical) {
    const auto found =
        std::find_if(cores.begin(), cores.end(), [index](const Core& core) { return core.physical_index == index; });
    core::add_bytes(sum, found == cores.end() ? Count() : (*found).*member);
  }
  return sum;
}

const model::Health& health_of(const model::NeuronDevice& device, const std::vector<int>& physical) {
  const model::Health* worst = nullptr;
  for (const int index : physical) {
    const auto place = static_cast<std::size_t>(index);
    if (place >= device.core_health.size()) continue;
    const model::Health& health = device.core_health[place];
    if (worst == nullptr || badness(health.state) > badness(worst->state)) worst = &health;
  }
  return worst != nullptr ? *worst : device.health;
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
  std::sort(ascending.begin(), ascending.end());
  families["neuron_core_info"].add(with(labels, {{"physical_cores", format_int_list(ascending)}}), 1);
  add_health(health_of(device, physical), labels, families["neuron_core_healthy"], families["neuron_core_health_info"]);
  for (const auto& [member, name] : kHwErrors) {
    families["neuron_core_hw_errors_total"].add(with(labels, {{"kind", name}}), sum_of(device.cores, physical, member));
  }
  const auto* const usage = scrape.usage != nullptr ? find_device(*scrape.usage, device.index) : nullptr;
  if (usage != nullptr) add_usage(*usage, physical, labels, families);
}

}  // namespace

void add_cores(const Scrape& scrape, FamilySet& families) {
  for (const model::NeuronDevice& device : scrape.host.devices) {
    int position = 0;
    for (const int id : core::core_ids_of(device, scrape.host)) add_core(scrape, device, id, position++, families);
  }
}

}  // namespace neuron::metrics
