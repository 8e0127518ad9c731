#pragma once

#include <array>
#include <chrono>
#include <ctime>
#include <string>

namespace neuron {

using SteadyTime = std::chrono::steady_clock::time_point;

// The monotonic clock of code that decides by time; a test can set it (test/fakes/fake_clock.h). Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual SteadyTime now() const = 0;
};

class SystemClock final : public Clock {
 public:
  [[nodiscard]] SteadyTime now() const override { return std::chrono::steady_clock::now(); }
};

// "2026-11-21T06:40:00Z"
[[nodiscard]] inline std::string utc_text(std::chrono::system_clock::time_point time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

}  // namespace neuron
