#include "agent/monitor/usage_sampler.h"

#include <optional>
#include <utility>

#include "agent/base/mutex.h"

namespace neuron::monitor {

// Shared with the timers and with the read that runs.
struct UsageSampler::State {
  const Ports ports;
  const Clock& clock;
  const std::chrono::milliseconds interval;

  Mutex mutex;
  SteadyTime asked_at GUARDED_BY(mutex){};
  bool turning GUARDED_BY(mutex) = false;  // a timer is set
  Samples samples GUARDED_BY(mutex);

  // Of the timers' thread.
  std::optional<WatchedUsage> read;
  bool reading = false;
  std::vector<model::Unanswered> unanswered;  // by the newest sample

  State(Ports ports_in, const Clock& clock_in, std::chrono::milliseconds interval_in)
      : ports(std::move(ports_in)), clock(clock_in), interval(interval_in) {}
};

UsageSampler::UsageSampler(Ports ports, const Clock& clock, std::chrono::milliseconds interval)
    : state_(std::make_shared<State>(std::move(ports), clock, interval)) {
  state_->read.emplace(state_->ports.run, state_->ports.make_read, [weak = std::weak_ptr(state_)] {
    const auto state = weak.lock();
    if (state) state->ports.at(state->clock.now(), [state] { collect(state); });
  });
}

UsageSampler::Samples UsageSampler::ask() {
  const SteadyTime now = state_->clock.now();
  bool start = false;
  Samples samples;
  {
    const MutexLock lock(state_->mutex);
    state_->asked_at = now;
    start = !std::exchange(state_->turning, true);
    samples = state_->samples;
  }
  if (start) state_->ports.at(now, [state = state_] { turn(state); });
  return samples;
}

void UsageSampler::turn(const std::shared_ptr<State>& state) {
  const SteadyTime now = state->clock.now();
  {
    const MutexLock lock(state->mutex);
    state->turning = now - state->asked_at < kWanted;
    if (!state->turning) return;
  }
  if (!state->reading && state->ports.can_read()) {
    state->reading = true;
    state->read->begin();
    state->ports.at(now + kBudget / WatchedUsage::kChecksPerBudget, [state] { check(state); });
  }
  state->ports.at(now + state->interval, [state] { turn(state); });
}

void UsageSampler::check(const std::shared_ptr<State>& state) {
  if (!state->reading) return;
  state->read->check();
  state->ports.at(state->clock.now() + kBudget / WatchedUsage::kChecksPerBudget, [state] { check(state); });
}

void UsageSampler::collect(const std::shared_ptr<State>& state) {
  auto sample = state->read->take();
  if (!sample) return;
  state->reading = false;
  if (auto unanswered = state->read->unanswered(); unanswered != state->unanswered) {
    state->unanswered = std::move(unanswered);
    if (state->ports.on_unanswered) state->ports.on_unanswered(state->unanswered);
  }
  auto kept = std::make_shared<const model::UsageSample>(*std::move(sample));
  Samples gone;  // freed without the lock
  const MutexLock lock(state->mutex);
  const bool recent = state->samples.now && kept->at - state->samples.now->at < kWanted;
  gone = std::exchange(state->samples, Samples{recent ? state->samples.now : nullptr, std::move(kept)});
}

}  // namespace neuron::monitor
