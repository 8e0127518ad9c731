#include "agent/monitor/usage_sampler.h"

#include <utility>

#include "agent/base/mutex.h"

namespace neuron::monitor {

// Shared with the timer and with the read that runs.
struct UsageSampler::State {
  const Ports ports;
  const Clock& clock;
  const std::chrono::milliseconds interval;

  Mutex mutex;
  SteadyTime asked_at GUARDED_BY(mutex){};
  bool turning GUARDED_BY(mutex) = false;  // a timer is set
  bool reading GUARDED_BY(mutex) = false;  // runs, or hangs
  Samples samples GUARDED_BY(mutex);

  State(Ports ports_in, const Clock& clock_in, std::chrono::milliseconds interval_in)
      : ports(std::move(ports_in)), clock(clock_in), interval(interval_in) {}
};

UsageSampler::UsageSampler(Ports ports, const Clock& clock, std::chrono::milliseconds interval)
    : state_(std::make_shared<State>(std::move(ports), clock, interval)) {}

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
  bool begin = false;
  {
    const MutexLock lock(state->mutex);
    state->turning = now - state->asked_at < kWanted;
    if (!state->turning) return;
    begin = !std::exchange(state->reading, true);
  }
  if (begin) state->ports.run([state] { read(state); });
  state->ports.at(now + state->interval, [state] { turn(state); });
}

void UsageSampler::read(const std::shared_ptr<State>& state) {
  auto sample = state->ports.read();
  auto kept = sample ? std::make_shared<const model::UsageSample>(*std::move(sample)) : nullptr;
  Samples gone;  // freed without the lock
  const MutexLock lock(state->mutex);
  state->reading = false;
  if (!kept) return;
  const bool recent = state->samples.now && kept->at - state->samples.now->at < kWanted;
  gone = std::exchange(state->samples, Samples{recent ? state->samples.now : nullptr, std::move(kept)});
}

}  // namespace neuron::monitor
