#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "agent/base/result.h"
#include "agent/core/hardware.h"
#include "agent/core/offer_policy.h"
#include "agent/grant/grant.h"

namespace neuron::kube {
struct ServerVersion;  // agent/kube/answers.h
}

// The devices of this node that the scheduler chooses from: one pool, in the order in which the scheduler tries them
// (docs/reference/dra.md#attributes, docs/reference/dra.md#groups); and its layout in slices that a server takes.
// Servers differ by version and by feature gates, and silently drop the fields of a gate that is closed
// (docs/reference/dra.md#server-versions). Pure.
namespace neuron::plugin::dra {

using core::CoreName;
using core::DeviceName;
using core::efa_label;
using core::EfaName;
using core::GroupName;
using core::members_of;
using core::NodeName;
using core::parse_pool_name;
using core::PoolName;
using core::ShareName;
using core::to_string;

enum class DeviceKind { device, core, group, efa, node };  // attribute resourceType: neuron_device, neuron_core, …

struct Version {
  std::string text;  // semantic version 2.0.0
  friend bool operator==(const Version&, const Version&) = default;
};
using AttributeValue = std::variant<std::int64_t, bool, std::string, Version>;
// A name without a domain ("deviceId") is of the driver's; others have theirs ("resource.aws.com/devicegroup4_id").
using Attributes = std::map<std::string, AttributeValue>;
// Names of Kubernetes, equal in all drivers. Absent without a value, since an empty one would match others.
inline constexpr const char* kPciBusId = "resource.kubernetes.io/pciBusID";
inline constexpr const char* kStandardNumaNode = "resource.kubernetes.io/numaNode";

// Counter "device-<N>" -> logical cores of the device.
using Counters = std::map<std::string, std::int64_t>;

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
  Counters consumes;                             // empty in a pool without counters
  std::vector<Taint> taints;
  std::vector<int> devices;  // host indices of its devices, in the order of its name; empty for interfaces
  bool held = false;         // by a claim
  bool unhealthy = false;    // or any part of it
  // Claims may share it, where the server keeps that and no counters are used: its healthy logical cores, 0 = it may
  // not be shared.
  int shareable_cores = 0;
  friend bool operator==(const PoolDevice&, const PoolDevice&) = default;
};

// "networkNodeLayer1" to "3", by the Node's labels topology.k8s.aws/network-node-layer-1 to -3: attributes of all
// Neuron devices, "" without the label.
using NetworkLayers = std::map<std::string, std::string>;
// The attributes that a slice publishes: with those of the node, and not more than the server takes.
[[nodiscard]] Attributes published_attributes(const PoolDevice& device, const NetworkLayers& layers);

enum class Partitions { none, cores, groups, all };  // --dra-partitions
enum class Shares { off, on, automatic };            // --dra-shares; automatic: where no other claim notices
enum class UltraServer { node, devices };            // --dra-ultraserver: offered as one device, or as its devices

struct PoolOptions {
  std::string driver{core::kDefaultDriverName};  // --dra-driver-name, of the taint's key
  Partitions partitions = Partitions::none;
  Shares shares = Shares::automatic;  // without effect beside partitions, whose counters do not count shares
  // --core-devices: these are offered as their cores alone, without counters; nullopt or beside partitions: none.
  std::optional<core::CoreDevices> core_devices{};
  UltraServer ultraserver = UltraServer::node;
  std::string taint_effect = "NoSchedule";  // on unhealthy devices; "" = no taint
};

struct Pool {
  Counters counters;                  // one counter set, "cores", holds them all; empty: no devices of the pool overlap
  Shares shares = Shares::automatic;  // as the options have it
  // Devices, each kind in the order in which the scheduler takes the first that fits: cores and devices from the low
  // end, groups from the high end, small ones first (docs/dra-partitions.md).
  std::vector<PoolDevice> devices;
  friend bool operator==(const Pool&, const Pool&) = default;
};

// `held`: names of pool devices that claims hold. These stay although the node or the options no longer have them,
// since only the slice describes the hardware of a claim. While a claim holds a device, core or group, the node of an
// UltraServer is not offered as one device, and vice versa. Names that this driver cannot have published are ignored.
[[nodiscard]] Pool make_pool(const grant::NodeUnits& node, const PoolOptions& options,
                             const std::vector<std::string>& held);

struct Group {
  GroupName name;
  std::vector<int> members;  // host indices, in the order of the name
  friend bool operator==(const Group&, const Group&) = default;
};

// The groups of devices that a node offers. Where AWS's scheduler groups devices (tori and switched fabrics): the
// aligned 4, 8 and 16. On rings and lines: every run of two or more linked neighbours, on a ring also across its end.
// All members are in the snapshot, healthy or not. Small groups first; of one size those at the high end first, those
// across the end of a ring last. Empty on a node with one device.
[[nodiscard]] std::vector<Group> groups_of(const grant::NodeUnits& node);

// Attributes of a device of the pool. All devices of one kind have the same names, except those that only some instance
// types or machines have; every device has the names that a DeviceClass may use. `devices`: host indices, one or more;
// an index that the node does not have has its number as the only fact.
[[nodiscard]] Attributes device_attributes(const grant::NodeUnits& node, int device);
[[nodiscard]] Attributes core_attributes(const grant::NodeUnits& node, int device, int core);
[[nodiscard]] Attributes group_attributes(const grant::NodeUnits& node, const std::vector<int>& devices);
[[nodiscard]] Attributes node_attributes(const grant::NodeUnits& node, const std::vector<int>& devices);
// Attributes of an interface, by its position; -1: an interface that has vanished.
[[nodiscard]] Attributes efa_attributes(const grant::NodeUnits& node, int unit);

enum class SliceShape {
  plain,     // whole devices and interfaces: no counters, so nothing that overlaps
  combined,  // counters and all that use them in one slice (1.34)
  split,     // counters in a slice of their own (from 1.35)
};

struct LayoutOptions {
  SliceShape shape = SliceShape::split;
  bool taints = true;  // the server keeps them
  bool shares = true;  // the server keeps allowMultipleAllocations and requestPolicy
  // A claim with "allocationMode: All" waits until no part of a shared device is held; up to 1.36 it gets the rest.
  bool all_waits = true;
};

inline constexpr const char* kCounterSet = "cores";

// The content of one slice: counters or devices; both in a combined one.
struct SliceContent {
  Counters counters{};                // of the set kCounterSet; empty: the slice has no set
  std::vector<PoolDevice> devices{};  // in the order in which the scheduler tries them
};

struct Layout {
  std::vector<SliceContent> slices;   // in the order of their names; empty: nothing to publish
  std::vector<std::string> left_out;  // sentences: devices of the pool that are not in the slices, and why
};

// Fills slices within the limits of docs/reference/dra.md#limits. Without counters, cores and groups stay only where a
// claim holds them, and devices that overlap with these go; without taints, unhealthy devices that no claim holds go.
// A device that is shared has the capacity of its healthy cores, the attribute "whole" (all of them are)
// and no taint for an unhealthy core.
[[nodiscard]] Layout lay_out(const Pool& pool, const LayoutOptions& options);

// The shape for a version with open gates; whether they are open shows only in the stored objects. Errors:
// failed_precondition before 1.34.
[[nodiscard]] Result<SliceShape> shape_for(const kube::ServerVersion& server);

// LayoutOptions::all_waits of the scheduler of that version.
[[nodiscard]] bool all_waits(const kube::ServerVersion& server);

// Consequences of the versions of API servers and schedulers for slices, as stored in them: "split,all-waits".
struct ServerKind {
  SliceShape shape = SliceShape::plain;
  bool all_waits = false;
  friend bool operator==(const ServerKind&, const ServerKind&) = default;
};
[[nodiscard]] std::string to_text(const ServerKind& kind);
[[nodiscard]] std::optional<ServerKind> parse_server_kind(std::string_view text);  // nullopt: another text

// The layout for a server that is not asked, from its version and the gates that differ from its defaults: "1.36.3",
// "v1.34.2-eks-113cf36", "1.34.2,DRAPartitionableDevices=true", "1.36.3,DRADeviceTaints=false"; the third gate is
// DRAConsumableCapacity. Errors:
// invalid_argument for other text; those of shape_for().
[[nodiscard]] Result<LayoutOptions> layout_for(std::string_view server);

// Errors: failed_precondition for a kubelet that knows none of the driver's protocols, or that permanently loses every
// driver after half an hour (1.34.0, 1.34.1).
[[nodiscard]] Result<void> check_kubelet(const kube::ServerVersion& kubelet);

}  // namespace neuron::plugin::dra
