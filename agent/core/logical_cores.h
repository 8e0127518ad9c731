#pragma once

#include <optional>
#include <vector>

#include "agent/model/host_scan.h"

// Numbering of logical cores (neuron-driver.md §14): global id = device index * cores per device + position, so ids of
// a missing device stay unused. Pure functions.
namespace neuron::core {

// Logical cores of one device, nullopt when core count or LNC is unknown. With LNC 2 and 8 physical cores: 4.
[[nodiscard]] std::optional<int> logical_cores_of(const model::NeuronDevice& device, const model::HostScan& scan);

// The largest logical core count of any device in the scan: the stride of the global numbering; 0 without devices.
[[nodiscard]] int cores_per_device(const model::HostScan& scan);

// Global ids of one device, ascending.
[[nodiscard]] std::vector<int> core_ids_of(const model::NeuronDevice& device, const model::HostScan& scan);

}  // namespace neuron::core
