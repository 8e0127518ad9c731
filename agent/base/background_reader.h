#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "agent/base/fd.h"
#include "agent/base/mutex.h"
#include "agent/base/result.h"
#include "agent/base/workers.h"

namespace neuron {

// Reads what may hang in a thread of its own, for a loop that must not: one read at a time, the newest answer kept
// until it is taken. All methods from one thread, none of them blocks except the destructor.
template <typename Answer, typename... Request>
class BackgroundReader {
 public:
  using Read = std::function<Answer(const Request&...)>;

  // `read` runs in the other thread only. What it refers to has to be owned by it, or outlive the process: when it
  // hangs for ever the thread is left behind. Errors: what the kernel says (no eventfd).
  [[nodiscard]] static Result<std::unique_ptr<BackgroundReader>> open(Read read) {
    Fd ready(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!ready.valid()) return fail(error_from_errno(errno, "eventfd"));
    return std::unique_ptr<BackgroundReader>(new BackgroundReader(std::move(read), std::move(ready)));
  }
  ~BackgroundReader() { static_cast<void>(workers_.stop(kStopTimeout)); }
  BackgroundReader(const BackgroundReader&) = delete;
  BackgroundReader& operator=(const BackgroundReader&) = delete;

  void request(const Request&... request) {  // begins a read; does nothing while one is under way
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
  static constexpr std::chrono::milliseconds kStopTimeout{300};  // with a read that is under way at the end

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
