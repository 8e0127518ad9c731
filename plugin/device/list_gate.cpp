#include "plugin/device/list_gate.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "agent/base/mutex.h"

namespace neuron::plugin {

struct ListGate::State {
  struct Held {
    model::Resource resource{};
    Go go;
    SteadyTime until{};
    bool not_sent = false;  // the list it waits for
  };

  const Clock& clock;
  Mutex mutex;
  int on_the_way GUARDED_BY(mutex) = 0;
  SteadyTime last_sent GUARDED_BY(mutex){};
  bool never_written GUARDED_BY(mutex) = false;  // a kubelet that keeps no checkpoint: waiting for it is in vain
  std::vector<Held> held GUARDED_BY(mutex);

  explicit State(const Clock& clock_in) : clock(clock_in) {}

  void forget_late() REQUIRES(mutex) {
    if (on_the_way == 0 || clock.now() < last_sent + kPatience) return;
    on_the_way = 0;
    never_written = true;
  }

  // What may go now, of `resource` or of all; to be called without the lock.
  [[nodiscard]] std::vector<Held> take(std::optional<model::Resource> resource) REQUIRES(mutex) {
    const auto first = std::stable_partition(held.begin(), held.end(), [&](const Held& one) {
      return resource ? one.resource != *resource : (one.not_sent || on_the_way > 0) && clock.now() < one.until;
    });
    std::vector<Held> going(std::make_move_iterator(first), std::make_move_iterator(held.end()));
    held.erase(first, held.end());
    return going;
  }
};

namespace {

void let_go(const auto& going) {
  for (const auto& one : going) one.go();
}

}  // namespace

ListGate::ListGate(const Clock& clock) : state_(std::make_unique<State>(clock)) {}

ListGate::~ListGate() = default;

void ListGate::sent() {
  const MutexLock lock(state_->mutex);
  ++state_->on_the_way;
  state_->last_sent = state_->clock.now();
  for (State::Held& one : state_->held) one.not_sent = false;
}

void ListGate::checkpoint_written() {
  std::vector<State::Held> going;
  {
    const MutexLock lock(state_->mutex);
    state_->never_written = false;
    state_->on_the_way = std::max(state_->on_the_way - 1, 0);
    going = state_->take(std::nullopt);
  }
  let_go(going);
}

void ListGate::kubelet_is_new() {
  std::vector<State::Held> going;
  {
    const MutexLock lock(state_->mutex);
    state_->on_the_way = 0;
    going = state_->take(std::nullopt);
  }
  let_go(going);
}

bool ListGate::hold(model::Resource resource, Go go) {
  const MutexLock lock(state_->mutex);
  state_->forget_late();
  if (state_->on_the_way == 0 || state_->never_written) return false;
  state_->held.push_back({resource, std::move(go), state_->clock.now() + kPatience, false});
  return true;
}

void ListGate::hold_for_next(model::Resource resource, Go go) {
  const MutexLock lock(state_->mutex);
  state_->held.push_back({resource, std::move(go), state_->clock.now() + kPatience, true});
}

std::optional<SteadyTime> ListGate::expire() {
  std::vector<State::Held> going;
  std::optional<SteadyTime> next;
  {
    const MutexLock lock(state_->mutex);
    if (state_->held.empty()) return std::nullopt;
    state_->forget_late();
    going = state_->take(std::nullopt);
    for (const State::Held& one : state_->held) next = std::min(next.value_or(one.until), one.until);
  }
  let_go(going);
  return next;
}

bool ListGate::holds() const {
  const MutexLock lock(state_->mutex);
  return !state_->held.empty();
}

void ListGate::release(model::Resource resource) {
  std::vector<State::Held> going;
  {
    const MutexLock lock(state_->mutex);
    going = state_->take(resource);
  }
  let_go(going);
}

}  // namespace neuron::plugin
