#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "agent/base/mutex.h"
#include "plugin/device/unit_list.h"

namespace neuron::plugin {

// Whoever watches one resource. Called without the hub's lock, from any thread; must not block.
class WatchSink {
 public:
  virtual ~WatchSink() = default;
  // A newer state than every one before it; may replace one that was not delivered yet. One call at a time, which must
  // not lead back into publish().
  virtual void offer(UnitListPtr units) = 0;
  virtual void stop() = 0;  // the hub is closed: end soon
};

// Hands the newest list of one resource to every watcher. A watcher may miss a step, never the last word, whichever
// threads publish and add at once. All methods from any thread.
class WatchHub {
 public:
  // The sink is offered the newest list at once, or stopped at once when the hub is closed.
  void add(std::shared_ptr<WatchSink> sink) EXCLUDES(mutex_);
  void remove(const WatchSink* sink) EXCLUDES(mutex_);
  void publish(UnitListPtr units) EXCLUDES(mutex_);
  void stop_watchers() EXCLUDES(mutex_);  // stops every sink that is there now; later ones are welcome
  void close() EXCLUDES(mutex_);          // stops every sink, now and later; idempotent
  [[nodiscard]] std::size_t watchers() const EXCLUDES(mutex_);

 private:
  struct Watcher;  // a sink and how far it is
  struct Numbered {
    UnitListPtr units;
    std::uint64_t number = 0;  // counts publish()
  };

  mutable Mutex mutex_;
  std::vector<std::shared_ptr<Watcher>> watchers_ GUARDED_BY(mutex_);
  Numbered newest_ GUARDED_BY(mutex_);
  bool closed_ GUARDED_BY(mutex_) = false;
};

}  // namespace neuron::plugin
