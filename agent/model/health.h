#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace neuron::model {

enum class HealthState { healthy, degraded, unhealthy, unknown };

[[nodiscard]] constexpr std::string_view to_string(HealthState state) {  // the enumerator's name
  constexpr std::array<std::string_view, 4> kNames = {"healthy", "degraded", "unhealthy", "unknown"};
  return kNames.at(static_cast<std::size_t>(state));
}

// For choosing the worst: 0 healthy, then unknown, degraded, unhealthy.
[[nodiscard]] constexpr int badness(HealthState state) {
  switch (state) {
    case HealthState::unhealthy:
      return 3;
    case HealthState::degraded:
      return 2;
    case HealthState::unknown:
      return 1;
    case HealthState::healthy:
      break;
  }
  return 0;
}

// A verdict with its reason. Only `unhealthy` takes the device out of allocatable; `degraded` and `unknown` stay
// allocatable but are shown and logged.
struct Health {
  HealthState state = HealthState::unknown;
  std::string reason;    // stable code, one of those below, e.g. "sram_ecc_uncorrected"; "" when healthy
  std::string sentence;  // the evidence in words, with the value and the path
  std::string action;    // recommended action, e.g. "replace the instance"; "" when none
  friend bool operator==(const Health&, const Health&) = default;
};

// False for the state that a device has before anybody has looked: unknown without a reason.
[[nodiscard]] inline bool is_assessed(const Health& health) {
  return health.state != HealthState::unknown || !health.reason.empty();
}

}  // namespace neuron::model

// The codes of model::Health::reason and of the findings of `neuron-agent check` for the same faults: stable texts that
// users and their alerts see. Meaning and action of each: agent/health/reasons.h.
namespace neuron::model::reason {

// Reasons of whole devices.
inline constexpr std::string_view kDeviceVanished = "device_vanished";
inline constexpr std::string_view kNotAnswering = "not_answering";  // of interfaces too
inline constexpr std::string_view kUnread = "unread";               // likewise
inline constexpr std::string_view kNothingReadable = "nothing_readable";
inline constexpr std::string_view kDeviceNodeMissing = "device_node_missing";
inline constexpr std::string_view kDeviceUnreachable = "device_unreachable";
inline constexpr std::string_view kDeviceInvalid = "device_invalid";
inline constexpr std::string_view kResetting = "resetting";
inline constexpr std::string_view kSramEccUncorrected = "sram_ecc_uncorrected";
inline constexpr std::string_view kMemEccUncorrected = "mem_ecc_uncorrected";
inline constexpr std::string_view kMemEccRepairable = "mem_ecc_repairable_uncorrected";
inline constexpr std::string_view kUnhealthyComponents = "unhealthy_components";
inline constexpr std::string_view kHeartbeatStuck = "heartbeat_stuck";

// Reasons from counters of cores.
inline constexpr std::string_view kHwError = "hw_error";
inline constexpr std::string_view kHwNcUeError = "hw_nc_ue_error";
inline constexpr std::string_view kHwHbmUeError = "hw_hbm_ue_error";
inline constexpr std::string_view kHwDmaAbortError = "hw_dma_abort_error";
inline constexpr std::string_view kHwRepairableHbmUeError = "hw_repairable_hbm_ue_error";
inline constexpr std::string_view kCoreMissing = "core_missing";

// Reasons that only the kernel log shows; its other errors have the reasons above.
inline constexpr std::string_view kHangOnCollectives = "hang_on_collectives";
inline constexpr std::string_view kKernelLogError = "kernel_log_error";

// Reasons for the state unknown.
inline constexpr std::string_view kUnknownLayout = "unknown_layout";
inline constexpr std::string_view kReadsAllOnes = "reads_all_ones";
inline constexpr std::string_view kNoSignals = "no_signals";
inline constexpr std::string_view kSignalUnreadable = "signal_unreadable";
inline constexpr std::string_view kSignalsMissing = "signals_missing";
inline constexpr std::string_view kHealthNotMeasured = "health_not_measured";

// Reasons of EFA interfaces.
inline constexpr std::string_view kEfaVanished = "efa_vanished";
inline constexpr std::string_view kEfaDriverUnbound = "efa_driver_unbound";
inline constexpr std::string_view kRdmaDeviceMissing = "rdma_device_missing";
inline constexpr std::string_view kIbUverbsNotLoaded = "ib_uverbs_not_loaded";
inline constexpr std::string_view kVerbsDevicesMissing = "verbs_devices_missing";
inline constexpr std::string_view kVerbsMissing = "verbs_missing";
inline constexpr std::string_view kVerbsNodeMissing = "verbs_node_missing";
inline constexpr std::string_view kNoCompletionCmds = "no_completion_cmds";
inline constexpr std::string_view kNoPeerMemory = "no_peer_memory";

}  // namespace neuron::model::reason
