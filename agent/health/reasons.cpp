#include "agent/health/reasons.h"

#include <array>
#include <utility>

namespace neuron::health {

namespace reasons {
namespace {

constexpr std::array kAll = {
    kDeviceVanished,
    kNotAnswering,
    kUnread,
    kNothingReadable,
    kOffTheBus,
    kDeviceNodeMissing,
    kDeviceUnreachable,
    kDeviceInvalid,
    kResetting,
    kSramEccUncorrected,
    kMemEccUncorrected,
    kMemEccRepairable,
    kUnhealthyComponents,
    kHeartbeatStuck,
    kHeartbeatsStuck,
    kHwNcUeError,
    kHwHbmUeError,
    kHwDmaAbortError,
    kHwError,
    kHwRepairableHbmUeError,
    kCoreMissing,
    kHangOnCollectives,
    kKernelLogError,
    kUnknownLayout,
    kReadsAllOnes,
    kNoSignals,
    kSignalUnreadable,
    kSignalsMissing,
    kHealthNotMeasured,
    kEfaVanished,
    kEfaDriverUnbound,
    kRdmaDeviceMissing,
    kIbUverbsNotLoaded,
    kVerbsDevicesMissing,
    kVerbsMissing,
    kVerbsNodeMissing,
    kNoCompletionCmds,
    kNoPeerMemory,
};

}  // namespace
}  // namespace reasons

std::span<const Reason> all_reasons() {
  return reasons::kAll;
}

model::Health verdict(const Reason& reason, std::string sentence) {
  return {reason.state, std::string(reason.code), std::move(sentence), std::string(reason.action)};
}

model::Health healthy() {
  return {model::HealthState::healthy, "", "", ""};
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

void keep_graver(model::Health& found, std::optional<model::Health> next) {
  const auto gravity = [](const model::Health& health) {
    return std::pair(badness(health.state), health.action == reasons::kReplace);
  };
  if (next && gravity(*next) > gravity(found)) found = *std::move(next);
}

}  // namespace neuron::health
