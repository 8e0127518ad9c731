#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "agent/grant/node_units.h"

// The devices of this node as the scheduler sees them: one pool, in the order in which it tries them
// (docs/reference/dra.md#attributes, docs/reference/dra.md#groups).
namespace neuron::plugin::dra {

enum class DeviceKind { device, core, group, efa, node };  // attribute resourceType: neuron_device, neuron_core, …

struct Version {
  std::string text;  // semantic version 2.0.0
  friend bool operator==(const Version&, const Version&) = default;
};
using AttributeValue = std::variant<std::int64_t, bool, std::string, Version>;
// "deviceId" is of the driver's domain, "resource.aws.com/devicegroup4_id" of its own.
using Attributes = std::map<std::string, AttributeValue>;

struct Taint {
  std::string key;
  std::string value;   // reason code
  std::string effect;  // "NoSchedule", "NoExecute"
  friend bool operator==(const Taint&, const Taint&) = default;
};

struct PoolDevice {
  std::string name;  // "neuron-device-3", "neuron-device-3-core-1", "neuron-group-4-7", "efa-rdmap16s25", "neuron-node"
  DeviceKind kind = DeviceKind::device;
  Attributes attributes;
  std::map<std::string, std::int64_t> capacity;  // "cores", "memory" in bytes
  std::map<std::string, std::int64_t> consumes;  // counter -> how many; empty where the pool has no counters
  std::vector<Taint> taints;
  std::vector<int> devices;  // host indices of what it is or is part of, in the order of its name; empty for interfaces
  bool held = false;         // by a claim
  bool unhealthy = false;    // or any part of it
  friend bool operator==(const PoolDevice&, const PoolDevice&) = default;
};

enum class Partitions { none, cores, groups, all };  // --dra-partitions
enum class UltraServer { node, devices };            // --dra-ultraserver: offered as one device, or as its devices

struct PoolOptions {
  std::string driver = "neuron.aws.com";  // --dra-driver-name, of the taint's key
  Partitions partitions = Partitions::none;
  UltraServer ultraserver = UltraServer::node;
  std::string taint_effect = "NoSchedule";  // of what is unhealthy; "" = none
};

struct Pool {
  // Counter "device-<N>" -> logical cores of the device; one counter set "cores" holds them all. Empty: nothing in the
  // pool overlaps.
  std::map<std::string, std::int64_t> counters;
  // Of each kind in the order in which the scheduler takes the first that fits: cores and devices from the low end,
  // groups from the high end, small ones first (docs/dra-partitions.md).
  std::vector<PoolDevice> devices;
  friend bool operator==(const Pool&, const Pool&) = default;
};

// Pure. `held`: names of pool devices that claims hold. They stay although the node or the options do not have them any
// more: what a claim took is known by the slice alone. While one is a device, core or group, an UltraServer's node is
// not made one device, and the other way round. Names that nobody could have published are ignored.
[[nodiscard]] Pool make_pool(const grant::NodeUnits& node, const PoolOptions& options,
                             const std::vector<std::string>& held);

// How many device indices there are before the first follows again, for members_of(): of the instance type, else one
// more than the greatest.
[[nodiscard]] int ring_size(const grant::NodeUnits& node);

}  // namespace neuron::plugin::dra
