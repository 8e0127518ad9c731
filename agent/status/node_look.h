#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "agent/base/result.h"
#include "agent/kube/api.h"
#include "agent/status/node_report.h"

// What the API server shows of a node, as far as somebody who writes labels and conditions has to know it.
namespace neuron::status {

inline constexpr const char* kFieldManager = "neuron-agent";

// An entry of status.conditions that is partly ours and partly somebody else's: what is ours of it, as it is now. It
// has to be said on: the entry goes with whoever made it, together with the fields of others.
struct HeldCondition {
  std::string type;
  std::map<std::string, std::string> fields;  // without the type
};

struct SeenCondition {
  Condition condition;
  std::string last_transition;  // as the server has it; "" where it has none
};

// Passive data; foreign texts. Who owns a field is of metadata.managedFields (docs: Kubernetes, "Server-Side Apply"):
// ours is what was applied by kFieldManager.
struct NodeLook {
  std::string uid;                                      // never empty
  std::map<std::string, std::string> labels;            // all of them
  std::map<std::string, SeenCondition> conditions;      // by type, all of them
  std::set<std::string> own_labels;                     // keys that are ours, perhaps not ours alone
  std::set<std::string> own_conditions;                 // types, likewise
  std::map<std::string, std::string> label_owners;      // key to the manager of somebody else's, a last one of several
  std::map<std::string, std::string> condition_owners;  // type, likewise
  std::vector<HeldCondition> held;                      // of the types that are in both
};

// Of the text of a Node object. Errors: data_corrupt. Pure.
[[nodiscard]] Result<NodeLook> parse_node(std::string_view text);

// Asks for the node `name`: one GET of the whole object (some 20 KiB, of which images are the most). Errors: as
// Api::call, body_of() and parse_node(). Any thread; blocks as calls do.
[[nodiscard]] Result<NodeLook> look_at_node(kube::Api& api, const std::string& name);

}  // namespace neuron::status
