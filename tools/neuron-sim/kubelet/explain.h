#pragma once

#include <map>
#include <string>
#include <vector>

#include "agent/base/result.h"
#include "agent/model/host_scan.h"
#include "tools/neuron-sim/kubelet/pod.h"

// What the kubelet stand-in says about an answer beside the answer: why these units, and what is left. It sees the same
// host as the agent but not how the agent chose, so the reason is worked out from what was free and what was given
// (allocator::explain_devices and the like).
namespace neuron::sim {

// The node as the kubelet sees it at one moment.
struct NodeUse {
  std::vector<PodView> pods;
  std::map<std::string, ResourceView> resources;
};

struct ContainerNotes {
  std::string asked;                       // "neuron=4 efa=2"; "" for nothing and without a host
  std::map<std::string, std::string> why;  // by full resource name; only where something can be said
};

// Empty when there is nothing to say.
struct PodNotes {
  std::vector<ContainerNotes> containers;  // as PodResult::containers; empty for a refused pod
  std::string left;                        // "neuron 12 of 16, efa 6 of 8": free now, of the capacity
};

// `host`: a completed scan of the node. Units that are unhealthy, or on hardware that is held through another resource,
// are not left. nullptr when the host is not known: then there are no reasons, and what is left is what the kubelet
// counts, which lags behind: units of the same hardware become unhealthy only with the agent's next list. Pure.
[[nodiscard]] PodNotes explain_pod(const PodSpec& pod, const Result<PodResult>& result, const NodeUse& before,
                                   const NodeUse& after, const model::HostScan* host);

}  // namespace neuron::sim
