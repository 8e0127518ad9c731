#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tools/kubectl-neuron/fit.h"

// Processor time, memory, places for pods and resources of other projects. fit() does not look at them; `why` does, so
// that no change is said to let a pod in that lacks them. Pure.
namespace neuron::fleet {

// Resources of a node's `allocatable` that amounts_of() leaves out; cpu in thousandths. Foreign JSON, bounded.
[[nodiscard]] Amounts others_of(const nlohmann::json& amounts, const std::set<std::string>& more);
// Those that a pod asks for, as the scheduler counts them; of pods that ended nothing. "pods": 1.
[[nodiscard]] Amounts others_of_pod(const nlohmann::json& pod, const std::set<std::string>& more);

// Takes what placed pods ask for from their nodes' Node::others; the demands of those that neither wait nor hold
// hardware are then dropped.
void settle_others(Fleet& fleet);

void take_others(const Pod& pod, Node& node);
void give_back_others(const Pod& pod, Node& node);

// What the pod asks for and the node has too little of, or does not list: kinds other_resource and no_resource.
[[nodiscard]] std::vector<Obstacle> other_obstacles(const Pod& pod, const Node& node);

}  // namespace neuron::fleet
