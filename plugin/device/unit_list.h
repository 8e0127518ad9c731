#pragma once

#include <memory>
#include <string>
#include <vector>

#include "agent/core/offer_policy.h"
#include "agent/grant/node_units.h"
#include "agent/model/resource.h"

namespace neuron::plugin {

// One unit of a resource as watchers see it.
struct UnitState {
  std::string id;
  bool healthy = true;
  std::vector<int> numa_nodes;  // empty: unknown; never contains -1
  friend bool operator==(const UnitState&, const UnitState&) = default;
};

using UnitList = std::vector<UnitState>;
using UnitListPtr = std::shared_ptr<const UnitList>;

// Use of units, which a list shows beside the node's inventory. All ascending.
struct UnitUse {
  std::vector<int> blocked_cores;    // held through another resource: not to be given through this one
  std::vector<int> held;             // units that containers hold through this very resource
  std::vector<int> blocked_units{};  // units that are not to be given, whatever their cores: interfaces held by claims
};

// The list a resource shows the kubelet: every unit that `offer` has under this name, Unhealthy when its hardware is or
// when it or one of its cores is blocked. Hardware that fails or vanishes is never dropped. A device of a split node
// that is not offered under this name is absent, so that the capacity is right too, except for what is held: the
// kubelet crashes on a device that leaves while it is allocated, and kills a pod whose device it finds Unhealthy when
// it restarts. Empty: the resource is not to be registered. A resource that this agent does not serve at all
// (OfferPolicy::serves) has no list even for what is held, as another plugin may serve it.
[[nodiscard]] UnitList make_unit_list(const grant::NodeUnits& node, model::Resource resource,
                                      const core::OfferPolicy& offer, const UnitUse& use);

}  // namespace neuron::plugin
