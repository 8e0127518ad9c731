#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/kubectl-neuron/fit.h"
#include "tools/kubectl-neuron/manifest.h"

// Number of a manifest's pods that fit: now, on the same nodes without pods, and on an empty node of each instance
// type. nullopt: not known whether there is one, since it was not tried within the time limit or is in doubt. Pure.
namespace neuron::fleet {

struct NodeCount {
  std::string node;
  int pods = 0;
};

// Pods of one template. Passive data.
struct GroupPlan {
  std::string pod;
  bool has_hardware = true;  // asks for some; else `nodes` and `empty_fleet` say nothing
  int asked = 0;
  std::optional<int> placed = 0;       // of those asked for, all groups together
  std::vector<NodeCount> nodes;        // where; by name
  std::optional<int> empty_fleet = 0;  // this group alone on the same nodes without other pods; at most kMostCounted
  std::vector<NodeGroup> obstacles;    // of the nodes, once all are placed that can be; empty when all asked are placed
};

struct TypeCount {
  std::string type;
  std::optional<int> pods = 0;  // of more_of
  std::string why;              // with 0: the first obstacle
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
  int asked = 0;
  int placed = 0;
  std::optional<int> more = 0;  // of more_of, after all that are asked for; at most kMostCounted
  std::string more_of;          // the first group that asks for hardware and is no DaemonSet's; "": none
  std::vector<GroupPlan> groups;
  std::vector<TypeCount> types;
  std::optional<std::vector<Stranded>> stranded = std::vector<Stranded>();
  std::vector<std::string> aside;        // general resources of more_of: not counted in `types`
  std::vector<std::string> not_counted;  // what the pods ask for beside: "pod anti-affinity", "cpu"
  bool was_cut = false;                  // by the time limit
  bool no_such_resource = false;         // one that no node has; a note says which
  std::vector<std::string> notes;
};
inline constexpr int kMostCounted = 10'000;

// `replicas` above 0 stands for the number of more_of. Without a group that asks for hardware nothing is placed. Pods
// are placed one after the other: on the node that has most of this plan's pods already and takes another one, the
// first by name among equals; so nodes are filled.
// Once `effort` has ended, nothing more is tried: numbers are the least, and a note says so.
[[nodiscard]] Plan plan(const Fleet& fleet, const Manifest& manifest, int replicas, Effort* effort = nullptr);

// An empty node of an instance type, as the agent offers it by default.
[[nodiscard]] NodeState empty_node(const std::string& instance_type, Mode mode);
// The pod on such nodes: its rules about labels are left out.
[[nodiscard]] std::vector<TypeCount> counts_by_type(const Fleet& rules, const Pod& pod, Effort* effort = nullptr);

[[nodiscard]] std::string plan_text(const Plan& plan);
[[nodiscard]] std::string plan_json(const Plan& plan);  // format "kubectl-neuron-plan/1"
[[nodiscard]] int exit_status(const Plan& plan);        // 0 fits, 1 does not, 2 cannot tell, or no_such_resource

}  // namespace neuron::fleet
