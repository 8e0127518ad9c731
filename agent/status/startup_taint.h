#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/base/clock.h"
#include "agent/base/result.h"
#include "agent/kube/api.h"
#include "agent/kube/limits.h"
#include "agent/model/host_scan.h"

// A taint that an autoscaler gives a new node, so that no pod is placed there before its resources are known to the
// scheduler (docs/node-status.md#startup-taint).
namespace neuron::status {

struct StartupTaint {
  std::string key;
  std::string effect;  // "NoSchedule", "PreferNoSchedule" or "NoExecute"; "" = any
  friend bool operator==(const StartupTaint&, const StartupTaint&) = default;
};

// "neuron-agent/NAME" or "neuron-agent/NAME:EFFECT": the admission policy allows the removal of such keys alone.
// Errors: invalid_argument, with the form. Pure.
[[nodiscard]] Result<StartupTaint> parse_startup_taint(std::string_view text);
[[nodiscard]] std::string to_string(const StartupTaint& taint);

enum class TaintState {
  removed,
  absent,   // there was none
  waiting,  // the Node does not show the resources as allocatable yet
};

// Removes the taint of the node once all of `resources` are in its status.allocatable, one of them not 0; names without
// '/' are of drivers and count as shown. One GET, and one PATCH that fails when the Node has changed in between.
// Errors: as Api::call and body_of(); data_corrupt. Blocks as calls do.
[[nodiscard]] Result<TaintState> remove_startup_taint(kube::Api& api, const std::string& node,
                                                      const StartupTaint& taint,
                                                      const std::vector<std::string>& resources);

// Whether the node can take pods for its hardware: `registered`, of resources or drivers, has a name and no false, and
// devices that the instance type or PCI promises are there. Pure.
[[nodiscard]] bool is_offered(const model::HostScan& host, const std::map<std::string, bool>& registered);

// Removes the taint once, tries again after failures and while the Node does not show the resources yet. Not
// synchronised.
class StartupGate {
 public:
  static constexpr std::chrono::milliseconds kIdle{60'000}, kWaiting{2000}, kFirstRetry{1000}, kLongestRetry{60'000};

  // nullopt: no taint, and nothing to do.
  StartupGate(kube::Api& api, std::string node, std::optional<StartupTaint> taint, unsigned seed)
      : api_(api), node_(std::move(node)), taint_(std::move(taint)), backoff_(kFirstRetry, kLongestRetry, seed) {}

  // Does what is due, and returns the time until the next attempt. `registered`: empty until all are.
  [[nodiscard]] std::chrono::milliseconds turn(const std::vector<std::string>& registered, SteadyTime now);

 private:
  kube::Api& api_;
  const std::string node_;
  const std::optional<StartupTaint> taint_;
  kube::Backoff backoff_;
  bool is_done_ = false;
  SteadyTime not_before_{};
  std::string error_;  // logged last
};

}  // namespace neuron::status
