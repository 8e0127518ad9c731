#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/base/result.h"
#include "agent/core/hardware.h"
#include "agent/grant/grant.h"
#include "plugin/dra/claim/claim_request.h"
#include "plugin/kubelet/memory_gate.h"

// The hardware of this node that a claim's allocation means, with its configuration, and whether the claim may have it
// beside other claims. Pure.
namespace neuron::plugin::dra {

using Environment = std::map<std::string, std::string>;  // of a container
using core::Hardware;
using core::HeldDevice;
using core::overlap;

// Core numbering of held claims: with another LNC the same number is other hardware.
struct HeldNumbering {
  bool any = false;        // some claim that is prepared holds a device, or cores of one
  std::optional<int> lnc;  // of the node when it was prepared; nullopt: not known of any claim
};

// The taint that the pool gives what is unhealthy; its value is the reason's code.
struct UnhealthyTaint {
  std::string key;
  std::string effect;  // "" = no taint is given, so none can be tolerated
};

// The hardware of this node behind the name of a pool device, as the scan of `node` shows it. The name is foreign text:
// others may have written slices under this driver's name.
// Errors: invalid_argument (not a name of this driver), not_found (nothing of that name is here), naming it.
[[nodiscard]] Result<Hardware> hardware_of(const grant::NodeUnits& node, const std::string& pool_device);

// The hardware that a device's name may mean when only the name is left of a claim. A core's name means its places
// under every LNC that the devices support, since the LNC of its allocation is unknown.
[[nodiscard]] Result<Hardware> possible_hardware_of(const grant::NodeUnits& node, const std::string& pool_device);

// Errors: failed_precondition when some of the result's hardware is unhealthy, with reason and action, unless the
// result tolerates that; those of hardware_of().
[[nodiscard]] Result<void> check_health(const grant::NodeUnits& node, const AllocationResult& result,
                                        const UnhealthyTaint& taint);

// All cores of the hardware, whose leftover memory has to go before another container gets them.
[[nodiscard]] std::vector<MemoryGate::Core> cores_of(const grant::NodeUnits& node, const Hardware& hardware);
// The place behind a number in MemoryGate::Core::maybe_of.
[[nodiscard]] Hardware place_of(int number);

// The configuration of one request (docs/reference/dra.md#opaque-configuration).
struct RequestConfig {
  std::optional<int> lnc;               // NeuronConfig logicalNeuronCore: 1 or 2
  std::optional<int> ultraserver_mode;  // UltraServerConfig ultraserverMode: nodes that work as one, 1, 2 or 4
  friend bool operator==(const RequestConfig&, const RequestConfig&) = default;
};

// A claim's hardware by one of its requests, of all its results.
struct PlannedRequest {
  std::string name;  // base name
  Hardware hardware;
  // Admin access: the Neuron nodes, write-only, no interfaces and no variables; it keeps no other claim from the
  // hardware.
  bool admin_access = false;
  RequestConfig config;

  // Whether it gives cores to compute on, and so decides about variables.
  [[nodiscard]] bool computes() const { return !admin_access && !hardware.devices.empty(); }
};

// A device of the pool that a claim was given, for one or more of its requests.
struct PlannedDevice {
  std::vector<std::string> requests;  // base names, each once
  std::string pool;
  std::string device;  // as in the slice
  std::optional<std::string> share_id;
  Hardware hardware;
  bool admin_access = false;
  std::string share{};  // as PreparedDevice has it
};

// The cores of shares, by share_key().
using ChosenShares = std::map<std::string, Hardware>;
// The share's id, which the scheduler makes.
[[nodiscard]] std::string share_key(const AllocationResult& result);

struct ClaimPlan {
  std::vector<PlannedRequest> requests;  // in the order of the results
  std::vector<PlannedDevice> devices;    // one for each result; two of admin access to one device are one

  [[nodiscard]] Hardware held() const;  // nothing of admin access
};

// Checks all of it and changes nothing. `pool`: the one of this node. `chosen`: the cores of results that are shares
// (claim_shares.h), whose health was checked; all others are the whole of what they name.
// Errors: failed_precondition (not allocated, no device of this driver, another node's pool, unhealthy, a device
// twice), not_found and invalid_argument (see hardware_of, config_for).
[[nodiscard]] Result<ClaimPlan> plan_of(const ResourceClaim& claim, const grant::NodeUnits& node,
                                        const std::string& pool, const UnhealthyTaint& taint,
                                        const ChosenShares& chosen = {});

// Health of the claim's devices by `known`, for a plan that was made by another scan. Such a scan has no memory of the
// earlier ones, which show that a device is unhealthy (errors that grow, a heartbeat that stands still). A device that
// `known` lacks is not unhealthy, nor is one of which cores were chosen. Errors: those of check_health() otherwise.
[[nodiscard]] Result<void> check_known_health(const ResourceClaim& claim, const grant::NodeUnits& known,
                                              const UnhealthyTaint& taint, const ChosenShares& chosen = {});

struct ClaimRecord;                                                              // claim_record.h
using ClaimRecords = std::map<std::string, std::shared_ptr<const ClaimRecord>>;  // by uid

// Errors: not_found when a device of the plan that `before` does not have (nullptr: it has none) is a group which this
// node does not offer, naming it: between its devices there need not be a link.
[[nodiscard]] Result<void> check_groups(const ClaimPlan& plan, const ClaimRecord* before, const grant::NodeUnits& node);

// Whether the claim's allocation is still the one that was recorded.
[[nodiscard]] bool is_same_allocation(const ClaimRecord& record, const ResourceClaim& claim);

// Why the hardware cannot be had: another claim than `uid` holds some of it. nullopt: none does.
[[nodiscard]] std::optional<Error> conflict(const ClaimRecords& records, const std::string& uid,
                                            const Hardware& hardware);

// Whether a device can serve two LNCs at once is unknown (docs/reference/dra.md#opaque-configuration), so its cores are
// given with one alone: that of the configuration, else the node's.
// failed_precondition, naming device and both sides, when two of `requests`, which are of the claim `uid`, or one of
// them and another claim that is completed want one device with different LNCs. Unknown LNCs clash with nothing, nor
// does admin access. `node_lnc`: of the node, for those without a configuration.
[[nodiscard]] std::optional<Error> lnc_clash(const std::vector<PlannedRequest>& requests, std::optional<int> node_lnc,
                                             const ClaimRecords& records, const std::string& uid);

// Core numbering of held claims. Where an older version wrote two LNCs, it is that of the first uid.
[[nodiscard]] HeldNumbering numbering_of(const ClaimRecords& records);

// failed_precondition, naming both LNCs, when `record` holds devices and was planned with other numbers than those that
// the node has by numbering_of(records): it was renumbered meanwhile. An earlier record of the claim counts, as it
// did when the claim was planned; without it two LNCs would refuse the claim as long as the others last. Unknown
// LNCs clash with nothing.
[[nodiscard]] std::optional<Error> numbering_clash(const ClaimRecord& record, const ClaimRecords& records);

}  // namespace neuron::plugin::dra
