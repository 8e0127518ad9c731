#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/health/policy.h"

// The part of the health policy that is about EFA interfaces. Pure.
namespace neuron::health {

// One verdict per interface of a completed scan, in its order. Updates memory.verbs_nodes_seen.
[[nodiscard]] std::vector<model::Health> verdicts_on_efas(const model::HostScan& scan, HealthMemory& memory);

// The verdict on a device or an interface, `name`, that does not answer: names the first of `parts` that the scan left
// out.
[[nodiscard]] model::Health verdict_on_silence(const model::HostScan& scan, const std::string& name,
                                               const std::vector<model::ScanPart>& parts);

// The verdict on a device or an interface, `name`, that would be on one of HostScan::unread_lists; `list`: its path.
[[nodiscard]] model::Health verdict_on_unread_list(const model::HostScan& scan, const std::string& name,
                                                   std::string_view list);

}  // namespace neuron::health
