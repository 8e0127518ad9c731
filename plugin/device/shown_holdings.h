#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/base/clock.h"
#include "agent/grant/node_units.h"
#include "agent/holdings/holding.h"
#include "agent/model/allocation.h"

// What the kubelet shows, in the node's own terms. Ids that the node does not have are skipped. Pure.
namespace neuron::plugin {

using holdings::Holding;

// Ascending, unique.
[[nodiscard]] std::vector<int> known_units(const grant::NodeUnits& node, model::Resource resource,
                                           const std::vector<std::string>& ids);

// By no container, since never. `units`: ascending.
[[nodiscard]] Holding holding_of(const grant::NodeUnits& node, model::Resource resource, std::vector<int> units);

// By containers, through the device plugin.
[[nodiscard]] std::vector<Holding> to_holdings(const grant::NodeUnits& node,
                                               const std::vector<model::Allocation>& shown, SteadyTime since);

// By claims of `driver`: hardware that the kubelet's device manager takes for free. Pods with claims outlast a change
// of the node from claims to the device plugin.
[[nodiscard]] std::vector<Holding> claims_to_holdings(const grant::NodeUnits& node,
                                                      const std::vector<model::Allocation>& shown,
                                                      std::string_view driver);

}  // namespace neuron::plugin
