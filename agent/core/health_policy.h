#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "agent/model/snapshot.h"

// Signals in, verdicts out (neuron-driver.md §16). Pure: the previous state is an argument.
namespace neuron::core {

// What has to be remembered between scans. Passive data, owned by the monitor.
struct HealthMemory {
  struct CoreBaseline {
    std::map<std::string, std::uint64_t> counters;  // per-core error counters at first sight, by name
  };
  std::map<int, std::map<int, CoreBaseline>> cores;  // device index -> physical core -> baseline
  bool device_nodes_seen = false;                    // some dev/neuron<N> was ever visible
  bool verbs_nodes_seen = false;                     // some dev/infiniband/uverbs<N> was ever visible
};

struct HealthResult {
  std::vector<model::Health> devices;  // parallel to scan.devices
  std::vector<model::Health> efas;     // parallel to scan.efas
};

// Judges a completed scan that holds what vanished as well (core/assess.h does all of it). An ECC count of 65535 (a
// device off the bus reads as all ones) makes the device unknown and is taken out of `scan`. A signal that must be
// there and gave no value makes it unknown too
// ("signal_unreadable", see unread_signals), when nothing worse is seen. Per-core hardware error counters are compared
// with their first sight: growth is unhealthy, a fall starts afresh. The heartbeat is not judged here: it needs a
// clock. Updates `memory`. A device that heals (signals back to normal) is healthy again at once.
//
// A container without privilege has a /dev of its own and sees no device node at all, which says nothing about the
// machine. So a missing node counts only once any node of its kind was seen.
[[nodiscard]] HealthResult judge(model::HostScan& scan, HealthMemory& memory);

// Reason of an interface when no interface has a verbs device, in the words of without_verbs(false).
inline constexpr std::string_view kNoVerbs = "ib_uverbs_not_loaded";

// The verdict on every interface when none has a verbs device, for those who know whether sys/module/ib_uverbs is
// there: kNoVerbs, or "verbs_devices_missing" when the module is loaded. Names no interface.
[[nodiscard]] model::Health without_verbs(bool module_loaded);

// Reason of a device whose health files should give a value and do not.
inline constexpr std::string_view kSignalUnreadable = "signal_unreadable";

// The files that the verdict on `device` rests on and that gave no value, as "path: reason": those that could not be
// read or made no sense (NeuronDevice::problems), then those that are not there although half of the devices of the
// same chip, or every driver of this layout, have them. `scan` as it was before judge(). Empty is normal.
[[nodiscard]] std::vector<std::string> unread_signals(const model::HostScan& scan, const model::NeuronDevice& device);

}  // namespace neuron::core
