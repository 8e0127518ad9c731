#pragma once

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "agent/base/result.h"
#include "agent/kube/api.h"
#include "agent/kube/cluster_access.h"
#include "agent/status/node_report.h"

// Reads and writes labels and conditions of a Node object.
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
// The same by a client for these flags. More errors: invalid_argument (not a node's name, not a URL), and those of
// kube::api_places.
[[nodiscard]] Result<void> withdraw(const kube::ApiFlags& flags, const std::string& node);

}  // namespace neuron::status
