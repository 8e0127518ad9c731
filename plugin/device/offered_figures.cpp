#include "plugin/device/offered_figures.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "agent/allocator/allocator.h"

namespace neuron::plugin {
namespace {

// Units that containers hold through this very resource; a claim holds none of it.
std::set<int> held_units(model::Resource resource, const std::vector<holdings::Holding>& holdings) {
  std::set<int> units;
  for (const holdings::Holding& one : holdings) {
    if (one.resource == resource && one.claim.empty()) units.insert(one.units.begin(), one.units.end());
  }
  return units;
}

}  // namespace

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
