#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/health/assess.h"

// The health policy of EFA interfaces. Pure.
namespace neuron::health {

// One verdict per interface of a completed scan, in its order. Updates memory.verbs_nodes_seen.
[[nodiscard]] std::vector<model::Health> verdicts_on_efas(const model::HostScan& scan, HealthMemory& memory);

// The verdict on the device or interface `name` that does not answer: names the first of `parts` that the scan left
// out.
[[nodiscard]] model::Health verdict_on_silence(const model::HostScan& scan, const std::string& name,
                                               const std::vector<model::ScanPart>& parts);

// The verdict on the device or interface `name` of one of HostScan::unread_lists; `list`: its path.
[[nodiscard]] model::Health verdict_on_unread_list(const model::HostScan& scan, const std::string& name,
                                                   std::string_view list);

// The verdict on every interface when none has a verbs device: "ib_uverbs_not_loaded", or "verbs_devices_missing" when
// the module is loaded. `module_loaded`: sys/module/ib_uverbs exists. Names no interface.
[[nodiscard]] model::Health without_verbs(bool module_loaded);

}  // namespace neuron::health
