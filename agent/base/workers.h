#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

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

}  // namespace neuron
