#pragma once

#include <string>
#include <string_view>

namespace neuron::model {

enum class HealthState { healthy, degraded, unhealthy, unknown };

[[nodiscard]] std::string_view to_string(HealthState state);  // the enumerator's name

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
  std::string reason;    // stable code (agent/model/reasons.h), e.g. "sram_ecc_uncorrected"; "" when healthy
  std::string sentence;  // the evidence in words, with the value and the path
  std::string action;    // recommended action, e.g. "replace the instance"; "" when none
  friend bool operator==(const Health&, const Health&) = default;
};

// False for the state that a device has before anybody has looked: unknown without a reason.
[[nodiscard]] inline bool is_assessed(const Health& health) {
  return health.state != HealthState::unknown || !health.reason.empty();
}

}  // namespace neuron::model
