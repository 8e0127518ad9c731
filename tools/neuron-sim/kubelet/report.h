#pragma once

#include <map>
#include <string>
#include <vector>

#include "agent/base/result.h"
#include "tools/neuron-sim/kubelet/explain.h"
#include "tools/neuron-sim/kubelet/pod.h"

// What `neuron-sim kubelet` prints, as text of at most 80 columns (a longer single word is not broken). Pure functions;
// each result ends with a newline.
namespace neuron::sim {

// The kubelet's answer to a pod: per container its ids, environment and device nodes, or the refusal; with what the
// notes say beside it.
[[nodiscard]] std::string pod_text(const PodSpec& pod, const Result<PodResult>& result, const PodNotes& notes = {});

// One container's part of the above.
[[nodiscard]] std::string container_text(const ContainerGrant& grant, const ContainerNotes& notes = {});

// A table, one line per resource; says so when there is none.
[[nodiscard]] std::string resources_text(const std::map<std::string, ResourceView>& resources);

// A table, one line per pod, container and resource; says so when there is none.
[[nodiscard]] std::string pods_text(const std::vector<PodView>& pods);

// Ids for people: "0-3,8" when all are numbers, else the ids in reading order separated by spaces; "" for none.
[[nodiscard]] std::string ids_text(const IdSet& ids);

}  // namespace neuron::sim
