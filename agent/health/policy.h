#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/base/clock.h"
#include "agent/health/heartbeat.h"
#include "agent/health/missing.h"
#include "agent/model/health.h"

// Signals in, verdicts out (docs/reference/driver.md#health-signals). Pure: the previous state is an argument.
namespace neuron::health {

// State kept between scans. Passive data, owned by the caller.
struct HealthMemory {
  struct CoreBaseline {
    std::map<std::string, std::uint64_t> counters;  // per-core error counters at first sight, by name
  };
  std::map<int, std::map<int, CoreBaseline>> cores;  // device index -> physical core -> baseline
  HeartbeatMemory heartbeats;
  bool device_nodes_seen = false;  // some dev/neuron<N> was ever visible
  bool verbs_nodes_seen = false;   // some dev/infiniband/uverbs<N> was ever visible
};

// Evidence for the verdict on a device besides the values in the scan, to be shown.
struct DeviceBasis {
  std::vector<model::ReadProblem>
      unread;  // unread_signals(): the cause of "signal_unreadable" where nothing worse is seen
  // Registers that read all ones: path below neuron<N>/, and its text.
  std::vector<std::pair<std::string, std::string>> all_ones;
  bool off_the_bus = false;               // two registers or more do, so that it is no chance
  std::optional<std::string> unmeasured;  // why the driver does not measure health, as a sentence
};

struct HealthResult {
  std::vector<model::Health> devices;             // parallel to scan.devices: each as a whole
  std::vector<std::vector<model::Health>> cores;  // parallel to scan.devices: model::NeuronDevice::core_health
  std::vector<model::Health> efas;                // parallel to scan.efas
  model::Health node;                             // model::KernelLog::node_health
  std::vector<DeviceBasis> bases;                 // parallel to scan.devices
  std::vector<MissingFiles> missing;              // missing_everywhere()
};

// Evaluates a completed scan with the vanished devices in it (health/assess.h does all of it). `now`: when it was
// taken; for a single scan it does not matter. Updates `memory`, and may empty signals in `scan`.
// - Registers that read ones make the device unhealthy, as it is off the bus, when there are several of them, and
//   unknown when there is one. Their values are emptied.
// - A driver that does not measure health (DriverSettings) makes the device unknown where nothing worse is seen, and
//   its values are emptied.
// - A signal that must be there and gave no value makes the device unknown when nothing worse is seen:
//   "signal_unreadable" (health/missing.h), or "signals_missing", in the same words for all, when no device has it.
// - Hardware error counters are compared with the values first seen: growth is unhealthy; after a fall, the lower value
//   counts as first seen. A fault that reaches one core only (Reach) leaves the device's other cores healthy.
// - A heartbeat that stands still is unhealthy while those of other devices go on, since then the driver serves fresh
//   values and the firmware is stuck. When all stand still it may be the driver: degraded, so no device is withdrawn.
// - Errors of the kernel log (health/kernel_verdicts.h) count where the files show nothing as grave.
// A device whose signals are back to normal is healthy again at once.
//
// A container without privilege has a /dev of its own and sees no device node at all, whatever the machine has. So a
// missing node counts only once any node of its kind was seen.
[[nodiscard]] HealthResult evaluate(model::HostScan& scan, HealthMemory& memory, SteadyTime now = {});

// The verdict on every interface when none has a verbs device: "ib_uverbs_not_loaded", or "verbs_devices_missing" when
// the module is loaded. `module_loaded`: sys/module/ib_uverbs is there. Names no interface.
[[nodiscard]] model::Health without_verbs(bool module_loaded);

}  // namespace neuron::health
