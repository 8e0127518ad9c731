#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include "agent/base/clock.h"

namespace neuron::kube {

// How often one may call: `per_second` on average, and `burst` at once after a rest. Whoever comes when it is empty is
// told how long to wait, and the next after them longer. Pure; not synchronised.
class TokenBucket {
 public:
  using Duration = std::chrono::nanoseconds;

  TokenBucket(double per_second, int burst)
      : interval_(static_cast<Duration::rep>(1e9 / per_second)), burst_(interval_ * burst) {}

  // A place in the row: the time to wait for it from `now` on. nullopt, and no place taken, when that is longer than
  // `longest`.
  [[nodiscard]] std::optional<Duration> take(SteadyTime now, Duration longest) {
    // free_at_ lies in the future by as much as has been taken beyond what has come in; a rest fills the burst.
    const SteadyTime full = now - (burst_ - interval_);
    const SteadyTime mine = std::max(free_at_, full);
    const Duration wait = std::max(std::max(mine, paused_until_) - now, Duration(0));
    if (wait > longest) return std::nullopt;
    free_at_ = mine + interval_;
    return wait;
  }

  void pause(SteadyTime until) { paused_until_ = std::max(paused_until_, until); }  // nobody goes before then

 private:
  Duration interval_;
  Duration burst_;
  SteadyTime free_at_{};  // when the next place is
  SteadyTime paused_until_{};
};

}  // namespace neuron::kube
