#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "agent/base/fd.h"
#include "agent/base/mutex.h"
#include "agent/base/result.h"

namespace neuron::plugin {

// From any thread to the main thread's poll loop.
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

}  // namespace neuron::plugin
