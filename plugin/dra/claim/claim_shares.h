#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "agent/base/mutex.h"
#include "agent/base/result.h"
#include "agent/grant/grant.h"
#include "plugin/dra/claim/claim_plan.h"
#include "plugin/dra/claim/claim_record.h"
#include "plugin/dra/claim/claim_request.h"
#include "plugin/dra/claim/plugin_holders.h"

// The cores of a claim's shares: of a device that claims may share the scheduler counts cores, and which ones a claim
// has is chosen here, once (docs/dra-partitions.md#shares). From then on the record has them.
namespace neuron::plugin::dra {

// Input of a choice, beside the claim. Passive data.
struct ShareFacts {
  const grant::NodeUnits& node;  // has the devices
  const grant::NodeUnits& seen;  // the newest snapshot, which knows what is unhealthy; may be `node`
  UnhealthyTaint taint;
  const ClaimRecords& records;  // of all claims; what the claim itself has there stays
  const PluginHolders& holders;
  Hardware reserved{};  // by calls that run
  Hardware beside{};    // that the pod's other claims have, or get
};

// By share_key(): the cores of each share of the claim. A share is a result with fewer cores than its device has. One
// in `kept`, unless another claim holds its cores by now, or in the claim's own record, has the same as there. Errors:
// failed_precondition when too few cores of a device are healthy and free, naming why, or when it has fewer at all, as
// the LNC is newer than the allocation; invalid_argument for a share without cores; unavailable while the number of
// cores of a device is unknown; those of hardware_of(). Pure.
[[nodiscard]] Result<ChosenShares> choose_shares(const ResourceClaim& claim, const ShareFacts& facts,
                                                 const ChosenShares& kept);

// Whether another claim has cores of the plan's shares by now, or the claim `uid` itself has others: by another
// instance of the driver, which prepared them meanwhile. Pure.
[[nodiscard]] bool lost_shares(const ClaimPlan& plan, const std::string& uid, const ClaimRecords& records);

// Choices of calls that have not ended, so that two calls at once do not choose the same cores, and two calls for one
// claim choose the same. Thread-safe.
class ShareReservations {
 public:
  // `reserved` by calls for other claims; `kept`: by another call for this claim.
  using Choose = std::function<Result<ChosenShares>(const Hardware& reserved, const ChosenShares& kept)>;

  // Reserves what `choose` returns, in place of what the call had for this claim, until end(). `choose` runs under the
  // lock, and must not block.
  [[nodiscard]] Result<ChosenShares> reserve(std::uint64_t call, const std::string& uid, const Choose& choose)
      EXCLUDES(mutex_);
  void end(std::uint64_t call) EXCLUDES(mutex_);

 private:
  struct Reservation {
    std::uint64_t call = 0;
    std::string uid;
    ChosenShares chosen;
  };
  Mutex mutex_;
  std::vector<Reservation> reservations_ GUARDED_BY(mutex_);
};

}  // namespace neuron::plugin::dra
