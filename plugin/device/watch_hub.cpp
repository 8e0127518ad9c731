#include "plugin/device/watch_hub.h"

#include <algorithm>
#include <utility>

namespace neuron::plugin {

// The hub calls out without its own lock, so two lists may be under way to one sink at once. The watcher's lock lets
// them through one by one and drops the one that comes late.
struct WatchHub::Watcher {
  const std::shared_ptr<WatchSink> sink;
  Mutex mutex;
  std::uint64_t offered GUARDED_BY(mutex) = 0;  // number of the newest list offered

  explicit Watcher(std::shared_ptr<WatchSink> sink_in) : sink(std::move(sink_in)) {}

  void offer(const Numbered& list) EXCLUDES(mutex) {
    const MutexLock lock(mutex);
    if (list.number <= offered) return;
    offered = list.number;
    sink->offer(list.units);
  }
};

void WatchHub::add(std::shared_ptr<WatchSink> sink) {
  const auto watcher = std::make_shared<Watcher>(std::move(sink));
  Numbered newest;
  bool closed = false;
  {
    const MutexLock lock(mutex_);
    closed = closed_;
    newest = newest_;
    if (!closed) watchers_.push_back(watcher);
  }
  if (closed) {
    watcher->sink->stop();
  } else {
    watcher->offer(newest);
  }
}

void WatchHub::remove(const WatchSink* sink) {
  std::shared_ptr<Watcher> removed;  // released after the lock
  const MutexLock lock(mutex_);
  const auto found =
      std::find_if(watchers_.begin(), watchers_.end(), [&](const auto& held) { return held->sink.get() == sink; });
  if (found == watchers_.end()) return;
  removed = std::move(*found);
  watchers_.erase(found);
}

void WatchHub::publish(UnitListPtr units) {
  std::vector<std::shared_ptr<Watcher>> watchers;
  Numbered newest;
  {
    const MutexLock lock(mutex_);
    newest_ = {std::move(units), newest_.number + 1};
    newest = newest_;
    watchers = watchers_;
  }
  for (const auto& watcher : watchers) watcher->offer(newest);
}

void WatchHub::stop_watchers() {
  std::vector<std::shared_ptr<Watcher>> watchers;
  {
    const MutexLock lock(mutex_);
    watchers.swap(watchers_);
  }
  for (const auto& watcher : watchers) watcher->sink->stop();
}

void WatchHub::close() {
  {
    const MutexLock lock(mutex_);
    closed_ = true;
  }
  stop_watchers();
}

std::size_t WatchHub::watchers() const {
  const MutexLock lock(mutex_);
  return watchers_.size();
}

}  // namespace neuron::plugin
