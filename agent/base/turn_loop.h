#pragma once

#include <chrono>
#include <condition_variable>
#include <stop_token>

#include "agent/base/clock.h"
#include "agent/base/mutex.h"

namespace neuron {

// The loop of a thread that works in turns: the first at once, another when something has changed or when the one
// before said that it is due. Times are of the system's monotonic clock.
class TurnLoop {
 public:
  // Something has changed: another turn follows, also when one is under way. Any thread; never waits for a turn.
  void wake() EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    is_woken_ = true;
    woken_.notify_all();
  }

  // `turn` returns the longest time until the next one. Until `stop` is requested, which ends a wait at once, and no
  // turn. Blocks one thread; wakeups from before the call are part of its first turn.
  template <typename Turn>
  void run(const std::stop_token& stop, const Turn& turn) EXCLUDES(mutex_) {
    const std::stop_callback on_stop(stop, [this] { wake(); });
    for (;;) {
      clear();
      if (stop.stop_requested()) return;  // after clear(), which may have taken the stop's wakeup
      const SteadyTime until = std::chrono::steady_clock::now() + turn();
      const MutexLock lock(mutex_);
      while (!is_woken_ && woken_.wait_until(mutex_, until) == std::cv_status::no_timeout) {
      }
    }
  }

 private:
  void clear() EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    is_woken_ = false;
  }

  Mutex mutex_;
  std::condition_variable_any woken_;
  bool is_woken_ GUARDED_BY(mutex_) = false;
};

}  // namespace neuron
