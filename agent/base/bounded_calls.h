#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "agent/base/clock.h"
#include "agent/base/mutex.h"
#include "agent/base/workers.h"

namespace neuron {

// Calls that may hang in a file system, for threads that must not: each runs on a thread of `workers` and is given up
// after its budget. While a call that was given up has not come back no other is begun, and none has an answer, at
// once. Thread-safe.
class BoundedCalls {
 public:
  // Of a call that was given up; on any thread, must not block, never after the destructor. Empty: nothing is called.
  struct Events {
    std::function<void()> hangs;      // it is the only one
    std::function<void()> came_back;  // none is left
  };

  // `workers` must outlive this object.
  explicit BoundedCalls(Workers& workers, Events events = {}) : workers_(workers), state_(std::make_shared<State>()) {
    const MutexLock lock(state_->mutex);
    state_->events = std::move(events);
  }
  ~BoundedCalls() {
    const MutexLock lock(state_->mutex);
    state_->events = {};
  }
  BoundedCalls(const BoundedCalls&) = delete;
  BoundedCalls& operator=(const BoundedCalls&) = delete;

  // The answer of `call`, which is not void; nullopt: it hangs, and its answer is dropped once it comes back, or
  // another hangs and it was not begun. `call` is copied; objects that it refers to must outlive the workers' threads.
  template <typename Call>
  [[nodiscard]] auto run(Call call, std::chrono::milliseconds budget) const
      -> std::optional<std::invoke_result_t<const Call&>>;

  // Runs `job` without waiting for it, also while a call hangs. As that of run().
  void leave(std::function<void()> job) const { workers_.run(std::move(job)); }

  [[nodiscard]] bool hangs() const {
    const MutexLock lock(state_->mutex);
    return state_->hanging > 0;
  }

 private:
  struct State {  // shared with calls that hang
    Mutex mutex;
    std::condition_variable_any ended;
    int hanging GUARDED_BY(mutex) = 0;  // calls that were given up and have not come back
    Events events GUARDED_BY(mutex);
  };
  Workers& workers_;
  const std::shared_ptr<State> state_;
};

template <typename Call>
auto BoundedCalls::run(Call call, std::chrono::milliseconds budget) const
    -> std::optional<std::invoke_result_t<const Call&>> {
  using Answer = std::invoke_result_t<const Call&>;
  struct Question {  // guarded by the state's mutex
    std::optional<Answer> answer;
    bool ended = false;
    bool given_up = false;
  };
  State& state = *state_;
  const auto question = std::make_shared<Question>();
  const SteadyTime until = std::chrono::steady_clock::now() + budget;
  {
    const MutexLock lock(state.mutex);
    if (state.hanging > 0) return std::nullopt;
  }
  workers_.run([shared = state_, question, call = std::move(call)] {
    std::optional<Answer> answer(call());
    {
      const MutexLock lock(shared->mutex);
      if (!question->given_up) {
        question->answer = std::move(answer);
        question->ended = true;
        return shared->ended.notify_all();
      }
    }
    answer.reset();  // a lock that it has is free before the next call
    const MutexLock lock(shared->mutex);
    if (--shared->hanging == 0 && shared->events.came_back) shared->events.came_back();
  });
  const MutexLock lock(state.mutex);
  while (!question->ended && state.ended.wait_until(state.mutex, until) == std::cv_status::no_timeout) {
  }
  if (question->ended) return std::move(question->answer);
  question->given_up = true;
  if (++state.hanging == 1 && state.events.hangs) state.events.hangs();
  return std::nullopt;
}

}  // namespace neuron
