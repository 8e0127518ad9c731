#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "agent/base/result.h"
#include "agent/host/fs_root.h"
#include "agent/model/host_scan.h"

namespace neuron::host {

// The machine as hwloc sees it: read once and again when the set of PCI functions changes, since it costs milliseconds.
struct MachineTopology {
  std::vector<model::NumaNode> numa_nodes;         // ascending
  std::map<model::Bdf, std::vector<int>> numa_of;  // Amazon PCI functions (vendor 1d0f): NUMA nodes of its locality;
                                                   // absent = no locality known
  friend bool operator==(const MachineTopology&, const MachineTopology&) = default;
};

// Asks hwloc through the helper program neuron-topology, which runs under limits of memory and time of its own: if
// hwloc hangs or crashes, only the helper ends. Any thread; blocks for at most 6 s. Errors, all beginning with "hwloc:
// ": internal (hwloc failed or crashed; no processors below the root), deadline_exceeded, data_corrupt, not_found (the
// helper is not installed beside this program).
[[nodiscard]] Result<MachineTopology> load_machine_topology(const FsRoot& root);

// The helper's output, which load_machine_topology reads: a line with the version, one per node and function, and
// "end".
[[nodiscard]] std::string format_topology(const MachineTopology& machine);
// Errors: data_corrupt (another version, numbers that no machine has, no "end").
[[nodiscard]] Result<MachineTopology> parse_topology(std::string_view text);

}  // namespace neuron::host
