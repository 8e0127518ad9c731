#pragma once

#include "agent/base/result.h"
#include "agent/host/fs_root.h"

namespace neuron::host {

// Writes what hwloc reads of a machine's processors, memory and PCI functions into the empty directory open at
// `directory`: plain files in plain folders, read through `root`, so that links resolve inside it, nothing blocks and
// nothing is larger than the kernel makes it. CPUs above 8191, nodes above 1023 and lists that name such, which hwloc
// would ask gigabytes for, are left out, as is whatever cannot be read. Errors: internal (a file could not be written).
[[nodiscard]] Result<void> copy_for_hwloc(const FsRoot& root, int directory);

}  // namespace neuron::host
