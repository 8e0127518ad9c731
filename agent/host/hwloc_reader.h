#pragma once

#include "agent/base/result.h"
#include "agent/host/fs_root.h"
#include "agent/host/machine_topology.h"

namespace neuron::host {

// The machine as hwloc sees it, CPUs that this process may not use included. The only user of hwloc, for the helper
// program neuron-topology (see load_machine_topology): hwloc takes its root from the environment of the process, which
// this sets, and on a hostile or broken machine it may hang, abort or ask for all memory. "/" it reads itself; of any
// other root it is given a copy (hwloc_copy.h) in a temporary directory. Call it while there is one thread. Errors:
// internal, with hwloc's errno, also where the root describes no processors.
[[nodiscard]] Result<MachineTopology> read_with_hwloc(const FsRoot& root);

}  // namespace neuron::host
