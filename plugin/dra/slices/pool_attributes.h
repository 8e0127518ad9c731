#pragma once

#include <string>
#include <vector>

#include "plugin/dra/slices/pool.h"

// What a device of the pool says of itself (docs/reference/dra.md#attributes). Every device of one kind has the same
// names, but for what only some instance types or machines have; every device at all has those that a DeviceClass may
// ask for. Pure.
namespace neuron::plugin::dra {

// Of one device, or of what consists of some. `devices`: host indices, one or more; an index that the node does not
// have has no facts but its number.
[[nodiscard]] Attributes device_attributes(const grant::NodeUnits& node, int device);
[[nodiscard]] Attributes core_attributes(const grant::NodeUnits& node, int device, int core);
[[nodiscard]] Attributes group_attributes(const grant::NodeUnits& node, const std::vector<int>& devices);
[[nodiscard]] Attributes node_attributes(const grant::NodeUnits& node, const std::vector<int>& devices);

// Of an interface by its position; -1: one that is not there any more.
[[nodiscard]] Attributes efa_attributes(const grant::NodeUnits& node, int unit);

}  // namespace neuron::plugin::dra
