#pragma once

#include <chrono>
#include <functional>
#include <utility>

#include "agent/base/clock.h"

namespace neuron::fleet {

// Time limit of one question. Searches that reach it stop; the rest stays unknown. Each step that takes more than some
// microseconds asks first. One thread.
class Effort {
 public:
  explicit Effort(
      std::chrono::seconds limit, std::function<SteadyTime()> now = [] { return std::chrono::steady_clock::now(); })
      : limit_(limit), now_(std::move(now)), end_(now_() + limit) {}

  [[nodiscard]] bool is_over() {
    was_over_ = was_over_ || now_() >= end_;
    return was_over_;
  }
  [[nodiscard]] bool was_over() const { return was_over_; }  // when a search asked
  [[nodiscard]] std::chrono::seconds limit() const { return limit_; }

 private:
  std::chrono::seconds limit_;
  std::function<SteadyTime()> now_;
  SteadyTime end_;
  bool was_over_ = false;
};

// Whether a search has ended for it. nullptr: no limit.
[[nodiscard]] inline bool is_cut(const Effort* effort) {
  return effort != nullptr && effort->was_over();
}

// Asks the clock. nullptr: no limit.
[[nodiscard]] inline bool is_over(Effort* effort) {
  return effort != nullptr && effort->is_over();
}

}  // namespace neuron::fleet
