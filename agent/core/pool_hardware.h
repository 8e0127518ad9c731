#pragma once

#include <string>
#include <vector>

#include "agent/core/pool_names.h"
#include "agent/model/host_scan.h"

// What the names of a pool's devices mean on one node. Pure.
namespace neuron::core {

// Everything ascending, each once; nothing of it where the name is none of this node's.
struct PoolHardware {
  std::vector<int> devices;       // indices of those that are held whole, or through one of their cores
  std::vector<int> cores;         // global logical ids (logical_cores.h); empty where their number is unknown
  std::vector<std::string> efas;  // RDMA names
  friend bool operator==(const PoolHardware&, const PoolHardware&) = default;
};

// As far as `host` has it: of a group, the members that are there.
[[nodiscard]] PoolHardware hardware_of(const PoolName& name, const model::HostScan& host);

// The devices that the name speaks of, whether or not `host` has them: by index, in the name's order. Empty for an
// interface, and for a group that this node cannot have.
[[nodiscard]] std::vector<int> named_devices(const PoolName& name, const model::HostScan& host);

}  // namespace neuron::core
