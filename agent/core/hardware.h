#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "agent/model/host_scan.h"

// Hardware as a container holds it, and its names in the pool of the DRA driver: made for the pool, and parsed from a
// claim or PodResources, where they are foreign text. A name is a DNS label (lower case letters, digits and '-', at
// most 63 bytes), as the API requires. Pure.
namespace neuron::core {

// Part of a device, or all of it. Cores are places: place p of a device is its p-th physical core in the order in which
// the driver numbers logical ones before LNC joins them (docs/reference/driver.md#logical-cores), so logical core n has
// the places n*LNC … n*LNC+LNC-1. They stay what they are when LNC changes, and when the driver first says which
// physical core is behind which place.
struct HeldDevice {
  int device = 0;           // index
  std::vector<int> places;  // ascending, each once; empty = all of the device, however many it has
  friend bool operator==(const HeldDevice&, const HeldDevice&) = default;
};

// Hardware that one holder has, under whatever name: a device, its cores and its groups exclude each other.
struct Hardware {
  std::vector<HeldDevice> devices;  // ascending, each once
  std::vector<std::string> efas;    // RDMA names, ascending, each once

  [[nodiscard]] bool empty() const { return devices.empty() && efas.empty(); }
  [[nodiscard]] std::vector<int> device_indices() const;
  void add(const Hardware& more);
  friend bool operator==(const Hardware&, const Hardware&) = default;
};

// A part that both have, as text: "neuron3", "core position 1 of neuron3", "interface rdmap16s25". nullopt: nothing.
[[nodiscard]] std::optional<std::string> overlap(const Hardware& one, const Hardware& other);

// Global logical ids of its cores (logical_cores.h) by the LNC of `host`, ascending; none of a device that `host`
// lacks, or whose core count is unknown.
[[nodiscard]] std::vector<int> core_ids_of(const Hardware& hardware, const model::HostScan& host);

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
// "neuron-device-3-share-4-5", "neuron-device-3-share-0-1-4-5": cores that a claim has of a device which several claims
// share, as ranges of places. Never the name of a device in the pool: there it is the whole one
// (docs/dra-partitions.md#shares).
struct ShareName {
  int device = 0;
  std::vector<int> places;  // ascending, each once, at least one
  friend bool operator==(const ShareName&, const ShareName&) = default;
};
using PoolName = std::variant<DeviceName, CoreName, GroupName, EfaName, NodeName, ShareName>;

[[nodiscard]] std::string to_string(const PoolName& name);

// nullopt for any text that to_string() would not give, such as numbers with leading zeros or above 9999, or a place
// above 255.
[[nodiscard]] std::optional<PoolName> parse_pool_name(std::string_view text);

// The number of indices before a ring wraps to 0: by the instance type, else by the devices of the scan.
[[nodiscard]] int ring_size(const model::HostScan& host);

// The members of a group, in the order of the ring: of 10-1 on a ring of 12 {10, 11, 0, 1}. Empty for an invalid group:
// one device only, or an index beyond `ring_size`.
[[nodiscard]] std::vector<int> members_of(const GroupName& group, int ring_size);

// An RDMA name as the part of a label behind "efa-": "rdmap16s25" stays, "efa_0" becomes "efa-0"; a name with
// other characters or a long one gets a digest, so that different names have different labels.
[[nodiscard]] std::string efa_label(std::string_view rdma_name);

// The part of the hardware that `host` has: of a group, the present members. A core of a device whose core count or LNC
// is unknown stands for the whole device.
[[nodiscard]] Hardware hardware_of(const PoolName& name, const model::HostScan& host);

// Hardware that a holder may have by a name alone, whatever `host` shows of it and under any LNC: devices that `host`
// lacks too, and of a core its places under every LNC of the devices. Nothing that the node cannot have.
[[nodiscard]] Hardware possible_hardware_of(const PoolName& name, const model::HostScan& host);

// Possible hardware of a logical core, by its global id; `lnc`: the LNC under which it was allocated, nullopt = not
// known. Empty where the core count is unknown.
[[nodiscard]] Hardware possible_hardware_of(int core, std::optional<int> lnc, const model::HostScan& host);

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

// "<uid>-<device>", or "<uid>-admin-<device>" for admin access. `device` as in the driver's pool, or a ShareName.
[[nodiscard]] std::string claim_cdi_name(std::string_view uid, std::string_view device, ClaimAccess access);

struct ClaimedDevice {
  ClaimAccess access = ClaimAccess::use;
  std::string name;  // of the pool's device, or the ShareName of what the claim has of it
  friend bool operator==(const ClaimedDevice&, const ClaimedDevice&) = default;
};

// A claim's part of `device`, a name in the pool of `driver`, by the CDI id "<kind>=<name>"; nullopt when the id is
// of another device, of a request ("<uid>-request-<request>"), or not of this form.
[[nodiscard]] std::optional<ClaimedDevice> claimed_device(std::string_view cdi_id, std::string_view driver,
                                                          std::string_view device);

}  // namespace neuron::core
