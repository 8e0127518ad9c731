#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <utility>

#include "agent/base/clock.h"

namespace neuron::check {

using std::chrono::microseconds;

// Simulated time and what is due in it. One thread. Whoever schedules must outlive the timeline or guard the call.
class Timeline final : public Clock {
 public:
  [[nodiscard]] SteadyTime now() const override { return now_; }

  void after(SteadyTime::duration delay, std::function<void()> call) { due_.emplace(now_ + delay, std::move(call)); }

  // Lets `by` pass; what falls due happens in order, and may schedule more. Not to be called from within a call.
  void advance(SteadyTime::duration by) {
    const SteadyTime until = now_ + by;
    while (!due_.empty() && due_.begin()->first <= until) {
      auto first = due_.extract(due_.begin());
      now_ = first.key();
      first.mapped()();
    }
    now_ = until;
  }

 private:
  SteadyTime now_ = SteadyTime{} + std::chrono::hours(1);
  std::multimap<SteadyTime, std::function<void()>> due_;
};

}  // namespace neuron::check
