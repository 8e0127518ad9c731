#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <optional>
#include <random>
#include <stop_token>

#include "agent/base/clock.h"
#include "agent/base/mutex.h"

namespace neuron::kube {

// Pause before another attempt: a random part, at least half, of a time that doubles with every failure, so that the
// agents of a cluster do not return together. Not synchronised.
class Backoff {
 public:
  using Milliseconds = std::chrono::milliseconds;

  Backoff(Milliseconds first, Milliseconds longest, unsigned seed = std::random_device{}())
      : first_(first), longest_(longest), next_(first), chance_(seed) {}

  [[nodiscard]] Milliseconds next() {
    const Milliseconds whole = next_;
    next_ = std::min(whole * 2, longest_);
    return Milliseconds(std::uniform_int_distribution<Milliseconds::rep>(whole.count() / 2, whole.count())(chance_));
  }
  void reset() { next_ = first_; }  // after a success

 private:
  Milliseconds first_;
  Milliseconds longest_;
  Milliseconds next_;
  std::minstd_rand chance_;
};

// Waits that long, or until `stop` is requested. Blocks. A test may count instead, but must not let its thread spin.
using Wait = std::function<void(std::chrono::milliseconds, const std::stop_token&)>;

inline void wait_for(std::chrono::milliseconds time, const std::stop_token& stop) {
  Mutex mutex;
  std::condition_variable_any never;
  const MutexLock lock(mutex);
  static_cast<void>(never.wait_for(mutex, stop, time, [] { return false; }));
}

// Limits a rate of calls or events: one per interval on average, and `burst` at once after a pause. Callers over the
// limit wait, each longer than the one before. Pure; not synchronised.
class TokenBucket {
 public:
  using Duration = std::chrono::nanoseconds;

  TokenBucket(Duration interval, int burst) : interval_(interval), burst_(interval_ * burst) {}
  TokenBucket(double per_second, int burst)
      : TokenBucket(Duration(static_cast<Duration::rep>(1e9 / per_second)), burst) {}

  // Reserves a call: the time from `now` until it may be made. nullopt, without a reservation, when that is longer than
  // `longest`.
  [[nodiscard]] std::optional<Duration> take(SteadyTime now, Duration longest) {
    const Duration wait = std::max(next() - now, Duration(0));
    if (wait > longest) return std::nullopt;
    spend(now);
    return wait;
  }
  // Counts a call that is made anyway.
  void spend(SteadyTime now) {
    // free_at_ is in the future by the excess over the average rate; a pause refills the burst.
    free_at_ = std::max(free_at_, now - (burst_ - interval_)) + interval_;
  }
  [[nodiscard]] SteadyTime next() const { return std::max(free_at_, paused_until_); }  // when the next may be made

  void pause(SteadyTime until) { paused_until_ = std::max(paused_until_, until); }  // no call before then

 private:
  Duration interval_;
  Duration burst_;
  SteadyTime free_at_{};  // time of the next call
  SteadyTime paused_until_{};
};

}  // namespace neuron::kube
