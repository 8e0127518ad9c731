#pragma once

#include <vector>

#include "agent/core/complete.h"
#include "agent/health/policy.h"

// From what a scan saw to what the node is; the agent and all tools go through it. Pure.
namespace neuron::health {

// State kept between scans; empty for the first. Passive data, owned by the caller.
struct AssessMemory {
  core::SeenBefore seen;
  HealthMemory health;
};

struct Assessment {
  model::HostScan host;            // completed from the tables; what vanished since the first scan in its place; with
                                   // the health of every device, core and interface
  std::vector<DeviceBasis> bases;  // parallel to host.devices
  std::vector<MissingFiles> missing;  // files that no device of a chip family shows though its driver should
};

// Calls core::keep_last_seen, core::complete and evaluate on a scan taken at `now`, completed before or not. Files in
// `missing` are named in host.problems as well. Updates `memory`.
[[nodiscard]] Assessment assess(model::HostScan scan, AssessMemory& memory, SteadyTime now);

}  // namespace neuron::health
