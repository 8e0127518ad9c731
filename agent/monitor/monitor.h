#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "agent/base/clock.h"
#include "agent/base/mutex.h"
#include "agent/base/workers.h"
#include "agent/health/assess.h"
#include "agent/model/snapshot.h"
#include "agent/monitor/watched_scan.h"

namespace neuron::monitor {

// The newest snapshot. One writer (the monitor), any number of readers; the lock covers a pointer copy only.
class SnapshotStore {
 public:
  // nullptr until the first publish.
  [[nodiscard]] model::SnapshotPtr newest() const EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return newest_;
  }
  void publish(model::SnapshotPtr snapshot) EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    newest_.swap(snapshot);
  }

 private:
  mutable Mutex mutex_;
  model::SnapshotPtr newest_ GUARDED_BY(mutex_);
};

// Scans, assesses and publishes, again and again, on one thread; scans run on `workers` under watch (watched_scan.h),
// so a part of the machine that hangs delays the others by one budget, once. The thread also runs small jobs at given
// times, also during a scan.
class Monitor {
 public:
  // After publish, for a new generation only: heartbeats and counters do not make one. Must not block.
  using OnChange = std::function<void(const model::SnapshotPtr&)>;

  struct Timing {
    std::chrono::milliseconds interval{5000};  // between the end of a scan and the next one
    std::chrono::milliseconds budget{2000};    // for one part of a scan
  };

  // `store` and `workers` must outlive the monitor, unless stop() returned false.
  Monitor(SnapshotStore& store, Workers& workers, WatchedScan::MakeScan make_scan, OnChange on_change, Timing timing);
  ~Monitor();  // stop()
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  void start();                                                 // scans at once
  void rescan_now();                                            // any thread
  void post(SteadyTime when, std::function<void()> job);        // any thread; runs at or after `when`; must not block
  [[nodiscard]] bool stop(std::chrono::milliseconds deadline);  // of the thread, not of the scan; false: it hangs

 private:
  struct Loop;
  std::shared_ptr<Loop> loop_;
};

}  // namespace neuron::monitor
