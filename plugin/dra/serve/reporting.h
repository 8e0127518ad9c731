#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "agent/base/mutex.h"
#include "agent/base/result.h"
#include "agent/grant/grant.h"
#include "agent/holdings/holding.h"
#include "agent/metrics/endpoints.h"
#include "agent/model/allocation.h"
#include "plugin/dra/claim/claim_record.h"
#include "plugin/dra/claim/claim_request.h"
#include "plugin/dra/claim/plugin_holders.h"
#include "plugin/dra/serve/driver.h"
#include "plugin/dra/serve/node_board.h"
#include "plugin/dra/slices/publisher.h"
#include "plugin/kubelet/call_figures.h"

// Readiness and metrics of DRA mode: registration and slices, calls of the kubelet, holdings by claim.
namespace neuron::plugin::dra {

// Ready when the driver is registered and its slices are published, with a line for each. Pure.
[[nodiscard]] metrics::Readiness assess_readiness(const std::string& driver, const DriverState& state,
                                                  const PublishState& slices, bool nothing_to_publish);

// Decorator: counts calls, and notifies the board after each of them, since held devices may have changed. `prepared`
// is called after a Prepare, on its thread, and must not block. Thread-safe; its arguments must outlive it.
class CountedClaims final : public ClaimCalls {
 public:
  CountedClaims(ClaimCalls& claims, NodeBoard& board, CallFigures& figures, std::string driver,
                std::function<void()> prepared = {});

  // All names that claims of that driver are counted by.
  [[nodiscard]] static CallFigures::Names counted_names(const std::string& driver);

  std::map<std::string, PrepareAnswer> prepare(const std::vector<ClaimRef>& claims,
                                               const std::stop_token& stop) override;
  std::map<std::string, std::string> unprepare(const std::vector<ClaimRef>& claims) override;

  // True once after each burst of calls, when none is running.
  [[nodiscard]] bool take_quiet() { return running_ == 0 && called_.exchange(false); }

 private:
  template <typename Ask, typename Failed>
  auto counted(std::string_view method, const Ask& ask, const Failed& failed);

  ClaimCalls& claims_;
  NodeBoard& board_;
  CallFigures& figures_;
  const std::string driver_;
  const std::function<void()> prepared_;  // may be empty
  std::atomic<int> running_ = 0;
  std::atomic<bool> called_ = false;
};

// The containers that use claims, as of the last PodResources List that was made for another purpose: that call has
// side effects (docs/reference/kubelet.md#podresources), so none is made for this alone. Thread-safe.
class ListedClaims {
 public:
  // Keeps the entries of claims; returns its argument.
  [[nodiscard]] Result<std::vector<model::Allocation>> seen(Result<std::vector<model::Allocation>> listed)
      EXCLUDES(mutex_);
  [[nodiscard]] std::vector<model::Allocation> claims() const EXCLUDES(mutex_);  // empty before the first list

 private:
  mutable Mutex mutex_;
  std::vector<model::Allocation> claims_ GUARDED_BY(mutex_);
};

// How a claim that several containers use is reported: once, with the first container in `listed`, or once for each.
enum class ClaimUsers { first, each };

// Holdings of a node in DRA mode: prepared claims with the containers in `listed` that use them, and what containers
// from before a change of mode still hold through the device plugin. Pure.
[[nodiscard]] std::vector<holdings::Holding> holdings_of(const grant::NodeUnits& node, const ClaimRecords& claims,
                                                         const PluginHolders& plugin_holders,
                                                         const std::vector<model::Allocation>& listed,
                                                         ClaimUsers users = ClaimUsers::first);

}  // namespace neuron::plugin::dra
