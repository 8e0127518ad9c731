#pragma once

#include <vector>

#include "agent/grant/node_units.h"
#include "plugin/dra/slices/pool_names.h"

// Which groups of devices a node offers (docs/reference/dra.md#groups). Pure.
namespace neuron::plugin::dra {

struct Group {
  GroupName name;
  std::vector<int> members;  // host indices, in the order of the name
  friend bool operator==(const Group&, const Group&) = default;
};

// Where AWS's scheduler groups devices (tori and switched fabrics): the aligned 4, 8 and 16. On rings and lines: every
// run of linked neighbours of two or more, on a ring past its end too. All members are in the snapshot, well or not.
// Small groups first, of one size those at the high end first, those past the end of a ring last. Empty on a node with
// one device.
[[nodiscard]] std::vector<Group> groups_of(const grant::NodeUnits& node);

}  // namespace neuron::plugin::dra
