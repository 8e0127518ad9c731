#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "agent/grant/node_units.h"

// The devices of this node as the scheduler sees them: one pool, in the order in which it tries them.
namespace neuron::plugin::dra {

enum class DeviceKind { device, core, group, efa, node };  // attribute resourceType: neuron_device, neuron_core, …

struct Version {
  std::string text;  // semantic version 2.0.0
  friend bool operator==(const Version&, const Version&) = default;
};
using AttributeValue = std::variant<std::int64_t, bool, std::string, Version>;

struct Taint {
  std::string key;
  std::string value;   // reason code
  std::string effect;  // "NoSchedule", "NoExecute"
  friend bool operator==(const Taint&, const Taint&) = default;
};

struct PoolDevice {
  std::string name;  // "neuron-device-3", "neuron-device-3-core-1", "neuron-group-4-7", "efa-rdmap16s25", "neuron-node"
  DeviceKind kind = DeviceKind::device;
  std::map<std::string, AttributeValue>
      attributes;  // "deviceId" is of the driver's domain, "resource.aws.com/x" of its own
  std::map<std::string, std::int64_t> capacity;  // "cores", "memory" in bytes
  std::map<std::string, std::int64_t> consumes;  // counter -> how many; empty where the pool has no counters
  std::vector<Taint> taints;
  friend bool operator==(const PoolDevice&, const PoolDevice&) = default;
};

enum class Partitions { none, cores, groups, all };  // --dra-partitions
enum class UltraServer { node, devices };            // --dra-ultraserver: offered as one device, or as its devices

struct PoolOptions {
  Partitions partitions = Partitions::all;
  UltraServer ultraserver = UltraServer::node;
  std::string taint_effect = "NoSchedule";  // of what is unhealthy; "" = none
};

struct Pool {
  // Counter "device-<N>" -> logical cores of the device; one counter set "cores" holds them all. Empty: no partitions.
  std::map<std::string, std::int64_t> counters;
  std::vector<PoolDevice> devices;  // in the order in which the scheduler takes the first that fits
  friend bool operator==(const Pool&, const Pool&) = default;
};

// Pure. `held`: names of pool devices that claims hold, which stay although they are not in the snapshot any more.
[[nodiscard]] Pool make_pool(const grant::NodeUnits& node, const PoolOptions& options,
                             const std::vector<std::string>& held);

}  // namespace neuron::plugin::dra
