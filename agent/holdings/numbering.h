#pragma once

#include <optional>
#include <vector>

#include "agent/model/host_scan.h"

// With which LNC, physical cores per logical core (agent/core/logical_cores.h), the core ids were numbered that
// containers hold from before the agent started. With another LNC an id means other hardware, and the file that sets
// LNC may have been edited since. Pure.
namespace neuron::holdings {

// Evidence in the kubelet's checkpoint for the numbering of core ids. Passive data; foreign, so its reader bounds it.
struct NumberingEvidence {
  struct Given {
    std::vector<int> cores;    // ids of one container, ascending
    std::vector<int> devices;  // indices of the device nodes it got with them, ascending; empty: not known
  };
  std::vector<Given> given;
  std::optional<int> highest_listed;  // of the core ids that the kubelet last took as healthy
};

// The largest number of physical cores of any device; by the instance type where no device has one. nullopt: not known,
// or no Neuron node.
[[nodiscard]] std::optional<int> physical_cores_per_device(const model::HostScan& host);

// The LNC with which `evidence` fits this node: every container's ids lie on the devices it got, and none lies beyond
// the last device. Of several the largest, as with a smaller one higher ids would have been listed; but where no listed
// id is known, what `host` says now, if that fits. Without evidence, or when nothing fits: what `host` says now, else
// the chip's default. nullopt: not known.
[[nodiscard]] std::optional<int> lnc_in_use(const NumberingEvidence& evidence, const model::HostScan& host);

}  // namespace neuron::holdings
