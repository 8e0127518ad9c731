#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "agent/base/clock.h"
#include "agent/health/heartbeat.h"
#include "agent/model/snapshot.h"

// Signals in, verdicts out (docs/reference/driver.md#health-signals). Pure: the previous state is an argument.
namespace neuron::health {

// What has to be remembered between scans. Passive data, owned by the monitor.
struct HealthMemory {
  struct CoreBaseline {
    std::map<std::string, std::uint64_t> counters;  // per-core error counters at first sight, by name
  };
  std::map<int, std::map<int, CoreBaseline>> cores;   // device index -> physical core -> baseline
  std::map<model::Bdf, std::uint64_t> lost_commands;  // no_completion_cmds of EFA interfaces at first sight
  HeartbeatMemory heartbeats;
  bool device_nodes_seen = false;  // some dev/neuron<N> was ever visible
  bool verbs_nodes_seen = false;   // some dev/infiniband/uverbs<N> was ever visible
};

struct HealthResult {
  std::vector<model::Health> devices;             // parallel to scan.devices: each as a whole
  std::vector<std::vector<model::Health>> cores;  // parallel to scan.devices: model::Snapshot::core_health
  std::vector<model::Health> efas;                // parallel to scan.efas
};

// Judges a completed scan that holds what vanished as well (health/assess.h does all of it), taken at `now`; who looks
// only once needs no time. An ECC count of 65535 (a device off the bus reads as all ones) makes the device unknown and
// is taken out of `scan`. A signal that must be there and gave no value makes it unknown too, when nothing worse is
// seen ("signal_unreadable", see health/missing.h; "signals_missing" in the same words for all devices when none
// of them has it). Hardware error counters are compared with their first sight: growth is unhealthy, a fall starts
// afresh. What is a core's own (Reach) leaves its sisters as they are. A heartbeat that stands still is unhealthy
// while those of other devices go on, since then the driver serves fresh values and the firmware is stuck; when all
// stand still it may as well be the driver, so that no device is withdrawn for it. Updates `memory`. A device that
// heals (signals back to normal) is healthy again at once.
//
// A container without privilege has a /dev of its own and sees no device node at all, which says nothing about the
// machine. So a missing node counts only once any node of its kind was seen.
[[nodiscard]] HealthResult judge(model::HostScan& scan, HealthMemory& memory, SteadyTime now = {});

// Reason of an interface when no interface has a verbs device, in the words of without_verbs(false).
inline constexpr std::string_view kNoVerbs = "ib_uverbs_not_loaded";

// The verdict on every interface when none has a verbs device, for those who know whether sys/module/ib_uverbs is
// there: kNoVerbs, or "verbs_devices_missing" when the module is loaded. Names no interface.
[[nodiscard]] model::Health without_verbs(bool module_loaded);

// Reason of a device whose health files should give a value and do not.
inline constexpr std::string_view kSignalUnreadable = "signal_unreadable";
// Reason of a device of which not even its cores can be read.
inline constexpr std::string_view kNothingReadable = "nothing_readable";
// Reason of all devices of a chip when none of them has a health file that the driver should have.
inline constexpr std::string_view kSignalsMissing = "signals_missing";
// Reason of a physical core that the driver counts and shows no folder for.
inline constexpr std::string_view kCoreMissing = "core_missing";

}  // namespace neuron::health
