#pragma once

#include <map>
#include <string>
#include <vector>

#include "plugin/placement/placed_pod.h"

namespace neuron::plugin {

using Json = nlohmann::json;

inline constexpr const char* kNeuron = "aws.amazon.com/neuron";
inline constexpr const char* kCore = "aws.amazon.com/neuroncore";

inline Json container(const std::string& name, const std::map<std::string, std::string>& limits) {
  return {{"name", name}, {"resources", {{"limits", limits}}}};
}

// As bound by an extender that wrote `ids`; "" = by none.
inline Json pod_json(const std::string& name, const std::vector<Json>& containers, const std::string& ids,
                     const std::string& time = "1789352350678418384") {
  Json pod{{"metadata",
            {{"name", name},
             {"namespace", "default"},
             {"uid", "uid-" + name},
             {"resourceVersion", "7"},
             {"creationTimestamp", "2026-01-01T00:00:00Z"}}},
           {"spec", {{"nodeName", "node-1"}, {"containers", containers}}},
           {"status", {{"phase", "Pending"}}}};
  if (!ids.empty()) {
    pod["metadata"]["annotations"] = {
        {"AWS_NEURON_IDS", ids}, {"NEURON_ALLOC_TIME", time}, {"NEURON_ALLOCATED", "false"}};
  }
  return pod;
}

inline PlacedPod read(const Json& pod) {
  return read_placed_pod({.object_namespace = kube::text_of(pod, {"metadata", "namespace"}),
                          .name = kube::text_of(pod, {"metadata", "name"}),
                          .uid = kube::text_of(pod, {"metadata", "uid"}),
                          .resource_version = "7",
                          .json = pod});
}

inline PlacedPod waiting(const std::string& name, const std::string& ids, const std::string& time = "1000",
                         const std::string& devices = "2") {
  return read(pod_json(name, {container("main", {{kNeuron, devices}})}, ids, time));
}

}  // namespace neuron::plugin
