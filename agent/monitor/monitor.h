#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <queue>
#include <vector>

#include "agent/base/clock.h"
#include "agent/base/mutex.h"
#include "agent/core/assess.h"
#include "agent/model/snapshot.h"
#include "agent/monitor/snapshot_store.h"

namespace neuron::monitor {

// The one worker thread: scan, judge, publish, again; between scans it runs small jobs that read the machine, so that
// no RPC ever does. It may hang inside a broken driver; everybody else goes on with the newest snapshot, and stop()
// gives up on it after its deadline.
class Monitor {
 public:
  using Scan = std::function<model::HostScan()>;  // may block; called on the worker only
  using OnChange =
      std::function<void(const model::SnapshotPtr&)>;  // on the worker, after publish, when something changed

  // `store` must outlive the monitor, unless stop() returned false.
  Monitor(SnapshotStore& store, Scan scan, OnChange on_change, std::chrono::milliseconds interval);
  ~Monitor();  // stop(); a worker that hangs keeps what it needs alive
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  // One scan on the caller's thread, before start(): the first snapshot. Publishes always.
  void tick();

  void start();
  void rescan_now();                                            // any thread
  void post(SteadyTime when, std::function<void()> job);        // any thread; runs on the worker at or after `when`
  [[nodiscard]] bool stop(std::chrono::milliseconds deadline);  // false: the worker hangs and was left behind

 private:
  struct Worker;
  std::shared_ptr<Worker> worker_;
};

}  // namespace neuron::monitor
