#pragma once

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "agent/base/result.h"

// Which requests of which claims the containers of a pod use, as the kubelet gives them
// (docs/reference/dra.md#prepare). Foreign text, bounded. Pure.
namespace neuron::plugin::dra {

// Of one claim: the names of the requests that a container uses; empty = all of them.
using UsedRequests = std::set<std::string>;

struct ContainerUse {
  std::string container;
  // By the claim's name, in the pod's namespace. A claim that has not been made for the pod yet is left out.
  std::map<std::string, UsedRequests> claims;
};

inline constexpr std::chrono::seconds kMaxGrace = std::chrono::hours(24 * 30);

struct PodUse {
  std::string uid;
  bool has_ended = false;  // phase Succeeded or Failed: its containers use nothing any more
  // So long its containers may run after its deletion: spec.terminationGracePeriodSeconds, or that of a deletion which
  // has begun where that is longer; at most kMaxGrace.
  std::chrono::seconds grace{30};
  std::vector<ContainerUse> containers;  // init containers too, those with claims only
};

// Errors: data_corrupt when the text is no pod, or has more than 1,024 containers or 4,096 uses.
[[nodiscard]] Result<PodUse> parse_pod_use(std::string_view text);

}  // namespace neuron::plugin::dra
