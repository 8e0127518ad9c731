#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/base/result.h"
#include "plugin/dra/claim_grant.h"
#include "plugin/dra/claims_file.h"

namespace neuron::plugin::dra {

// Whether a device can serve two LNCs at once is unknown (docs/reference/dra.md#opaque-configuration), so its cores are
// given with one alone: that of the configuration, else the node's.
// failed_precondition, naming device and both sides, when two of `shares`, which are of the claim `uid`, or one of them
// and another claim that is completed want one device with different LNCs. What is not known clashes with nothing, nor
// does admin access. `node_lnc`: of the node, for those that say nothing. Pure.
[[nodiscard]] std::optional<Error> lnc_clash(const std::vector<RequestShare>& shares, std::optional<int> node_lnc,
                                             const ClaimsFile::Claims& claims, const std::string& uid);

}  // namespace neuron::plugin::dra
