#pragma once

#include <optional>
#include <string>

#include "agent/core/catalogue.h"
#include "agent/model/host_scan.h"

// The healthy, idle node of an instance type, without a machine: what a scan of it would show.
namespace neuron::core {

// Facts that the type leaves open.
struct TypicalFacts {
  std::optional<int> lnc;      // nullopt: the family's default. Callers check it with has_lnc()
  std::string driver_version;  // "" = unknown
};

// Whether a node of the type can have that LNC.
[[nodiscard]] bool has_lnc(const InstanceType& type, int lnc);

// Completed and with all health. Addresses that are not public are made up, the same as the simulator's. Left out are
// facts of one machine: serial numbers, instance id, the ids of an UltraServer (of which it is node 0 of 4). Pure.
[[nodiscard]] model::HostScan typical_host(const InstanceType& type, const TypicalFacts& facts);

}  // namespace neuron::core
