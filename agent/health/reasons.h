#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agent/model/health.h"

// The one table of reasons why a device, a core or an interface is not healthy: severity, meaning and action. The
// policy, the checks and docs/health.md use it. Pure.
namespace neuron::health {

// Passive data; texts of static lifetime.
struct Reason {
  std::string_view code;     // model::reason
  model::HealthState state;  // severity
  std::string_view meaning;  // for docs/health.md
  std::string_view action;   // what to do; "" when waiting is enough
};

namespace reasons {
namespace code = model::reason;
using model::HealthState;

inline constexpr std::string_view kReplace = "replace the instance (terminate, or stop and start)";
inline constexpr std::string_view kReload = "drain the node, then reload the Neuron driver or reboot";
inline constexpr std::string_view kRebootOrReplace = "inspect the kernel log; reboot or replace the instance";
inline constexpr std::string_view kInspectKernelLog = "inspect the kernel log";

inline constexpr Reason kDeviceVanished{code::kDeviceVanished, HealthState::unhealthy,
                                        "it vanished from `sys/class/neuron_device`", kRebootOrReplace};
inline constexpr Reason kNotAnswering{
    code::kNotAnswering, HealthState::unhealthy, "a read of it hangs inside its driver (devices and interfaces)",
    "inspect the kernel log for hung tasks; if that does not help, reboot or replace the instance"};
inline constexpr Reason kUnread{code::kUnread, HealthState::unknown,
                                "allocated, and on a list that the agent could not read since it started (devices and "
                                "interfaces)",
                                ""};
inline constexpr Reason kNothingReadable{code::kNothingReadable, HealthState::unhealthy,
                                         "none of its files can be read, not even its cores",
                                         "inspect the kernel log; reload the Neuron driver, or replace the instance"};
inline constexpr Reason kOffTheBus{code::kReadsAllOnes, HealthState::unhealthy,
                                   "it is off the bus: several of its registers read all ones", kRebootOrReplace};
inline constexpr Reason kDeviceNodeMissing{code::kDeviceNodeMissing, HealthState::unhealthy,
                                           "there is no `dev/neuron<N>`", "restart udev or reload the Neuron driver"};
inline constexpr Reason kDeviceUnreachable{code::kDeviceUnreachable, HealthState::unhealthy,
                                           "the driver cannot reach the device", kReplace};
inline constexpr Reason kDeviceInvalid{code::kDeviceInvalid, HealthState::unhealthy,
                                       "`reset` reads 2: the driver gave up on the device",
                                       "reboot; if that does not help, replace the instance"};
inline constexpr Reason kResetting{code::kResetting, HealthState::degraded, "`reset` reads 0: it is being reset", ""};
inline constexpr Reason kSramEccUncorrected{code::kSramEccUncorrected, HealthState::unhealthy,
                                            "uncorrected SRAM errors", kReplace};
inline constexpr Reason kMemEccUncorrected{code::kMemEccUncorrected, HealthState::unhealthy,
                                           "uncorrected HBM errors that cannot be repaired", kReplace};
inline constexpr Reason kMemEccRepairable{code::kMemEccRepairable, HealthState::unhealthy, "repairable HBM errors",
                                          kReload};
inline constexpr Reason kUnhealthyComponents{code::kUnhealthyComponents, HealthState::unhealthy,
                                             "the driver reports unhealthy components", kReplace};
inline constexpr Reason kHeartbeatStuck{code::kHeartbeatStuck, HealthState::unhealthy,
                                        "its heartbeat has stopped while those of other devices advance",
                                        "drain the node and reboot; if that does not help, replace the instance"};
inline constexpr Reason kHeartbeatsStuck{code::kHeartbeatStuck, HealthState::degraded,
                                         "all heartbeats have stopped: the cause may be the driver", kReload};

inline constexpr Reason kHwError{code::kHwError, HealthState::unhealthy, "a core counted new hardware errors",
                                 kReplace};
inline constexpr Reason kHwNcUeError{code::kHwNcUeError, HealthState::unhealthy,
                                     "a core counted new uncorrected errors of its own", kReplace};
inline constexpr Reason kHwHbmUeError{code::kHwHbmUeError, HealthState::unhealthy,
                                      "a core met new uncorrected HBM errors", kReplace};
inline constexpr Reason kHwDmaAbortError{code::kHwDmaAbortError, HealthState::unhealthy, "a core met new DMA aborts",
                                         kReplace};
inline constexpr Reason kHwRepairableHbmUeError{code::kHwRepairableHbmUeError, HealthState::unhealthy,
                                                "a core met new repairable HBM errors", kReload};
inline constexpr Reason kCoreMissing{
    code::kCoreMissing, HealthState::unhealthy, "`core_count` includes a core without a directory",
    "nothing if it was masked out (module parameter dev_nc_map); else reload the driver"};

inline constexpr Reason kHangOnCollectives{code::kHangOnCollectives, HealthState::degraded,
                                           "the kernel log reports a hang of collectives in the last 10 minutes",
                                           "check the other workers for hardware errors, then restart the job"};
inline constexpr Reason kKernelLogError{code::kKernelLogError, HealthState::degraded,
                                        "the kernel log reports a hardware error of an unknown kind",
                                        "inspect the kernel log; update the agent"};

inline constexpr Reason kUnknownLayout{code::kUnknownLayout, HealthState::unknown,
                                       "the driver's sysfs layout is unknown", "update the agent"};
inline constexpr Reason kReadsAllOnes{code::kReadsAllOnes, HealthState::unknown,
                                      "a register reads all ones, as if the device were off the bus, but others do not",
                                      kInspectKernelLog};
inline constexpr Reason kNoSignals{code::kNoSignals, HealthState::unknown, "the driver shows no health files", ""};
inline constexpr Reason kSignalUnreadable{code::kSignalUnreadable, HealthState::unknown,
                                          "expected health files are missing, unreadable or malformed",
                                          "inspect the kernel log; if that does not help, reload the Neuron driver"};
inline constexpr Reason kSignalsMissing{
    code::kSignalsMissing, HealthState::unknown,
    "expected health files of this driver are missing on all devices of the family",
    "inspect the kernel log and reload the Neuron driver; if that does not help, update the agent"};
inline constexpr Reason kHealthNotMeasured{
    code::kHealthNotMeasured, HealthState::unknown,
    "a parameter of the Neuron driver disables its health files, or no heartbeat ever advanced from 0",
    "drain the node, then load the Neuron driver with nmetric_log_posts=1 and enable_sysfs_health_status_nodes=1"};

inline constexpr Reason kEfaVanished{code::kEfaVanished, HealthState::unhealthy, "it vanished from the PCI bus",
                                     kRebootOrReplace};
inline constexpr Reason kEfaDriverUnbound{code::kEfaDriverUnbound, HealthState::unhealthy,
                                          "no efa driver is bound to it",
                                          "load the efa driver, or bind it to the function"};
inline constexpr Reason kRdmaDeviceMissing{code::kRdmaDeviceMissing, HealthState::unhealthy,
                                           "the driver is bound but shows no RDMA device", kInspectKernelLog};
inline constexpr Reason kIbUverbsNotLoaded{
    code::kIbUverbsNotLoaded, HealthState::unhealthy, "no interface has a verbs device: `ib_uverbs` is not loaded",
    "run: modprobe ib_uverbs; to load it at boot, add ib_uverbs to /etc/modules-load.d/efa.conf"};
inline constexpr Reason kVerbsDevicesMissing{
    code::kVerbsDevicesMissing, HealthState::unhealthy, "`ib_uverbs` is loaded, but no interface has a verbs device",
    "reload the modules: modprobe -r efa ib_uverbs; modprobe ib_uverbs; modprobe efa"};
inline constexpr Reason kVerbsMissing{code::kVerbsMissing, HealthState::unhealthy, "this interface has no verbs device",
                                      "reload the efa driver"};
inline constexpr Reason kVerbsNodeMissing{code::kVerbsNodeMissing, HealthState::unhealthy,
                                          "its verbs device has no node in `dev/infiniband`",
                                          "restart udev or reload ib_uverbs"};
inline constexpr Reason kNoCompletionCmds{
    code::kNoCompletionCmds, HealthState::unhealthy,
    "the device did not answer a command of its driver, which closes its admin queue until the driver is rebound",
    "inspect the kernel log; rebind the efa driver (unbind and bind, or reload it), or replace the instance"};
inline constexpr Reason kNoPeerMemory{code::kNoPeerMemory, HealthState::degraded,
                                      "`p2p` is empty: no RDMA to and from Neuron memory",
                                      "load the Neuron driver, or update the efa driver"};
}  // namespace reasons

// All of them, in the order of docs/health.md. Static lifetime, any thread.
[[nodiscard]] std::span<const Reason> all_reasons();

// The verdict for that reason. `sentence`: what was seen, with the value and the path.
[[nodiscard]] model::Health verdict(const Reason& reason, std::string sentence);

[[nodiscard]] model::Health healthy();  // without reason, sentence and action

// "sram, hbm"
[[nodiscard]] std::string joined(const std::vector<std::string>& words);

// Keeps the gravest of several verdicts on one unit, which are passed one after the other. `next` replaces `found` when
// its state is graver, or when the states are equal and only a replaced instance cures `next`, since a milder action
// would hide that. Otherwise `found` stays.
void keep_graver(model::Health& found, std::optional<model::Health> next);

}  // namespace neuron::health
