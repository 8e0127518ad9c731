#pragma once

#include <map>
#include <string>
#include <vector>

#include "agent/base/result.h"
#include "agent/model/host_scan.h"
#include "tools/neuron-sim/kubelet/pod.h"

// The output of `neuron-sim kubelet`: text of at most 80 columns (a longer single word is not broken). Pure functions;
// each
// *_text ends with a newline, except ids_text.
namespace neuron::sim {

// The node as the kubelet sees it at one moment.
struct NodeUse {
  std::vector<PodView> pods;
  std::map<std::string, ResourceView> resources;
};

struct ContainerNotes {
  std::string asked;                       // "neuron=4 efa=2"; "" for nothing and without a host
  std::map<std::string, std::string> why;  // by full resource name; only known reasons
};

// The reasons of the answer to a pod, and the free units after it. Empty texts where nothing is known.
struct PodNotes {
  std::vector<ContainerNotes> containers;  // as PodResult::containers; empty for a refused pod
  std::string left;                        // "neuron 12 of 16, efa 6 of 8": free now, of the capacity
};

// The stand-in does not see how the agent chose: reasons are derived from the free and the given units
// (allocator::explain_devices and the like). `host`: a completed scan of the node. Units that are unhealthy, or on
// hardware that is held through another resource, are not left. nullptr when the host is not known: then there are no
// reasons, and the units left are the kubelet's own count, which lags behind: units of the same hardware become
// unhealthy only with the agent's next list.
[[nodiscard]] PodNotes explain_pod(const PodSpec& pod, const Result<PodResult>& result, const NodeUse& before,
                                   const NodeUse& after, const model::HostScan* host);

// The kubelet's answer to a pod: per container its ids, environment and device nodes, or the refusal; with the notes.
[[nodiscard]] std::string pod_text(const PodSpec& pod, const Result<PodResult>& result, const PodNotes& notes = {});

// One container of the above.
[[nodiscard]] std::string container_text(const ContainerGrant& grant, const ContainerNotes& notes = {});

// A table, one line per resource; one sentence when there is none.
[[nodiscard]] std::string resources_text(const std::map<std::string, ResourceView>& resources);

// A table, one line per pod, container and resource; one sentence when there is none.
[[nodiscard]] std::string pods_text(const std::vector<PodView>& pods);

// Ids in short form: "0-3,8" when all are numbers, else the ids in reading order separated by spaces; "" for none.
[[nodiscard]] std::string ids_text(const IdSet& ids);

}  // namespace neuron::sim
