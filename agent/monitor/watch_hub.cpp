#include "agent/monitor/watch_hub.h"

#include <algorithm>
#include <utility>

namespace neuron::monitor {

void WatchHub::add(std::shared_ptr<WatchSink> sink) {
  UnitListPtr newest;
  bool closed = false;
  {
    const MutexLock lock(mutex_);
    closed = closed_;
    newest = newest_;
    if (!closed) sinks_.push_back(sink);
  }
  if (closed) {
    sink->stop();
  } else if (newest) {
    sink->offer(std::move(newest));
  }
}

void WatchHub::remove(const WatchSink* sink) {
  std::shared_ptr<WatchSink> removed;  // released after the lock
  const MutexLock lock(mutex_);
  const auto found = std::find_if(sinks_.begin(), sinks_.end(), [&](const auto& held) { return held.get() == sink; });
  if (found == sinks_.end()) return;
  removed = std::move(*found);
  sinks_.erase(found);
}

void WatchHub::publish(UnitListPtr units) {
  std::vector<std::shared_ptr<WatchSink>> sinks;
  {
    const MutexLock lock(mutex_);
    newest_ = units;
    sinks = sinks_;
  }
  for (const auto& sink : sinks) sink->offer(units);
}

void WatchHub::close() {
  std::vector<std::shared_ptr<WatchSink>> sinks;
  {
    const MutexLock lock(mutex_);
    closed_ = true;
    sinks.swap(sinks_);
  }
  for (const auto& sink : sinks) sink->stop();
}

std::size_t WatchHub::watchers() const {
  const MutexLock lock(mutex_);
  return sinks_.size();
}

}  // namespace neuron::monitor
