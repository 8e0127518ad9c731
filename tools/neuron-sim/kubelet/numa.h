#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tools/neuron-sim/kubelet/pod.h"

// NUMA as the device manager sees it. Pure functions.
namespace neuron::sim {

// One device as its plugin last listed it.
struct PluginDevice {
  bool healthy = false;
  std::vector<int> numa_nodes;  // empty: no topology known
};
using PluginDevices = std::map<std::string, PluginDevice>;  // by id

// `available` in three parts: on a node of the affinity, on other nodes only, on none.
struct NumaSplit {
  IdSet aligned, unaligned, no_affinity;
};

// Without an affinity, or when no device of the resource has a NUMA node, everything is in no_affinity.
// Source: manager.go filterByAffinity.
[[nodiscard]] NumaSplit split_by_numa(const IdSet& available, const PluginDevices& devices,
                                      const std::optional<std::set<int>>& affinity);

// What a container needs of one resource. `usable`: healthy ids that are free or reusable.
struct NumaDemand {
  int needed = 0;
  PluginDevices devices;
  IdSet usable;
};

// The smallest set of NUMA nodes (ties: lowest nodes) that can serve every demand; nullopt when no demand has NUMA
// nodes or none fits. At most 16 nodes are considered.
[[nodiscard]] std::optional<std::set<int>> smallest_numa_set(const std::vector<NumaDemand>& demands);

}  // namespace neuron::sim
