#pragma once

#include <string>

#include "agent/base/result.h"
#include "agent/grant/node_units.h"
#include "plugin/dra/claim/claim.h"
#include "plugin/dra/claim/hardware.h"

// From the name of a pool device, as a claim has it, to hardware of this node as the newest scan shows it. A name is
// foreign text: another writer may have made a slice under this driver's name, so every part of it is checked. Pure.
namespace neuron::plugin::dra {

// The taint that the pool gives what is unhealthy; its value is the reason's code.
struct UnhealthyTaint {
  std::string key;
  std::string effect;  // "" = no taint is given, so none can be tolerated
};

// Errors: invalid_argument (not a name of this driver), not_found (no such device here), naming it.
[[nodiscard]] Result<Hardware> hardware_of(const grant::NodeUnits& node, const std::string& pool_device);

// Errors: not_found when it is the name of a group which this node does not offer as one, naming it: between its
// devices there need not be a link.
[[nodiscard]] Result<void> check_offered(const grant::NodeUnits& node, const std::string& pool_device);

// Errors: failed_precondition when some of the result's hardware is unhealthy, with reason and action, unless the
// result tolerates that; those of hardware_of().
[[nodiscard]] Result<void> check_health(const grant::NodeUnits& node, const ClaimResult& result,
                                        const UnhealthyTaint& taint);

}  // namespace neuron::plugin::dra
