#include "agent/health/cores.h"

#include <algorithm>

#include "agent/health/signals.h"

namespace neuron::health {
namespace {

using model::CoreSignals;
using model::Health;
using model::NeuronDevice;

// How much the counter grew since it was first seen.
std::uint64_t growth_of(const CoreSignals& core, const CoreSignal& signal,
                        std::map<int, HealthMemory::CoreBaseline>& baselines) {
  const auto& count = core.*signal.value;
  if (!count) return 0;
  auto& counters = baselines[core.physical_index].counters;
  std::uint64_t& baseline = counters.try_emplace(std::string(signal.reason->code), *count).first->second;
  baseline = std::min(baseline, *count);
  return *count - baseline;
}

Health fault_of(const std::string& name, int core, const CoreSignal& signal, std::uint64_t growth) {
  const std::string number = std::to_string(core);
  return verdict(*signal.reason, name + ": core " + number + " counted " + std::to_string(growth) +
                                     " new hardware error" + (growth == 1 ? "" : "s") + " (neuron_core" + number + '/' +
                                     std::string(signal.path) + ")");
}

// Cores that the driver counts and shows no folder for: masked out (dev_nc_map), or not made yet. Where it shows no
// folder at all, the layout has none.
void add_missing(const NeuronDevice& device, const std::string& name, CoreFaults& faults) {
  if (device.cores.empty() || !device.physical_cores) return;
  for (int core = 0; core < device.physical_cores->value; ++core) {
    const auto is_it = [&](const CoreSignals& shown) { return shown.physical_index == core; };
    if (std::any_of(device.cores.begin(), device.cores.end(), is_it)) continue;
    Health health = verdict(reasons::kCoreMissing, name + ": core " + std::to_string(core) +
                                                       " is included in core_count, but has no directory neuron_core" +
                                                       std::to_string(core));
    if (!faults.worst_core) faults.worst_core = health;
    faults.of_cores.try_emplace(core, std::move(health));
  }
}

}  // namespace

CoreFaults find_core_faults(const NeuronDevice& device, const std::string& name,
                            std::map<int, HealthMemory::CoreBaseline>& baselines) {
  CoreFaults faults;
  // Reads every counter, so that no baseline is missed.
  for (const CoreSignal& signal : core_signals()) {
    if (signal.weight != Weight::required) continue;
    for (const CoreSignals& core : device.cores) {
      const std::uint64_t growth = growth_of(core, signal, baselines);
      if (growth == 0) continue;
      Health health = fault_of(name, core.physical_index, signal, growth);
      if (signal.reach == Reach::device) {
        if (!faults.of_device) faults.of_device = std::move(health);
        continue;
      }
      if (!faults.worst_core) faults.worst_core = health;
      faults.of_cores.try_emplace(core.physical_index, std::move(health));
    }
  }
  add_missing(device, name, faults);
  return faults;
}

}  // namespace neuron::health
