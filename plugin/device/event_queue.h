#pragma once

#include <memory>
#include <vector>

#include "agent/base/fd.h"
#include "agent/base/mutex.h"
#include "agent/base/result.h"
#include "plugin/device/events.h"

namespace neuron::plugin {

// From any thread to the main thread's poll loop.
class EventQueue {
 public:
  // Errors: internal (no eventfd).
  [[nodiscard]] static Result<std::unique_ptr<EventQueue>> open();

  void post(Event event) EXCLUDES(mutex_);                   // any thread, never blocks
  [[nodiscard]] std::vector<Event> take() EXCLUDES(mutex_);  // main thread: everything so far, in order
  [[nodiscard]] int fd() const { return wake_.get(); }       // readable while events wait

 private:
  explicit EventQueue(Fd wake) : wake_(std::move(wake)) {}
  Fd wake_;
  Mutex mutex_;
  std::vector<Event> events_ GUARDED_BY(mutex_);
};

}  // namespace neuron::plugin
