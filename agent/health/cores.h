#pragma once

#include <map>
#include <optional>
#include <string>

#include "agent/health/policy.h"

// The part of the health policy that is about a device's cores. Pure.
namespace neuron::health {

struct CoreFaults {
  std::optional<model::Health> of_device;   // a fault met by a core in what all cores share
  std::map<int, model::Health> of_cores;    // physical core -> a fault of its own, or that it has no folder
  std::optional<model::Health> worst_core;  // the gravest of `of_cores`
};

// Compares the counters of a completed device with the values first seen, `baselines`, by physical core. Adds baselines
// of cores that are new, and lowers those whose counter was cleared. `name`: "neuron3".
[[nodiscard]] CoreFaults find_core_faults(const model::NeuronDevice& device, const std::string& name,
                                          std::map<int, HealthMemory::CoreBaseline>& baselines);

}  // namespace neuron::health
