#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/base/clock.h"
#include "agent/base/result.h"
#include "agent/kube/api.h"
#include "agent/kube/cluster_access.h"
#include "agent/kube/limits.h"
#include "agent/model/host_scan.h"
#include "agent/status/status_report.h"

// Reads and writes labels and conditions of a Node object, and removes its startup taint.
namespace neuron::status {

inline constexpr const char* kFieldManager = "neuron-agent";

// An entry of status.conditions with fields of the agent and of another manager: the agent's fields with their current
// values. They have to be applied again each time: the entry is removed with its creator's fields, including those of
// others.
struct HeldCondition {
  std::string type;
  std::map<std::string, std::string> fields;  // without the type
};

struct TimedCondition {
  Condition condition;
  std::string last_transition;  // RFC 3339, in UTC; as at the server, "" where absent
  friend bool operator==(const TimedCondition&, const TimedCondition&) = default;
};

// A Node as read from the server. Passive data; foreign texts. Owners of fields come from metadata.managedFields (docs:
// Kubernetes, "Server-Side Apply"): the agent owns what kFieldManager applied.
struct SeenNode {
  std::string uid;                                      // never empty
  std::map<std::string, std::string> labels;            // all
  std::map<std::string, TimedCondition> conditions;     // by type, all
  std::set<std::string> own_labels;                     // keys that the agent owns, perhaps not alone
  std::set<std::string> own_conditions;                 // types, likewise
  std::map<std::string, std::string> label_owners;      // key to another manager that owns it, the last of several
  std::map<std::string, std::string> condition_owners;  // type, likewise
  std::vector<HeldCondition> held;                      // of types in own_conditions and condition_owners
};

// The text of a Node object. Errors: data_corrupt. Pure.
[[nodiscard]] Result<SeenNode> parse_node(std::string_view text);

// One GET of the whole object (some 20 KiB, mostly images). Errors: as
// Api::call, body_of() and parse_node(). Any thread; blocks as calls do.
[[nodiscard]] Result<SeenNode> read_node(kube::Api& api, const std::string& name);

// The functions below write by server-side apply, as the manager kFieldManager: each call contains all fields of its
// part that the agent should own; what it owned before and no longer applies is removed. Fields of others stay as they
// are. Each is one PATCH that returns the metadata alone; it never makes a Node, since it contains the uid that was
// read. Errors of all: as Api::call and body_of(); failed_precondition: another manager owns a field, or the node was
// replaced or deleted, so read it again. Any thread; blocks as calls do.

using WallTime = std::chrono::system_clock::time_point;

struct NodeRef {
  std::string name;
  std::string uid;
};

enum class Force {
  no,
  yes  // takes over fields of other managers
};

[[nodiscard]] Result<void> apply_labels(kube::Api& api, const NodeRef& node,
                                        const std::map<std::string, std::string>& labels, Force force);

// Never takes one over. `now`: the lastHeartbeatTime. `held`: of the last read_node(), so that no field of others is
// removed.
[[nodiscard]] Result<void> apply_conditions(kube::Api& api, const NodeRef& node,
                                            const std::vector<TimedCondition>& conditions,
                                            const std::vector<HeldCondition>& held, WallTime now);

// Removes all labels and conditions of the agent, except for held ones; does nothing when there are none, or no such
// node. Makes one call more, to read the node.
[[nodiscard]] Result<void> withdraw(kube::Api& api, const std::string& node);
// Withdraws through a client made from these flags. More errors: invalid_argument (not a node's name, not a URL), and
// those of kube::api_places.
[[nodiscard]] Result<void> withdraw(const kube::ApiFlags& flags, const std::string& node);

// A taint that an autoscaler gives a new node, so that no pod is placed there before its resources are known to the
// scheduler (docs/node-status.md#startup-taint).
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
// a Neuron device is there where the instance type or PCI promises any. Pure.
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
