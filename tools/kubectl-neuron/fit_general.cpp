#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

#include "agent/model/resource.h"
#include "tools/kubectl-neuron/fit.h"

// Processor time, memory, pods and resources of other drivers: allocatable less the requests of pods.
namespace neuron::fleet {
namespace {

using Kind = Obstacle::Kind;

constexpr const char* kPods = "pods";

// A node that does not list it has none; without "cpu" in its list it is only incomplete, and a device class may be
// asked for by such a name (KEP-5004).
bool is_listed_by_nodes_with_it(const std::string& name) {
  if (name.starts_with("deviceclass.resource.kubernetes.io/")) return false;
  return name.find('/') != std::string::npos || name.starts_with("hugepages-");
}

}  // namespace

Amounts general_amounts(const Pod& pod) {
  Amounts all = pod.general;
  all[kPods] = kWholeUnit;
  return all;
}

void take_general(const Pod& pod, std::int64_t pods, NodeState& state) {
  if (!state.general) return;
  for (const auto& [name, amount] : general_amounts(pod)) {
    std::int64_t used = 0;
    std::int64_t& free = state.general->free[name];
    const bool is_huge = __builtin_mul_overflow(amount, pods, &used) || __builtin_sub_overflow(free, used, &free);
    if (is_huge) free = std::numeric_limits<std::int64_t>::min();
  }
}

void count_general(const Fleet& fleet, std::vector<NodeState>& states) {
  for (std::size_t i = 0; i < states.size() && i < fleet.nodes.size(); ++i) {
    const Amounts& listed = fleet.nodes[i].general;
    states[i].general = General{listed, listed};
    for (const Pod& pod : states[i].pods) take_general(pod, 1, states[i]);
  }
}

std::vector<Obstacle> general_obstacles(const Pod& pod, const NodeState& state) {
  std::vector<Obstacle> all;
  if (!state.general) return all;
  for (const auto& [name, asked] : general_amounts(pod)) {
    const auto total = state.general->allocatable.find(name);
    const bool is_listed = total != state.general->allocatable.end();
    if (!is_listed && is_listed_by_nodes_with_it(name)) all.push_back(obstacle(Kind::no_resource, name));
    if (!is_listed || asked <= state.general->free.at(name)) continue;
    Obstacle& one = all.emplace_back(obstacle(Kind::too_little, name));
    one.asked = asked;
    one.free = std::max<std::int64_t>(state.general->free.at(name), 0);
    one.total = total->second;
  }
  return all;
}

std::optional<std::int64_t> general_room(const Pod& pod, const NodeState& state) {
  if (!state.general) return std::nullopt;
  std::optional<std::int64_t> room;
  for (const auto& [name, asked] : general_amounts(pod)) {
    if (!state.general->allocatable.contains(name)) continue;
    const std::int64_t own = std::max<std::int64_t>(state.general->free.at(name), 0) / asked;
    room = std::min(room.value_or(own), own);
  }
  return room;
}

std::vector<std::string> unlisted_resources(const Fleet& fleet, const Pod& pod) {
  std::vector<std::string> all;
  for (const auto& [name, asked] : pod.general) {
    const bool is_known =
        std::ranges::any_of(fleet.nodes, [&name = name](const Node& node) { return node.general.contains(name); });
    if (!is_known && is_listed_by_nodes_with_it(name)) all.push_back(name);
  }
  return all;
}

std::vector<std::string> uncounted_resources(const Fleet& fleet, const Pod& pod) {
  std::vector<std::string> all;
  for (const auto& [name, asked] : pod.general) {
    const bool is_uncounted = std::ranges::any_of(fleet.nodes, [&name = name](const Node& node) {
      return node.mode != Mode::none && !node.general.contains(name) && !is_listed_by_nodes_with_it(name);
    });
    if (is_uncounted || fleet.pods_partial) all.push_back(name);
  }
  return all;
}

namespace {

bool keeps_away(const Pod& other, const Pod& pod) {
  return std::ranges::any_of(other.keeps_away, [&](const PodSelector& one) {
    const bool is_there =
        one.any_namespace ||
        (one.namespaces.empty() ? other.pod_namespace == pod.pod_namespace
                                : std::ranges::find(one.namespaces, pod.pod_namespace) != one.namespaces.end());
    return is_there && std::ranges::all_of(one.rules, [&](const LabelRule& rule) {
             if (!pod.labels) return true;
             const auto label = pod.labels->find(rule.key);
             return is_met(rule, label == pod.labels->end() ? std::nullopt : std::optional(label->second));
           });
  });
}

}  // namespace

std::vector<std::string> uncounted_rules(const Fleet& fleet, const Pod& pod) {
  // The first is where it was placed, the second lets pods in, and the API server has added the third to its spec.
  constexpr std::array<std::string_view, 3> kNone = {"nodeName", "priority", "runtime class"};
  std::vector<std::string> all, others;
  for (const std::string& rule : pod.rules) {
    if (std::ranges::find(kNone, rule) == kNone.end()) all.push_back(rule);
  }
  for (const Pod& other : fleet.pods) {
    const bool is_other = !other.node.empty() && !has_ended(other) && full_name(other) != full_name(pod);
    if (is_other && keeps_away(other, pod)) others.push_back(full_name(other));
  }
  if (!others.empty()) all.push_back("anti-affinity of pod " + some_of(others, 3));
  return all;
}

}  // namespace neuron::fleet
