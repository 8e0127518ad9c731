#pragma once

#include <optional>
#include <vector>

#include "agent/model/host_scan.h"

// Numbering of logical cores (docs/reference/driver.md#logical-cores): global id = device index * cores per device +
// position, so ids of a missing device stay unused. Pure functions.
namespace neuron::core {

// Logical cores of one device, nullopt when core count or LNC is unknown. With LNC 2 and 8 physical cores: 4.
[[nodiscard]] std::optional<int> logical_cores_of(const model::NeuronDevice& device, const model::HostScan& scan);

// The largest logical core count of any device in the scan: the stride of the global numbering; 0 without devices.
[[nodiscard]] int cores_per_device(const model::HostScan& scan);

// [logical position before LNC joins cores] = physical core: the driver's answer where it covers all cores, else the
// order of the family. Empty when the core count is unknown.
[[nodiscard]] std::vector<int> physical_order_of(const model::NeuronDevice& device);

// The physical cores behind the logical core at `position` of the device, LNC of them; empty when nobody can say.
[[nodiscard]] std::vector<int> physical_cores_of(const model::NeuronDevice& device, const model::HostScan& scan,
                                                 int position);

// Global ids of one device, ascending.
[[nodiscard]] std::vector<int> core_ids_of(const model::NeuronDevice& device, const model::HostScan& scan);

}  // namespace neuron::core
