#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "agent/base/clock.h"
#include "agent/base/workers.h"
#include "agent/health/assess.h"
#include "agent/model/snapshot.h"
#include "agent/monitor/snapshot_store.h"
#include "agent/monitor/watched_scan.h"

namespace neuron::monitor {

// Scans, assesses and publishes, again and again. One thread does all but the scans, which run on `workers` under watch
// (watched_scan.h): a part of the machine that hangs costs the others one budget and then nothing. The same thread runs
// small jobs at their time, between scans and while one runs.
class Monitor {
 public:
  // After publish, when the snapshot is of a new generation, not for a heartbeat or a counter alone. Must not block.
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
