#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "tools/kubectl-neuron/fit.h"

namespace neuron::fleet {

// Units of one kind on a node. A unit that is both held and unhealthy counts as held.
struct Units {
  std::int64_t total = 0;
  std::int64_t held = 0;
  std::int64_t unhealthy = 0;  // of those not held
  // False: the sum of the two is known alone. The Node does not show which devices are held core by core.
  bool are_apart = true;
  [[nodiscard]] std::int64_t free() const { return total - held - unhealthy; }
  friend bool operator==(const Units&, const Units&) = default;
};

// Whether a node is of this fleet at all: it offers or reports hardware, or has an agent. Pure.
[[nodiscard]] bool has_hardware(const Node& node);

struct NodeCounts {
  std::optional<Units> devices;  // held: wholly or in part
  std::optional<Units> cores;    // logical
  std::optional<Units> efas;
  std::optional<int> largest_group;  // devices, of those free: what one container could have as a set
  int unhealthy = 0;                 // devices and interfaces that are unhealthy, held or not
  int degraded = 0;
  bool is_exact = false;  // by the agent's document; else by the numbers of the Node and its pods alone
};

// Nodes as the API server alone shows them, by name. Passive data.
struct Asked {
  std::map<std::string, Amounts> amounts;  // what the pods placed there ask for of each resource
  std::map<std::string, SingleNames> single_names;
  bool pods_partial = false;                // then nothing is known of a node by its amounts
  std::map<std::string, NodeCounts> pools;  // devices and interfaces in slices, and of them in claims
};
[[nodiscard]] Asked asked_by_node(const Fleet& fleet);

// By the agent's document; without one by the node's slices, else by its numbers. Pure.
[[nodiscard]] NodeCounts count_node(const Node& node, const Asked& asked);

}  // namespace neuron::fleet
