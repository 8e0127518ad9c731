#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include "agent/base/clock.h"

namespace neuron::plugin {

// Time for an action that must not fall into an admission of the kubelet: after `idle_time` without a call, but at most
// `max_wait` after it was first wanted, as some nodes are never idle. Plain arithmetic on times; not synchronised.
class IdleTimer {
 public:
  constexpr IdleTimer(std::chrono::milliseconds idle_time, std::chrono::milliseconds max_wait)
      : idle_time_(idle_time), max_wait_(max_wait) {}

  // Wants it, not before `earliest`, which replaces what was wanted before; `max_wait` counts from the first one.
  void want(SteadyTime earliest) {
    since_ = std::min(since_.value_or(earliest), earliest);
    at_ = std::min(earliest, *since_ + max_wait_);
    next_.reset();
  }

  // The process has not run for a while, stopped or starved: calls of the kubelet may lie unread, so it counts as busy,
  // and the wait is extended for what has piled up. At most ten times until due(): a machine may starve us all the
  // time.
  void woke(SteadyTime now) {
    constexpr int kMostWakes = 10;
    constexpr int kIdleTimesForBacklog = 5;
    if (!since_ || ++wakes_ > kMostWakes) return;
    since_ = std::max(*since_, now + kIdleTimesForBacklog * idle_time_ - max_wait_);
    at_ = std::max(*at_, now + idle_time_);
    next_.reset();
  }

  void drop() {
    since_.reset();
    at_.reset();
    next_.reset();
    wakes_ = 0;
  }

  // True once: now is the time. `last_call`: the newest call of the kubelet; `busy`: an admission is not over, so only
  // `max_wait` counts until it is.
  [[nodiscard]] bool due(SteadyTime now, SteadyTime last_call, bool busy) {
    if (!since_) return false;
    const SteadyTime most = *since_ + max_wait_;
    const SteadyTime idle = std::min(std::max(*at_, last_call + idle_time_), most);
    next_ = busy ? most : idle;
    if (now < *next_) return false;
    drop();
    return true;
  }

  // When to ask due() again, if anything is wanted. Sooner when the admission has ended.
  [[nodiscard]] std::optional<SteadyTime> next() const { return next_ ? next_ : at_; }

 private:
  std::chrono::milliseconds idle_time_;
  std::chrono::milliseconds max_wait_;
  std::optional<SteadyTime> since_;
  std::optional<SteadyTime> at_;
  std::optional<SteadyTime> next_;
  int wakes_ = 0;
};

}  // namespace neuron::plugin
