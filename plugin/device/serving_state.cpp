#include "plugin/device/serving_state.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "agent/allocator/allocator.h"

namespace neuron::plugin {
namespace {

std::string_view words(ServingStep step) {
  switch (step) {
    case ServingStep::not_offered:
      return "none on this node";
    case ServingStep::waiting:
      return "not registered; waiting for the kubelet or the next attempt";
    case ServingStep::registering:
      return "waiting for the kubelet to accept the registration";
    case ServingStep::unwatched:
      return "waiting for the kubelet to call ListAndWatch";
    case ServingStep::registered:
      return "registered";
  }
  return "";
}

// Units that containers hold through this very resource; a claim holds none of it.
std::set<int> held_units(model::Resource resource, const std::vector<holdings::Holding>& holdings) {
  std::set<int> units;
  for (const holdings::Holding& one : holdings) {
    if (one.resource == resource && one.claim.empty()) units.insert(one.units.begin(), one.units.end());
  }
  return units;
}

}  // namespace

metrics::Readiness assess_readiness(const ServingState& state) {
  constexpr std::chrono::minutes kReadyToTakeOver{5};
  if (!state.scanned) return {false, "the node has not been scanned yet\n"};
  if (state.waited) return {*state.waited < kReadyToTakeOver, "another agent serves this node; waiting for its end\n"};
  metrics::Readiness all{true, ""};
  for (const ResourceReadiness& one : state.resources) {
    if (one.step == ServingStep::not_offered) continue;
    all.ready = all.ready && one.step == ServingStep::registered;
    all.text += std::string(model::resource_name(one.resource)) + ": " + std::string(words(one.step)) + "\n";
  }
  if (all.text.empty()) all.text = "nothing to offer on this node\n";
  return all;
}

std::map<std::string, bool> registered_resources(const ServingState& state) {
  std::map<std::string, bool> registered;
  for (const ResourceReadiness& one : state.resources) {
    if (one.step == ServingStep::not_offered) continue;
    registered.emplace(model::resource_name(one.resource), one.step == ServingStep::registered);
  }
  return registered;
}

int OfferedFigures::largest_of(const grant::NodeUnits& node, model::Resource resource, std::vector<int> free) {
  if (resource == model::Resource::efa) return static_cast<int>(free.size());  // interfaces have no shape
  const auto known = largest_.find(resource);
  if (known != largest_.end() && known->second.free == free) return known->second.request;
  const int request = resource == model::Resource::neuroncore ? allocator::largest_of_cores(node.topology(), free)
                                                              : allocator::largest_of_devices(node.topology(), free);
  largest_[resource] = {std::move(free), request};
  return request;
}

std::vector<metrics::Offered> OfferedFigures::all(const std::vector<holdings::Holding>& holdings) {
  const grant::NodeUnitsPtr node = allocations_.node();
  std::vector<metrics::Offered> all;
  if (!node) return all;
  const MutexLock lock(mutex_);
  if (node_ != node) largest_.clear();
  node_ = node;
  for (const model::Resource resource : model::kAllResources) {
    if (!offer_.serves(resource)) continue;
    const std::optional<UnitList> list = allocations_.unit_list(resource);
    if (!list || list->empty()) continue;
    const std::set<int> held = held_units(resource, holdings);
    metrics::Offered offered{resource, static_cast<int>(list->size()), 0, 0, 0, std::nullopt};
    std::vector<int> free;
    for (const UnitState& state : *list) {
      const auto unit = node->unit_of(resource, state.id);
      const bool is_held = unit && held.contains(*unit);
      if (state.healthy) ++offered.healthy;
      if (is_held) ++offered.held;
      if (unit && state.healthy && !is_held) free.push_back(*unit);
    }
    std::sort(free.begin(), free.end());
    offered.free = static_cast<int>(free.size());
    offered.largest_request = largest_of(*node, resource, std::move(free));
    all.push_back(offered);
  }
  return all;
}

}  // namespace neuron::plugin
