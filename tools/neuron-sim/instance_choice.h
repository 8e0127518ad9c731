#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "agent/base/result.h"
#include "agent/kube/cluster_access.h"

namespace neuron::sim {

// The label of a Kubernetes node that says which instance type is simulated on it, and the type where there is none.
inline constexpr const char* kTypeLabel = "neuron-agent/simulate";
inline constexpr const char* kDefaultType = "trn1.32xlarge";

// What the API server says about one node. Passive.
struct LabelAnswer {
  std::optional<std::string> type;  // the label's value; nullopt when there is none, or nobody could tell
  std::string why_unknown;          // one sentence why nobody could tell; "" when somebody could
  bool may_work_later = false;      // of why_unknown: the API server was not reached, or was busy
};

// Asks for the label of `node`, again and again while the API server is busy or not to be reached, and no longer than
// `budget` in all. A failure is an answer, for a host has to be written anyway. Any thread; blocks up to `budget`.
[[nodiscard]] LabelAnswer ask_type_label(const kube::InClusterPlaces& places, const std::string& node,
                                         std::chrono::milliseconds budget);

}  // namespace neuron::sim
