#pragma once

#include <vector>

#include "agent/model/resource.h"

namespace neuron::plugin {

// The ids that a scheduler extender has chosen for a container. Passive data.
struct PlacedIds {
  model::Resource of{};  // neuron: device indices; neuroncore: logical cores
  std::vector<int> ids;  // ascending, each once
  friend bool operator==(const PlacedIds&, const PlacedIds&) = default;
};

}  // namespace neuron::plugin
