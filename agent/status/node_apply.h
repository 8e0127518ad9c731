#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "agent/base/result.h"
#include "agent/kube/api.h"
#include "agent/status/node_look.h"

// Writes to a Node object by server-side apply, as the manager kFieldManager: each call says all that should be ours of
// its part, and what was ours and is not said any more goes. Fields of others stay as they are. Each is one PATCH, of
// which only the metadata comes back; it never makes a Node, since it names the uid of the one that was seen. Errors of
// all: as Api::call and body_of(); failed_precondition: a field is somebody else's, or the node is another one or gone,
// so look at it again. Any thread; blocks as calls do.
namespace neuron::status {

using WallTime = std::chrono::system_clock::time_point;

struct NodeRef {
  std::string name;
  std::string uid;
};

struct TimedCondition {
  Condition condition;
  std::string last_transition;  // RFC 3339, in UTC
  friend bool operator==(const TimedCondition&, const TimedCondition&) = default;
};

enum class Force {
  no,
  yes  // takes over what somebody else wrote
};

[[nodiscard]] Result<void> apply_labels(kube::Api& api, const NodeRef& node,
                                        const std::map<std::string, std::string>& labels, Force force);

// Never takes one over. `now`: its lastHeartbeatTime. `held`: as of the last look, so that nothing of others goes.
[[nodiscard]] Result<void> apply_conditions(kube::Api& api, const NodeRef& node,
                                            const std::vector<TimedCondition>& conditions,
                                            const std::vector<HeldCondition>& held, WallTime now);

// Takes all labels and conditions of ours away, but what is held; nothing when there are none, or no such node. A
// further call to look.
[[nodiscard]] Result<void> withdraw(kube::Api& api, const std::string& node);

}  // namespace neuron::status
