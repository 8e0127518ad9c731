#pragma once

#include <map>
#include <string>
#include <vector>

#include "agent/base/result.h"
#include "agent/model/host_scan.h"

namespace neuron::host {

// What hwloc knows of the machine: read once and again when the set of PCI functions changes, since it costs
// milliseconds and memory. The hwloc topology itself is freed before return.
struct MachineTopology {
  std::vector<model::NumaNode> numa_nodes;         // ascending
  std::map<model::Bdf, std::vector<int>> numa_of;  // Amazon PCI functions (vendor 1d0f): NUMA nodes of its locality;
                                                   // absent = no locality known
};

// hwloc's root is the environment of the process: main() calls this before any thread exists. "/" leaves hwloc alone.
void set_hwloc_root(const std::string& root_directory);

// The root hwloc would read now: what set_hwloc_root was told last, or "/".
[[nodiscard]] std::string hwloc_root();

// Loads the topology (I/O filter KEEP_ALL), including CPUs that this process may not use. Errors: internal with hwloc's
// errno, also where the root describes no processors. Any thread, while nobody changes the environment.
[[nodiscard]] Result<MachineTopology> load_machine_topology();

}  // namespace neuron::host
