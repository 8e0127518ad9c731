#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/base/result.h"
#include "plugin/dra/claim/claim_grant.h"
#include "plugin/dra/claim/claims_file.h"

namespace neuron::plugin::dra {

// Whether a device can serve two LNCs at once is unknown (docs/reference/dra.md#opaque-configuration), so its cores are
// given with one alone: that of the configuration, else the node's. failed_precondition, naming device and both sides,
// when two of `shares`, which are of the claim `uid`, or one of them and another claim that is completed want one
// device with different LNCs. Unknown LNCs clash with nothing, nor does admin access. `node_lnc`: of the node, for
// claims without configuration. Pure.
[[nodiscard]] std::optional<Error> lnc_clash(const std::vector<RequestShare>& shares, std::optional<int> node_lnc,
                                             const ClaimsFile::Claims& claims, const std::string& uid);

// How cores are numbered that claims hold. Where an older version wrote two LNCs, it is that of the first uid. Pure.
[[nodiscard]] HeldNumbering numbering_of(const ClaimsFile::Claims& claims);

// failed_precondition, naming both LNCs, when `claim` holds devices and was planned with other numbers than those that
// the node has by numbering_of(claims): it was numbered anew meanwhile. An earlier record of the claim counts, as it
// did when the claim was planned; without it two LNCs would refuse the claim as long as the others last. Unknown LNCs
// clash with nothing. Pure.
[[nodiscard]] std::optional<Error> numbering_clash(const PreparedClaim& claim, const ClaimsFile::Claims& claims);

}  // namespace neuron::plugin::dra
