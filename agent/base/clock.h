#pragma once

#include <chrono>

namespace neuron {

using SteadyTime = std::chrono::steady_clock::time_point;

// The monotonic clock as seen by code that decides on it, so that a test can move it by hand (test/fakes/fake_clock.h).
// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual SteadyTime now() const = 0;
};

class SystemClock final : public Clock {
 public:
  [[nodiscard]] SteadyTime now() const override { return std::chrono::steady_clock::now(); }
};

}  // namespace neuron
