#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/base/clock.h"
#include "agent/core/complete.h"
#include "agent/model/health.h"
#include "agent/model/snapshot.h"

// Turns a scan into an assessed node: last values, completion, verdicts (docs/reference/driver.md#health-signals). The
// agent and all tools use it. Pure: memory and time are arguments.
namespace neuron::health {

// ---- Signal files that should give a value and do not, by health/signals.h and by what other devices show

// Expected files that no device of one family shows.
struct MissingFiles {
  model::Family family = model::Family::trainium1;
  std::vector<std::string> devices;  // "neuron0", those that are there
  std::vector<std::string> paths;    // below neuron<N>/, cores as "neuron_core*/…"; never empty
};

// The files that no device of a family has, although the driver has them on it: they were moved, or the driver is
// broken. One entry per family that lacks any. Empty is normal.
[[nodiscard]] std::vector<MissingFiles> missing_everywhere(const model::HostScan& scan);

// "sys/class/neuron_device/neuron*/stats/hardware/x, stats/hardware/y", "missing on any of 16 devices, …".
[[nodiscard]] model::ReadProblem problem_of(const model::HostScan& scan, const MissingFiles& missing);

// Why the driver does not measure health on a device that should have health_status/: a sentence that names no device.
// nullopt: it does, or there is no such folder. `never_beat`: Heartbeat::never.
[[nodiscard]] std::optional<std::string> why_unmeasured(const model::HostScan& scan, const model::NeuronDevice& device,
                                                        bool never_beat);

// The recommended action, which differs for drivers that are known to keep their files elsewhere.
[[nodiscard]] std::string action_for_missing(const model::HostScan& scan);

// "sys/class/neuron_device/neuron3/": where the paths of a device's problems begin.
[[nodiscard]] std::string folder_of(const model::NeuronDevice& device);

// Files without a value on which the verdict on `device` rests: those that could not be read or were malformed
// (NeuronDevice::problems), then those that are missing although this driver has them on this family or half of the
// devices of the same family show them. Without missing_everywhere(). `scan` as it was before evaluate(). Empty is
// normal.
[[nodiscard]] std::vector<model::ReadProblem> unread_signals(const model::HostScan& scan,
                                                             const model::NeuronDevice& device);

// ---- The whole

// Heartbeats, stats/hardware/health_status/healthcheck_heartbeat, of earlier scans: a count that the device's firmware
// advances in an unpublished period (docs/reference/driver.md#health-status). Passive data.
struct HeartbeatMemory {
  struct Beat {
    std::uint64_t value = 0;
    SteadyTime since{};  // first scan with this value
    SteadyTime last{};   // newest scan with it
    int scans = 0;       // with it since
    bool moved = false;  // it changed at least once
  };
  std::map<int, Beat> devices;                    // by device index
  std::chrono::steady_clock::duration longest{};  // beat so far
};

enum class Heartbeat {
  fine,      // it advances, was not watched for long enough, or is unknown
  alone,     // stopped, while another device's advances
  with_all,  // stopped after it advanced once, like all others
  never,     // at 0 from the start, like all others: nothing measures it
};

// The state of each device with a heartbeat, by index. It has stopped when it did not change for a minute, for ten
// times the longest beat of this machine, and in ten scans. One that never advanced counts only while another one
// advances, or while all read 0, since captured and simulated machines have constant values. All that stop together,
// with the driver, do not have their last beat in the same scan: another one advances if it went on for half that time.
[[nodiscard]] std::map<int, Heartbeat> watch_heartbeats(const model::HostScan& scan, HeartbeatMemory& memory,
                                                        SteadyTime now);

// State of the policy between scans. Passive data.
struct HealthMemory {
  struct CoreBaseline {
    std::map<std::string, std::uint64_t> counters;  // per-core error counters at first sight, by name
  };
  std::map<int, std::map<int, CoreBaseline>> cores;  // device index -> physical core -> baseline
  HeartbeatMemory heartbeats;
  bool device_nodes_seen = false;  // some dev/neuron<N> was ever visible
  bool verbs_nodes_seen = false;   // some dev/infiniband/uverbs<N> was ever visible
};

// Basis of the verdict on a device besides the values in the scan, for evidence.
struct DeviceBasis {
  // unread_signals(): the cause of "signal_unreadable" where nothing worse is seen.
  std::vector<model::ReadProblem> unread;
  // Registers that read ones: path below neuron<N>/, and its text.
  std::vector<std::pair<std::string, std::string>> all_ones;
  bool off_the_bus = false;               // two or more registers read ones
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

// The policy, for a completed scan that holds vanished devices as well. `now`: when it was taken; for a single scan it
// does not matter. Updates `memory`, and may empty signals in `scan`.
// - Several registers that read ones: the device is off the bus, unhealthy; a single one: unknown. Their values are
//   emptied.
// - A driver that does not measure health (DriverSettings): the device is unknown where nothing worse is seen; its
//   values are emptied.
// - A required signal without a value: the device is unknown where nothing worse is seen, "signal_unreadable"
//   (unread_signals), or "signals_missing", the same for all, when no device has it.
// - Error counts of a device are faults when they are not 0. Those of a core are compared with the values first seen:
//   growth is unhealthy; after a fall the lower value becomes the first. A fault that reaches one core only (Reach)
//   leaves the other cores healthy.
// - A stopped heartbeat is unhealthy while those of other devices advance: the driver serves fresh values and the
//   firmware is stuck. When all have stopped it may be the driver: degraded, so no device is withdrawn.
// - Lines of the kernel log (health/kernel_errors.h) count where the files show nothing as grave.
// A device with normal signals again is healthy at once.
//
// A container without privilege has its own /dev without device nodes, so a missing node counts only once any node of
// its kind was seen.
[[nodiscard]] HealthResult evaluate(model::HostScan& scan, HealthMemory& memory, SteadyTime now = {});

// State between scans; empty for the first. Passive data, owned by the caller of the scans.
struct AssessMemory {
  core::SeenBefore seen;
  HealthMemory health;
};

struct Assessment {
  model::HostScan host;               // completed, with vanished hardware in its place, and with all health
  std::vector<DeviceBasis> bases;     // parallel to host.devices
  std::vector<MissingFiles> missing;  // files that no device of a device family shows though its driver should
};

// core::keep_last_seen, core::complete and evaluate on a scan taken at `now`, completed or not. `missing` is named in
// host.problems as well. Updates `memory`.
[[nodiscard]] Assessment assess(model::HostScan scan, AssessMemory& memory, SteadyTime now);

// Adds hardware that containers hold and no scan has shown to an assessed node: vanished and
// unhealthy, or unread and unknown while its list was never read. An interface without a name gets its held one.
// Verdicts and values of all other hardware stay.
[[nodiscard]] model::HostScan with_held(model::HostScan assessed, core::SeenBefore held);

// Adds a device, or an interface by its RDMA name, to `held`. False: it is in there, or is refused since it cannot be
// of this node: a device index that the instance type lacks, or above 63 where the type is unknown; an interface name
// other than rdmap<bus>s<slot> (decimal, domain 0), which gives the address, or the 65th interface.
[[nodiscard]] bool note_held_device(core::SeenBefore& held, int index, const model::HostScan& host);
[[nodiscard]] bool note_held_efa(core::SeenBefore& held, std::string_view name);

// `snapshot` with the hardware of `held` that it lacks (as above), and with `lnc` physical cores per logical
// one instead of the snapshot's number, by which core ids are read; nullopt = unchanged.
[[nodiscard]] model::Snapshot with_held(const model::Snapshot& snapshot, const core::SeenBefore& held,
                                        std::optional<int> lnc);

// ---- Of EFA interfaces

// One verdict per interface of a completed scan, in its order. Updates memory.verbs_nodes_seen.
[[nodiscard]] std::vector<model::Health> verdicts_on_efas(const model::HostScan& scan, HealthMemory& memory);

// The verdict on the device or interface `name` that does not answer: names the first of `parts` that the scan left
// out.
[[nodiscard]] model::Health verdict_on_silence(const model::HostScan& scan, const std::string& name,
                                               const std::vector<model::ScanPart>& parts);

// The verdict on the device or interface `name` of one of HostScan::unread_lists; `list`: its path.
[[nodiscard]] model::Health verdict_on_unread_list(const model::HostScan& scan, const std::string& name,
                                                   std::string_view list);

// The verdict on every interface when none has a verbs device: "ib_uverbs_not_loaded", or "verbs_devices_missing" when
// the module is loaded. `module_loaded`: sys/module/ib_uverbs exists. Names no interface.
[[nodiscard]] model::Health without_verbs(bool module_loaded);

// ---- Of Neuron devices and their cores

struct DeviceVerdict {
  model::Health whole;               // the device's own fault, else that of its worst core
  std::vector<model::Health> cores;  // [M] of neuron_core<M>; empty where the core count is unknown
};

// Inputs common to all devices of a scan.
struct DeviceContext {
  const model::HostScan& scan;                 // completed
  const std::vector<MissingFiles>& missing;    // missing_everywhere(scan)
  const std::map<int, Heartbeat>& heartbeats;  // watch_heartbeats
  bool nodes_seen = false;                     // HealthMemory::device_nodes_seen
  SteadyTime now{};                            // when the scan was taken
};

// `basis`: basis_of(scan, device). Updates `baselines` of its cores.
[[nodiscard]] DeviceVerdict verdict_on_device(const DeviceContext& context, const model::NeuronDevice& device,
                                              const DeviceBasis& basis,
                                              std::map<int, HealthMemory::CoreBaseline>& baselines);

// The verdict on a device that is missing, off the bus or not answering: `absent`, but with the reason of its earlier
// verdict `known` where only another instance cures that, since a milder action would hide it from the node's
// condition.
[[nodiscard]] model::Health with_known_fault(model::Health absent, const model::Health& known);

// The basis of the verdict on a device besides its values.
[[nodiscard]] DeviceBasis basis_of(const model::HostScan& scan, const model::NeuronDevice& device,
                                   const std::map<int, Heartbeat>& heartbeats);

// Empties signals that are no measurements: all ones, everything of a device off the bus, and values that the driver
// never measured.
void forget_no_measurements(model::NeuronDevice& device, const DeviceBasis& basis);

}  // namespace neuron::health
