#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

// Names of the devices that our driver of dynamic resource allocation offers: made for its pool, and read back out of a
// claim or out of PodResources, where they are foreign text. A name is a DNS label (lower case letters, digits and '-',
// at most 63 bytes), as the API wants it. Pure.
namespace neuron::core {

// The driver's name unless an option says otherwise: that of AWS's own driver, whose claims run unmodified.
inline constexpr std::string_view kDefaultDriverName = "neuron.aws.com";

struct DeviceName {  // "neuron-device-3": the whole device
  int device = 0;    // host index
  friend bool operator==(const DeviceName&, const DeviceName&) = default;
};
struct CoreName {  // "neuron-device-3-core-1"
  int device = 0;
  int core = 0;  // logical core of this device, counted from 0
  friend bool operator==(const CoreName&, const CoreName&) = default;
};
struct GroupName {  // "neuron-group-4-7": devices 4 to 7; "neuron-group-10-1" goes on at 0 behind the last of a ring
  int first = 0;
  int last = 0;
  friend bool operator==(const GroupName&, const GroupName&) = default;
};
struct EfaName {      // "efa-rdmap16s25"
  std::string label;  // efa_label() of the interface's RDMA name
  friend bool operator==(const EfaName&, const EfaName&) = default;
};
struct NodeName {  // "neuron-node": all devices of a node in an UltraServer
  friend bool operator==(const NodeName&, const NodeName&) = default;
};
using PoolName = std::variant<DeviceName, CoreName, GroupName, EfaName, NodeName>;

[[nodiscard]] std::string to_string(const PoolName& name);

// nullopt for any text that to_string() would not give, such as numbers with leading zeros or above 9999.
[[nodiscard]] std::optional<PoolName> parse_pool_name(std::string_view text);

// The members of a group, in the order of the ring: of 10-1 on a ring of 12 {10, 11, 0, 1}. Empty when the name is no
// group there: one device only, or beyond `ring_size`, which is how many indices there are before the first follows
// again; a run that wraps needs one.
[[nodiscard]] std::vector<int> members_of(const GroupName& group, int ring_size);

// An RDMA name as the part of a label behind "efa-": "rdmap16s25" stays, "efa_0" becomes "efa-0"; what has other
// characters or is too long gets a digest, so that different names have different labels.
[[nodiscard]] std::string efa_label(std::string_view rdma_name);

}  // namespace neuron::core
