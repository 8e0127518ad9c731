#include <condition_variable>
#include <utility>

#include "plugin/dra/claim/claim_preparer.h"

namespace neuron::plugin::dra {

struct SharedScan::State {
  Mutex mutex;
  std::condition_variable_any changed;
  bool running GUARDED_BY(mutex) = false;
  SteadyTime began GUARDED_BY(mutex);
  std::uint64_t ended GUARDED_BY(mutex) = 0;  // so many scans
  grant::NodeUnitsPtr newest GUARDED_BY(mutex);
};

SharedScan::SharedScan(Scan scan, Run run, std::chrono::milliseconds patience)
    : scan_(std::move(scan)), run_(std::move(run)), patience_(patience), state_(std::make_shared<State>()) {}

grant::NodeUnitsPtr SharedScan::operator()() {
  if (!scan_) return nullptr;
  SteadyTime until;
  std::uint64_t before = 0;
  bool is_first = false;
  {
    const MutexLock lock(state_->mutex);
    is_first = !std::exchange(state_->running, true);
    if (is_first) state_->began = std::chrono::steady_clock::now();
    until = state_->began + patience_;
    before = state_->ended;
  }
  if (is_first) {
    run_([state = state_, scan = scan_] {
      grant::NodeUnitsPtr node = scan();
      const MutexLock lock(state->mutex);
      state->running = false;
      ++state->ended;
      state->newest = std::move(node);
      state->changed.notify_all();
    });
  }
  const MutexLock lock(state_->mutex);
  while (state_->ended == before && state_->changed.wait_until(state_->mutex, until) == std::cv_status::no_timeout) {
  }
  return state_->ended == before ? nullptr : state_->newest;
}

}  // namespace neuron::plugin::dra
