#pragma once

#include <memory>
#include <string>
#include <vector>

#include "agent/grant/node_units.h"
#include "plugin/dra/slices/pool.h"
#include "plugin/kubelet/list_hub.h"

namespace neuron::plugin::dra {

// What the kubelet is told of one device; it shows it in the status of pods, and nobody acts on it (taints do that).
struct DeviceHealth {
  enum class State { unknown, healthy, unhealthy };
  std::string device;  // as in the slice
  State state = State::unknown;
  std::string message;  // what was seen and what to do; at most kMostMessage bytes
  friend bool operator==(const DeviceHealth&, const DeviceHealth&) = default;
};

struct HealthList {
  std::string pool;
  std::vector<DeviceHealth> devices;  // all of the pool, in its order
  friend bool operator==(const HealthList&, const HealthList&) = default;
};
using HealthListPtr = std::shared_ptr<const HealthList>;
using HealthHub = ListHub<HealthList>;  // to every stream of the kubelet

inline constexpr std::size_t kMostMessage = 1024;  // of the protocol

// A core has the health of its own, a group and the node that of its worst device. What is degraded is healthy, with
// the message; what is in the pool and not in the snapshot any more is unhealthy, or unknown while the list that it
// would be on was never read. Pure.
[[nodiscard]] HealthList make_health_list(const Pool& pool, const grant::NodeUnits& node, std::string pool_name);

}  // namespace neuron::plugin::dra
