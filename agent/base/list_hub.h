#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "agent/base/mutex.h"

namespace neuron {

// A watcher of one list, which is always sent whole. Called without the hub's lock, from any thread; must not block.
template <typename List>
class ListSink {
 public:
  virtual ~ListSink() = default;
  // A newer state than every one before it; may replace one that was not delivered yet. One call at a time, which must
  // not lead back into the hub.
  virtual void publish(std::shared_ptr<const List> list) = 0;
  virtual void stop() = 0;  // the hub is closed: end soon
};

// Hands the newest list to every watcher. A watcher may miss a list, never the newest one, whichever threads publish
// and add at once. All methods from any thread.
template <typename List>
class ListHub {
 public:
  using ListPtr = std::shared_ptr<const List>;
  using Sink = ListSink<List>;

  // The sink gets the newest list at once, if there is one, or stopped at once when the hub is closed.
  void add(std::shared_ptr<Sink> sink) EXCLUDES(mutex_) {
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
      watcher->publish(newest);
    }
  }

  void remove(const Sink* sink) EXCLUDES(mutex_) {
    std::shared_ptr<Watcher> removed;  // released after the lock
    const MutexLock lock(mutex_);
    const auto found =
        std::find_if(watchers_.begin(), watchers_.end(), [&](const auto& held) { return held->sink.get() == sink; });
    if (found == watchers_.end()) return;
    removed = std::move(*found);
    watchers_.erase(found);
  }

  void publish(ListPtr list) EXCLUDES(mutex_) {
    publish_all([&](Numbered& newest) { newest.list = std::move(list); });
  }

  // Once more what was published last, for a peer that forgets it; nothing before the first.
  void repeat() EXCLUDES(mutex_) {
    publish_all([](Numbered&) {});
  }

  void stop_watchers() EXCLUDES(mutex_) {  // stops every sink that is there now; later ones are welcome
    std::vector<std::shared_ptr<Watcher>> watchers;
    {
      const MutexLock lock(mutex_);
      watchers.swap(watchers_);
    }
    for (const auto& watcher : watchers) watcher->sink->stop();
  }

  void close() EXCLUDES(mutex_) {  // stops every sink, now and later; idempotent
    {
      const MutexLock lock(mutex_);
      closed_ = true;
    }
    stop_watchers();
  }

  [[nodiscard]] std::size_t watchers() const EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return watchers_.size();
  }

 private:
  struct Numbered {
    ListPtr list;
    std::uint64_t number = 0;  // counts publish() and repeat()
  };
  // A sink and how far it is. The hub calls out without its own lock, so two lists may be under way to one sink at
  // once. The watcher's lock lets them through one by one and drops the one that comes late.
  struct Watcher {
    const std::shared_ptr<Sink> sink;
    Mutex mutex;
    std::uint64_t published GUARDED_BY(mutex) = 0;  // number of the newest list

    explicit Watcher(std::shared_ptr<Sink> sink_in) : sink(std::move(sink_in)) {}

    void publish(const Numbered& newest) EXCLUDES(mutex) {
      const MutexLock lock(mutex);
      if (newest.number <= published) return;
      published = newest.number;
      sink->publish(newest.list);
    }
  };

  template <typename Change>
  void publish_all(const Change& change) EXCLUDES(mutex_) {
    std::vector<std::shared_ptr<Watcher>> watchers;
    Numbered newest;
    {
      const MutexLock lock(mutex_);
      change(newest_);
      if (!newest_.list) return;
      ++newest_.number;
      newest = newest_;
      watchers = watchers_;
    }
    for (const auto& watcher : watchers) watcher->publish(newest);
  }

  mutable Mutex mutex_;
  std::vector<std::shared_ptr<Watcher>> watchers_ GUARDED_BY(mutex_);
  Numbered newest_ GUARDED_BY(mutex_);
  bool closed_ GUARDED_BY(mutex_) = false;
};

}  // namespace neuron
