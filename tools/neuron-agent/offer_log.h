#pragma once

#include <string>
#include <vector>

#include "agent/core/offer_policy.h"
#include "agent/model/host_scan.h"

namespace neuron::agent {

struct OfferLine {
  bool warning = false;
  std::string text;
};

// What the log says of `offer` on this node, whose devices may be fewer than its instance type has: what mixing both
// names costs, which devices a split gives to which name, indices that no device of the type has, devices that are
// offered under no name, a node of which nothing is offered. Empty for one name that the node has something for, and
// where there is neither a device nor an interface. Pure.
[[nodiscard]] std::vector<OfferLine> offer_lines(const core::OfferPolicy& offer, const model::HostScan& host);

}  // namespace neuron::agent
