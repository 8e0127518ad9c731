#include "plugin/device/event_queue.h"

#include <sys/eventfd.h>

#include <cerrno>
#include <memory>

namespace neuron::plugin {

Result<std::unique_ptr<EventQueue>> EventQueue::open() {
  Fd wake(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!wake.valid()) return fail(error_from_errno(errno, "eventfd"));
  return std::unique_ptr<EventQueue>(new EventQueue(std::move(wake)));
}

void EventQueue::post(Event event) {
  {
    const MutexLock lock(mutex_);
    events_.push_back(std::move(event));
  }
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof(one));  // a full counter wakes as well
}

std::vector<Event> EventQueue::take() {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = ::read(wake_.get(), &count, sizeof(count));
  const MutexLock lock(mutex_);
  return std::move(events_);
}

}  // namespace neuron::plugin
