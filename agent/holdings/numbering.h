#pragma once

#include <optional>
#include <vector>

#include "agent/model/host_scan.h"

// In which numbering core ids were given out. An id says nothing without LNC, physical cores per logical core
// (logical_cores.h), and the file that sets LNC may have been edited since. Pure.
namespace neuron::holdings {

// What the kubelet remembers of ids it was given. Passive data, foreign: bounded by whoever reads it.
struct NumberingEvidence {
  struct Given {
    std::vector<int> cores;    // ids of one container, ascending
    std::vector<int> devices;  // whose device nodes it got with them, ascending; empty: not known
  };
  std::vector<Given> given;
  std::optional<int> highest_listed;  // of the core ids that the kubelet last took as healthy
};

// Physical cores of the node's devices, the most of any; where there is no device, by the instance type. nullopt: not
// known, or no Neuron node.
[[nodiscard]] std::optional<int> physical_cores_per_device(const model::HostScan& host);

// The LNC with which `evidence` makes sense on this node: every container's ids lie on the devices it got, and no id
// beyond the last device. When several do, the largest that still has the highest id listed, as a smaller one would
// have had more of them; else, and when none does, what `host` says now, else the chip's default. nullopt: not known.
[[nodiscard]] std::optional<int> lnc_in_use(const NumberingEvidence& evidence, const model::HostScan& host);

}  // namespace neuron::holdings
