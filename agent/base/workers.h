#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "agent/base/clock.h"
#include "agent/base/fd.h"
#include "agent/base/mutex.h"
#include "agent/base/result.h"

namespace neuron {

// Threads for jobs that read the machine and so may hang forever. A job begins at once, on an idle thread or a new one,
// so that none waits for a hanging one (unless the system has no more threads: then for one that ends). Idle threads
// end after a while, so that there are as many threads as concurrent jobs; the caller bounds how many may hang.
// Thread-safe.
class Workers {
 public:
  // Until an idle thread ends: of the first two, usually longer than between two scans; of others a tenth of it.
  static constexpr std::chrono::milliseconds kIdle{10'000};

  explicit Workers(std::chrono::milliseconds idle = kIdle);
  ~Workers();  // stop(); a hanging thread keeps its state alive
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  void run(std::function<void()> job);  // does nothing after stop()

  // Begins no more jobs. False: some did not end by the deadline; their threads were detached.
  [[nodiscard]] bool stop(std::chrono::milliseconds deadline);

  [[nodiscard]] std::size_t threads() const;  // that work, hang or are idle

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// Reads in a separate thread, for a loop that must not hang: one read at a time; the newest answer is kept until it is
// taken. All methods from one thread; none blocks except the destructor.
template <typename Answer, typename... Request>
class BackgroundReader {
 public:
  using Read = std::function<Answer(const Request&...)>;

  // `read` runs in the other thread only. It must own the objects that it refers to, or they must live as long as the
  // process: a hanging thread is detached. Errors: from errno (no eventfd).
  [[nodiscard]] static Result<std::unique_ptr<BackgroundReader>> open(Read read) {
    Fd ready(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!ready.valid()) return fail(error_from_errno(errno, "eventfd"));
    return std::unique_ptr<BackgroundReader>(new BackgroundReader(std::move(read), std::move(ready)));
  }
  ~BackgroundReader() { static_cast<void>(workers_.stop(kStopTimeout)); }
  BackgroundReader(const BackgroundReader&) = delete;
  BackgroundReader& operator=(const BackgroundReader&) = delete;

  void request(const Request&... request) {  // begins a read; does nothing while one is running
    {
      const MutexLock lock(state_->mutex);
      if (std::exchange(state_->busy, true)) return;
    }
    workers_.run([state = state_, ... request = request] {
      Answer answer = state->read(request...);
      {
        const MutexLock lock(state->mutex);
        state->newest = std::move(answer);
        state->busy = false;
      }
      const std::uint64_t one = 1;
      (void)!::write(state->ready.get(), &one, sizeof one);
    });
  }
  [[nodiscard]] bool is_busy() const {
    const MutexLock lock(state_->mutex);
    return state_->busy;
  }
  [[nodiscard]] std::optional<Answer> take() {  // the newest answer, once
    std::uint64_t count = 0;
    (void)!::read(state_->ready.get(), &count, sizeof count);
    const MutexLock lock(state_->mutex);
    return std::exchange(state_->newest, std::nullopt);
  }
  [[nodiscard]] int ready_fd() const { return state_->ready.get(); }  // readable when take() has something

 private:
  static constexpr std::chrono::milliseconds kStopTimeout{300};  // for a read that is running at the end

  struct State {  // lives as long as either thread needs it
    Read read;
    Fd ready;
    Mutex mutex;
    bool busy GUARDED_BY(mutex) = false;
    std::optional<Answer> newest GUARDED_BY(mutex);
  };

  BackgroundReader(Read read, Fd ready) : state_(std::make_shared<State>()) {
    state_->read = std::move(read);
    state_->ready = std::move(ready);
  }

  std::shared_ptr<State> state_;
  Workers workers_;
};

// Calls that may hang in a file system, for threads that must not: each runs on a thread of `workers` and is given up
// after its budget. While a call that was given up has not come back no other is begun, and none has an answer, at
// once. Thread-safe.
class BoundedCalls {
 public:
  // Reports calls that were abandoned; on any thread, must not block, never after the destructor. Empty: nothing is
  // called.
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
  // another hangs and it was not begun. `call` is moved and ended before its answer is there; objects that it refers to
  // must outlive the workers' threads.
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
  workers_.run([shared = state_, question, call = std::optional<Call>(std::move(call))]() mutable {
    std::optional<Answer> answer(std::as_const(*call)());
    call.reset();
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

// Passes events from any thread to the main thread's poll loop.
template <typename Event>
class EventQueueOf {
 public:
  // Errors: internal (no eventfd).
  [[nodiscard]] static Result<std::unique_ptr<EventQueueOf>> open() {
    Fd wake(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    if (!wake.valid()) return fail(error_from_errno(errno, "eventfd"));
    return std::unique_ptr<EventQueueOf>(new EventQueueOf(std::move(wake)));
  }

  void post(Event event) EXCLUDES(mutex_) {  // any thread, never blocks
    {
      const MutexLock lock(mutex_);
      events_.push_back(std::move(event));
    }
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof(one));  // a full counter wakes as well
  }

  [[nodiscard]] std::vector<Event> take() EXCLUDES(mutex_) {  // main thread: everything so far, in order
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = ::read(wake_.get(), &count, sizeof(count));
    const MutexLock lock(mutex_);
    return std::move(events_);
  }

  [[nodiscard]] int fd() const { return wake_.get(); }  // readable while events wait

 private:
  explicit EventQueueOf(Fd wake) : wake_(std::move(wake)) {}
  Fd wake_;
  Mutex mutex_;
  std::vector<Event> events_ GUARDED_BY(mutex_);
};

}  // namespace neuron
