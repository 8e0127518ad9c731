#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "agent/base/result.h"
#include "tools/kubectl-neuron/fleet.h"

// Pods of a manifest in JSON. Pure.
namespace neuron::fleet {

// Pods of one template. Passive data.
struct PodGroup {
  Pod pod;                              // named after its owner: "default/trainer"
  int replicas = 1;                     // by replicas, parallelism, completions and size of all owners
  bool per_node = false;                // of a DaemonSet: one on each node that its rules allow; replicas means nothing
  std::set<std::string> not_counted{};  // rules_not_counted() (parse.h)
};

struct Manifest {
  std::vector<PodGroup> groups;
  Fleet added;  // claim templates and claims of the manifest
};

// One object after the other, as kubectl prints them, or a list. Every object that has a pod template somewhere counts:
// Deployment, StatefulSet, Job, JobSet, PyTorchJob and others. `pod_namespace` is of objects that name none.
// Errors: data_corrupt (no JSON), invalid_argument (no pod in it, more than 256, a request that cannot be read, more
// than 100,000 pods of one template).
[[nodiscard]] Result<Manifest> parse_manifest(std::string_view text, const std::string& pod_namespace,
                                              const std::vector<DeviceClass>& classes);

}  // namespace neuron::fleet
