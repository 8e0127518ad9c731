#pragma once

#include <optional>
#include <string>
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

// The physical cores of the logical core at `position` of the device, LNC of them; empty when unknown.
[[nodiscard]] std::vector<int> physical_cores_of(const model::NeuronDevice& device, const model::HostScan& scan,
                                                 int position);

// A place of a device is a position before LNC joins cores: logical core n has the places n*LNC … n*LNC+LNC-1.
struct CorePlace {
  int place = 0;
  int physical = 0;         // by the driver, else by the assumed order
  std::vector<int> others;  // places of this physical core in other possible orders; empty: known from the driver
};

// Those of `places` that the device has, in that order; empty when unknown.
[[nodiscard]] std::vector<CorePlace> core_places(const model::NeuronDevice& device, const model::HostScan& scan,
                                                 const std::vector<int>& places);

// " pid 7 pid 9": processes that hold the physical core; "" when none does, or when unknown.
[[nodiscard]] std::string pids_on_core(const model::NeuronDevice& device, int physical_core);

// The worst verdict on these physical cores; the device's own where there is none on any. Lives as long as the device.
[[nodiscard]] const model::Health& health_of_cores(const model::NeuronDevice& device, const std::vector<int>& physical);

// Global ids of one device, ascending.
[[nodiscard]] std::vector<int> core_ids_of(const model::NeuronDevice& device, const model::HostScan& scan);

// Evidence in the kubelet's checkpoint for the LNC of core ids that containers hold from before the agent started: with
// another LNC an id means other hardware, and the file that sets LNC may have been edited since. Passive data; foreign,
// so its reader bounds it.
struct NumberingEvidence {
  struct Given {
    std::vector<int> cores;    // ids of one container, ascending
    std::vector<int> devices;  // indices of the device nodes it got with them, ascending; empty: not known
  };
  std::vector<Given> given;
  std::optional<int> highest_listed;  // of the core ids that the kubelet last took as healthy
};

// Every LNC that the node's devices can have: 1, or 1 and 2; both where the devices are not known.
[[nodiscard]] std::vector<int> possible_lncs(const model::HostScan& host);

// One more than the highest device index that the node may have.
[[nodiscard]] int device_limit(const model::HostScan& host);

// The largest number of physical cores of any device; by the instance type where no device has one. nullopt: not known,
// or no Neuron node.
[[nodiscard]] std::optional<int> physical_cores_per_device(const model::HostScan& host);

// The LNC with which `evidence` fits this node: every container's ids lie on the devices it got, and none lies beyond
// the last device. Of several the largest, as with a smaller one higher ids would have been listed; but where no listed
// id is known, what `host` says now, if that fits. Without evidence, or when nothing fits: what `host` says now, else
// the device's default, unless the file that sets it is unread. nullopt: not known.
[[nodiscard]] std::optional<int> lnc_in_use(const NumberingEvidence& evidence, const model::HostScan& host);

}  // namespace neuron::core
