#include "agent/base/workers.h"

#include <algorithm>
#include <deque>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "agent/base/clock.h"
#include "agent/base/mutex.h"

namespace neuron {

// Shared with the threads, so that one that hangs in the kernel never touches freed memory.
struct Workers::State {
  explicit State(std::chrono::milliseconds idle_in) : patience(idle_in) {}

  // One idle thread, on its stack.
  struct Idle {
    std::condition_variable_any wake;
    std::function<void()> job;
  };

  const std::chrono::milliseconds patience;  // of an idle thread
  Mutex mutex;
  std::condition_variable_any thread_ended;
  bool stopping GUARDED_BY(mutex) = false;
  std::vector<Idle*> idle GUARDED_BY(mutex);                 // in the order in which they became idle
  std::deque<std::function<void()>> jobs GUARDED_BY(mutex);  // that no idle thread took
  std::vector<std::thread> threads GUARDED_BY(mutex);
  std::vector<std::thread::id> ended GUARDED_BY(mutex);

  std::function<void()> next() EXCLUDES(mutex) {
    const MutexLock lock(mutex);
    constexpr std::size_t kSpare = 2;
    constexpr int kSoonerBy = 10;
    Idle self;
    if (!stopping && jobs.empty()) {
      const SteadyTime until =
          std::chrono::steady_clock::now() + (idle.size() < kSpare ? patience : patience / kSoonerBy);
      idle.push_back(&self);
      while (!stopping && !self.job && self.wake.wait_until(mutex, until) == std::cv_status::no_timeout) {
      }
      std::erase(idle, &self);
      if (self.job && !stopping) return std::move(self.job);
    }
    if (stopping || jobs.empty()) return nullptr;
    std::function<void()> job = std::move(jobs.front());
    jobs.pop_front();
    return job;
  }

  void work() EXCLUDES(mutex) {
    while (const auto job = next()) job();
    const MutexLock lock(mutex);
    ended.push_back(std::this_thread::get_id());
    thread_ended.notify_all();
  }

  // Joins ended threads, which does not block.
  void reap() REQUIRES(mutex) {
    std::erase_if(threads, [&](std::thread& thread) REQUIRES(mutex) {
      if (std::erase(ended, thread.get_id()) == 0) return false;
      thread.join();
      return true;
    });
  }
};

Workers::Workers(std::chrono::milliseconds idle) : state_(std::make_shared<State>(idle)) {}

Workers::~Workers() {
  constexpr std::chrono::milliseconds kStopTimeout{1000};
  static_cast<void>(stop(kStopTimeout));
}

void Workers::run(std::function<void()> job) {
  State& state = *state_;
  const MutexLock lock(state.mutex);
  if (state.stopping) return;
  state.reap();
  if (!state.idle.empty()) {  // the last one to become idle, so that those beyond need reach the end of their patience
    State::Idle& thread = *state.idle.back();
    state.idle.pop_back();
    thread.job = std::move(job);
    thread.wake.notify_one();
    return;
  }
  state.jobs.push_back(std::move(job));
  try {
    state.threads.emplace_back([shared = state_] { shared->work(); });
  } catch (const std::system_error&) {  // no more threads: the job waits for a running one to end
  }
}

std::size_t Workers::threads() const {
  const MutexLock lock(state_->mutex);
  return state_->threads.size() - state_->ended.size();
}

bool Workers::stop(std::chrono::milliseconds deadline) {
  const SteadyTime until = std::chrono::steady_clock::now() + deadline;
  std::vector<std::thread> threads;
  std::vector<std::thread::id> ended;
  {
    State& state = *state_;
    const MutexLock lock(state.mutex);
    state.stopping = true;
    state.jobs.clear();
    for (State::Idle* thread : state.idle) thread->wake.notify_one();
    while (state.ended.size() < state.threads.size() &&
           state.thread_ended.wait_until(state.mutex, until) == std::cv_status::no_timeout) {
    }
    threads = std::exchange(state.threads, {});
    ended = std::exchange(state.ended, {});
  }
  for (std::thread& thread : threads) {
    if (std::find(ended.begin(), ended.end(), thread.get_id()) != ended.end()) {
      thread.join();
    } else {
      thread.detach();
    }
  }
  return ended.size() == threads.size();
}

}  // namespace neuron
