#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "agent/base/result.h"
#include "tools/kubectl-neuron/fit.h"

// Pods of a manifest in JSON, and how many of them fit: now, on the same nodes without pods, and on an empty node of
// each instance type. Pure.
namespace neuron::fleet {

// ---- The manifest (manifest.cpp)

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
// Errors: data_corrupt (no JSON), invalid_argument (no pod in it, more than 256, a request or a count that cannot
// be read, text beside the objects, more than 100,000 pods of one template).
[[nodiscard]] Result<Manifest> parse_manifest(std::string_view text, const std::string& pod_namespace,
                                              const std::vector<DeviceClass>& classes);

// ---- Its plan

// A number of pods that fit. Passive data.
struct Count {
  std::optional<int> pods = 0;  // nullopt: not known whether there is one; or, without `least`, not counted
  bool least = false;           // there may be more: not all was tried or could be read, or counting ended at the bound
  friend bool operator==(const Count& one, const std::optional<int>& number) { return one.pods == number; }
};

struct NodeCount {
  std::string node;
  int pods = 0;
};

// Pods of one template. Passive data.
struct GroupPlan {
  std::string pod;
  bool has_hardware = true;          // asks for some; else `nodes` and `empty_fleet` say nothing
  std::optional<int> asked = 0;      // nullopt: of a DaemonSet, and its nodes could not be read
  Count placed;                      // of those asked for, all groups together
  std::vector<NodeCount> nodes;      // where; by name
  Count empty_fleet;                 // this group alone on the same nodes without other pods; never below `placed`
  std::vector<NodeGroup> obstacles;  // of the nodes, once all are placed that can be; empty when all asked are placed
};

struct TypeCount {
  std::string type;
  Count pods;       // of more_of
  std::string why;  // with 0: the first obstacle
};

// Free hardware that no pod of more_of can use, on nodes with the same obstacles. Passive data.
struct Stranded {
  std::vector<std::string> nodes;
  std::string unit;  // "aws.amazon.com/neuron", "devices by claim", "cores by claim"
  std::int64_t free = 0;
  std::string why;
};

struct Plan {
  Answer answer = Answer::unknown;
  std::optional<int> asked = 0;
  Count placed;
  Count more = {std::nullopt, true};  // of more_of, after all that are asked for
  std::string more_of;                // the first group that asks for hardware and is no DaemonSet's; "": none
  std::vector<GroupPlan> groups;
  std::vector<TypeCount> types;
  std::optional<std::vector<Stranded>> stranded;  // nullopt: not known, or no more_of
  std::vector<std::string> aside;                 // general resources of more_of: not counted in `types`
  std::vector<std::string> not_counted;           // what the pods ask for beside: "pod anti-affinity", "cpu"
  std::string no_nodes;           // why nothing can be placed: "no node could be read"; "": there are some
  bool was_cut = false;           // by the time limit
  bool no_such_resource = false;  // one that no node has; a note says which
  std::vector<std::string> notes;
};
inline constexpr int kMostCounted = 10'000;

// `replicas` above 0 stands for the number of more_of. Without a group that asks for hardware nothing is placed. Pods
// are placed one after the other: on the node that has most of this plan's pods already and takes another one, the
// first by name among equals; so nodes are filled.
// Once `effort` has ended, nothing more is tried: numbers are the least, and a note says so.
// Counting of a template's pods ends at `most` more than are asked for.
[[nodiscard]] Plan plan(const Fleet& fleet, const Manifest& manifest, int replicas, Effort* effort = nullptr,
                        int most = kMostCounted);

// A node without its pods and claims. Unhealthy hardware stays so.
[[nodiscard]] NodeState emptied(NodeState state);
// An empty node of an instance type, as the agent offers it by default.
[[nodiscard]] NodeState empty_node(const std::string& instance_type, Mode mode);
// The pod on such nodes: its rules about labels are left out.
[[nodiscard]] std::vector<TypeCount> counts_by_type(const Fleet& rules, const Pod& pod, int most,
                                                    Effort* effort = nullptr);

// About pods that are counted otherwise than they are written, or need no plan.
[[nodiscard]] std::vector<std::string> manifest_notes(const std::vector<PodGroup>& groups);

[[nodiscard]] std::string plan_text(const Plan& plan);
[[nodiscard]] std::string plan_json(const Plan& plan);  // format "kubectl-neuron-plan/1"
[[nodiscard]] int exit_status(const Plan& plan);        // 0 fits, 1 does not, 2 cannot tell, or no_such_resource

}  // namespace neuron::fleet
