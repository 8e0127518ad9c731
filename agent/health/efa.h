#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/health/policy.h"

// The part of the health policy that is about EFA interfaces. Pure.
namespace neuron::health {

// One verdict per interface of a completed scan, in its order. Updates memory.verbs_nodes_seen and
// memory.lost_commands.
[[nodiscard]] std::vector<model::Health> judge_efas(const model::HostScan& scan, HealthMemory& memory);

// The verdict on what is not answering: names the first of `parts` that the scan left out.
[[nodiscard]] model::Health silent_verdict(const model::HostScan& scan, const std::string& name,
                                           const std::vector<model::ScanPart>& parts);

[[nodiscard]] model::Health make_verdict(model::HealthState state, std::string_view reason, std::string sentence,
                                         std::string_view action);

}  // namespace neuron::health
