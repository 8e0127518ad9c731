#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/base/result.h"
#include "agent/grant/node_units.h"
#include "plugin/dra/claim/claim_record.h"
#include "plugin/dra/claim/hardware.h"
#include "plugin/dra/claim/resource_claim.h"

// Which hardware of this node a claim's allocation means, with which configuration, and whether the claim may have it
// beside other claims. Pure.
namespace neuron::plugin::dra {

// The opaque configuration that claims and classes attach to the driver's devices
// (docs/reference/dra.md#opaque-configuration). It is not checked before Prepare, so it is decoded strictly. All of
// `configs`, one of which each kind may be for a request: those of classes first, and the later one wins. An entry
// without requests is for all, "chips" is for "chips" and all of its alternatives "chips/first", "chips/first" for that
// one alone. `request` is the full name of a result's request. Errors: invalid_argument, naming the field and what it
// takes, of any entry, also of one for other requests.
[[nodiscard]] Result<RequestConfig> config_for(const std::vector<OpaqueConfig>& configs, const std::string& request);

// A device of the pool that a claim was given, for one or more of its requests.
struct PlannedDevice {
  std::vector<std::string> requests;  // base names, each once
  std::string pool;
  std::string device;  // as in the slice
  std::optional<std::string> share_id;
  Hardware hardware;
  bool admin_access = false;
};

struct ClaimPlan {
  std::vector<RequestShare> shares;    // by request, in the order of the results
  std::vector<PlannedDevice> devices;  // one for each result; two of admin access to one device are one

  [[nodiscard]] Hardware held() const;  // nothing of admin access
};

// Checks all of it and changes nothing. `pool`: the one of this node.
// Errors: failed_precondition (not allocated, no device of this driver, another node's pool, unhealthy, a device
// twice), not_found and invalid_argument (see hardware_of, config_for).
[[nodiscard]] Result<ClaimPlan> plan_of(const ResourceClaim& claim, const grant::NodeUnits& node,
                                        const std::string& pool, const UnhealthyTaint& taint);

// Health of the claim's devices by `known`, for a plan that was made by another scan. Such a scan has no memory of the
// earlier ones, which show that a device is unhealthy (errors that grow, a heartbeat that stands still). A device that
// `known` lacks is not unhealthy. Errors: those of check_health() otherwise.
[[nodiscard]] Result<void> check_known_health(const ResourceClaim& claim, const grant::NodeUnits& known,
                                              const UnhealthyTaint& taint);

// Errors: not_found when a device of the plan that `before` does not have (nullptr: it has none) is a group which this
// node does not offer.
[[nodiscard]] Result<void> check_groups(const ClaimPlan& plan, const ClaimRecord* before, const grant::NodeUnits& node);

// Whether the claim's allocation is still the one that was recorded.
[[nodiscard]] bool is_same_allocation(const ClaimRecord& record, const ResourceClaim& claim);

// Why the hardware cannot be had: another claim than `uid` holds some of it. nullopt: none does.
[[nodiscard]] std::optional<Error> conflict(const ClaimRecords& records, const std::string& uid,
                                            const Hardware& hardware);

// Whether a device can serve two LNCs at once is unknown (docs/reference/dra.md#opaque-configuration), so its cores are
// given with one alone: that of the configuration, else the node's.
// failed_precondition, naming device and both sides, when two of `shares`, which are of the claim `uid`, or one of them
// and another claim that is completed want one device with different LNCs. Unknown LNCs clash with nothing, nor does
// admin access. `node_lnc`: of the node, for those without a configuration.
[[nodiscard]] std::optional<Error> lnc_clash(const std::vector<RequestShare>& shares, std::optional<int> node_lnc,
                                             const ClaimRecords& records, const std::string& uid);

// How cores are numbered that claims hold. Where an older version wrote two LNCs, it is that of the first uid.
[[nodiscard]] HeldNumbering numbering_of(const ClaimRecords& records);

// failed_precondition, naming both LNCs, when `record` holds devices and was planned with other numbers than those that
// the node has by numbering_of(records): it was numbered anew meanwhile. An earlier record of the claim counts, as it
// did when the claim was planned; without it two LNCs would refuse the claim as long as the others last. Unknown
// LNCs clash with nothing.
[[nodiscard]] std::optional<Error> numbering_clash(const ClaimRecord& record, const ClaimRecords& records);

}  // namespace neuron::plugin::dra
