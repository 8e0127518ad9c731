#pragma once

#include "agent/base/clock.h"
#include "agent/base/mutex.h"

namespace neuron::fakes {

// A clock that moves only when told to. Thread-safe.
class FakeClock final : public Clock {
 public:
  [[nodiscard]] SteadyTime now() const override {
    const MutexLock lock(mutex_);
    return now_;
  }
  void advance(std::chrono::milliseconds by) {
    const MutexLock lock(mutex_);
    now_ += by;
  }

 private:
  mutable Mutex mutex_;
  SteadyTime now_ GUARDED_BY(mutex_) = SteadyTime{} + std::chrono::hours(1);
};

}  // namespace neuron::fakes
