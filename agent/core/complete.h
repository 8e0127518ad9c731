#pragma once

#include "agent/model/host_scan.h"

namespace neuron::core {

// Fills what the host left silent from the catalogue, marked `assumed`: neighbours (also when the driver blanked them
// because a device is missing; kept live when a live list is non-empty), numa_node and cpus (only where
// numa_is_known), physical_cores, memory_bytes, lnc, and bdf where bdf_is_stable. Never overwrites a live value,
// but for an LNC that the chips do not know: it is ignored, with a line of problems. Unknown instance types: only what
// the family fixes (core count, memory, LNC). A NUMA node that the machine does not have is not assumed. Pure.
[[nodiscard]] model::HostScan complete(model::HostScan scan);

}  // namespace neuron::core
