#pragma once

#include <memory>
#include <string>
#include <vector>

#include "agent/base/mutex.h"

namespace neuron::monitor {

// One unit of a resource as watchers see it.
struct UnitState {
  std::string id;
  bool healthy = true;
  std::vector<int> numa_nodes;  // empty: unknown; never contains -1
  friend bool operator==(const UnitState&, const UnitState&) = default;
};

using UnitList = std::vector<UnitState>;
using UnitListPtr = std::shared_ptr<const UnitList>;

// Whoever watches one resource. Called without the hub's lock, from any thread; must not block.
class WatchSink {
 public:
  virtual ~WatchSink() = default;
  virtual void offer(UnitListPtr units) = 0;  // the newest state; may replace one that was not delivered yet
  virtual void stop() = 0;                    // the hub is closed: end soon
};

// Hands the newest list of one resource to every watcher. A watcher may miss a step, never the last word. All methods
// from any thread; offers to one sink come in the order of publish when publish is called from one thread.
class WatchHub {
 public:
  // The sink is offered the newest list at once, or stopped at once when the hub is closed.
  void add(std::shared_ptr<WatchSink> sink) EXCLUDES(mutex_);
  void remove(const WatchSink* sink) EXCLUDES(mutex_);
  void publish(UnitListPtr units) EXCLUDES(mutex_);
  void close() EXCLUDES(mutex_);  // stops every sink, now and later; idempotent
  [[nodiscard]] std::size_t watchers() const EXCLUDES(mutex_);

 private:
  mutable Mutex mutex_;
  std::vector<std::shared_ptr<WatchSink>> sinks_ GUARDED_BY(mutex_);
  UnitListPtr newest_ GUARDED_BY(mutex_);
  bool closed_ GUARDED_BY(mutex_) = false;
};

}  // namespace neuron::monitor
