#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "agent/model/host_scan.h"

// Names of the devices of the DRA driver: made for its pool, and parsed from a claim or PodResources, where they are
// foreign text; and the hardware of a name on one node. A name is a DNS label (lower case letters, digits and '-', at
// most 63 bytes), as the API requires. Pure.
namespace neuron::core {

// The driver's default name: that of AWS's own driver, whose claims run unmodified.
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
struct GroupName {  // "neuron-group-4-7": devices 4 to 7; "neuron-group-10-1" wraps to 0 at the end of a ring
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

// The number of indices before a ring wraps to 0: by the instance type, else by the devices of the scan.
[[nodiscard]] int ring_size(const model::HostScan& host);

// The members of a group, in the order of the ring: of 10-1 on a ring of 12 {10, 11, 0, 1}. Empty for an invalid group:
// one device only, or an index beyond `ring_size`.
[[nodiscard]] std::vector<int> members_of(const GroupName& group, int ring_size);

// An RDMA name as the part of a label behind "efa-": "rdmap16s25" stays, "efa_0" becomes "efa-0"; a name with
// other characters or a long one gets a digest, so that different names have different labels.
[[nodiscard]] std::string efa_label(std::string_view rdma_name);

// All ascending and unique; empty where the name is not of this node.
struct PoolHardware {
  std::vector<int> devices;       // indices of devices named whole, or by one of their cores
  std::vector<int> cores;         // global logical ids (logical_cores.h); empty where their number is unknown
  std::vector<std::string> efas;  // RDMA names
  friend bool operator==(const PoolHardware&, const PoolHardware&) = default;
};

// The part that `host` has: of a group, the present members.
[[nodiscard]] PoolHardware hardware_of(const PoolName& name, const model::HostScan& host);

// The indices of the named devices, also those that `host` lacks, in the name's order. Empty for an interface, and for
// a group that this node cannot have.
[[nodiscard]] std::vector<int> named_devices(const PoolName& name, const model::HostScan& host);

// The CDI devices of claims: named when a claim is prepared, and read back out of PodResources, which says of a
// claim's device neither the claim's uid nor `adminAccess`.
enum class ClaimAccess {
  use,    // the claim holds the device
  admin,  // `adminAccess`: it holds nothing
};

// The kind of the CDI devices of claims: "k8s.<driver>/claim".
[[nodiscard]] std::string claim_cdi_kind(std::string_view driver);

// "<uid>-<device>", or "<uid>-admin-<device>" for admin access. `device` as in the driver's pool.
[[nodiscard]] std::string claim_cdi_name(std::string_view uid, std::string_view device, ClaimAccess access);

// Access to `device` in a claim of `driver` by the CDI id "<kind>=<name>"; nullopt when the id is of another device, of
// a request ("<uid>-request-<request>"), or not of this form.
[[nodiscard]] std::optional<ClaimAccess> claim_access(std::string_view cdi_id, std::string_view driver,
                                                      std::string_view device);

}  // namespace neuron::core
