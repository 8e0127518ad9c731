#pragma once

#include <string>
#include <vector>

#include "agent/base/result.h"
#include "agent/grant/node_units.h"
#include "plugin/dra/claim/claim.h"
#include "plugin/dra/claim/claim_grant.h"
#include "plugin/dra/claim/claim_units.h"

namespace neuron::plugin::dra {

// A claim's allocation in terms of this node.
struct ClaimPlan {
  std::vector<RequestShare> shares;    // by request, in the order of the results
  std::vector<GrantedDevice> devices;  // one for each result; two of admin access to one device are one

  [[nodiscard]] Hardware held() const;  // nothing of admin access
};

// Checks all of it and changes nothing. `pool`: the one of this node. Errors: failed_precondition (not allocated, no
// device of this driver, another node's pool, unhealthy, a device twice), not_found and invalid_argument (see
// hardware_of, config_for).
[[nodiscard]] Result<ClaimPlan> plan_of(const Claim& claim, const grant::NodeUnits& node, const std::string& pool,
                                        const UnhealthyTaint& taint);

// For a claim whose plan is of a separate scan, without memory of earlier ones: evidence that takes several scans
// (errors that grow, a heartbeat that stands still) is in `known`. A missing device is not unhealthy. Errors: those of
// check_health() otherwise.
[[nodiscard]] Result<void> check_known_health(const Claim& claim, const grant::NodeUnits& known,
                                              const UnhealthyTaint& taint);

}  // namespace neuron::plugin::dra
