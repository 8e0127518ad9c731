#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "agent/base/clock.h"
#include "agent/base/workers.h"
#include "agent/model/host_scan.h"
#include "agent/model/usage.h"

namespace neuron::monitor {

// Runs scans one after another on a worker, each for a bounded time: a part of the machine whose read hangs in a broken
// driver is given up together with its thread and scanner, and a new scanner reads the rest. When the old thread
// returns, the next scan reads the part again. So at most one thread hangs per part, and kMaxLeftBehind in all; beyond
// those the scan itself hangs. `Reading`: of a scan, one of those below the class.
//
// begin(), check() and take() on one thread, which none of them blocks.
template <typename Reading>
class WatchedRead {
 public:
  using Scan = std::function<Reading(const model::MayRead&)>;  // on a worker, one call at a time; may block
  using MakeScan = std::function<Scan()>;  // must not block; its results share nothing mutable with one another

  static constexpr int kChecksPerBudget = 8;
  static constexpr std::size_t kMaxLeftBehind = 64;

  using Run = std::function<void(std::function<void()>)>;  // runs a job on a thread that may hang (Workers::run)

  // `on_done`: on the worker, when take() has something. `workers` and objects that `run` refers to must outlive this
  // object.
  WatchedRead(Run run, MakeScan make_scan, std::function<void()> on_done);
  WatchedRead(Workers& workers, MakeScan make_scan, std::function<void()> on_done);
  ~WatchedRead();  // a scan that still runs calls `on_done` no more
  WatchedRead(const WatchedRead&) = delete;
  WatchedRead& operator=(const WatchedRead&) = delete;

  void begin();  // not while a scan runs

  // Call it kChecksPerBudget times per budget while a scan runs: gives up a part whose read takes longer than the
  // budget. Time is counted in these calls, so that a stopped process blames no part. Each further part of the same
  // scan gets half as much, at least an eighth of the budget.
  void check();

  // The scan that has ended, once; with HostScan::unanswered filled in.
  [[nodiscard]] std::optional<Reading> take();

  // Parts left out by the newest ended scan; ascending part.
  [[nodiscard]] std::vector<model::Unanswered> unanswered() const;

 private:
  struct State;
  void run_attempt(std::uint64_t attempt);

  const Run run_;
  MakeScan make_scan_;
  Scan scan_;
  std::shared_ptr<State> state_;
};

extern template class WatchedRead<model::HostScan>;
extern template class WatchedRead<model::UsageSample>;

using WatchedScan = WatchedRead<model::HostScan>;
using WatchedUsage = WatchedRead<model::UsageSample>;

// Scans under watch for programs that wait for them, one at a time.
class BoundedScans {
 public:
  static constexpr std::chrono::milliseconds kBudget{2000};  // for the first part that hangs; less for each more

  // `workers` must outlive it, and keeps the hanging threads: its stop() says whether there are any.
  BoundedScans(Workers& workers, WatchedScan::MakeScan make_scan, std::chrono::milliseconds budget = kBudget);

  // Blocks until the scan has ended, about one budget for one part that hangs and five for sixteen. Hanging parts are
  // left out and named in HostScan::unanswered.
  [[nodiscard]] model::HostScan scan();

 private:
  struct End;
  const std::chrono::milliseconds budget_;
  const std::shared_ptr<End> end_;  // shared with the worker
  WatchedScan scan_;
};

// The two newest samples of the node's use, for rates. The first request starts reading at the interval, until there
// was no request for kWanted. Reads run under watch (watched_scan.h): a device whose read hangs is left out.
// Thread-safe; a read or a timer that is left may outlive this object.
class UsageSampler {
 public:
  static constexpr std::chrono::minutes kWanted{5};
  static constexpr std::chrono::milliseconds kBudget{2000};  // for one part of a sample

  struct Ports {
    WatchedUsage::Run run;                                      // on a thread that may hang
    WatchedUsage::MakeScan make_read;                           // of WatchedRead; what it makes reads one sample
    std::function<bool()> can_read;                             // whether there is anything to read yet
    std::function<void(SteadyTime, std::function<void()>)> at;  // runs a job at that time (Monitor::post)
    // On the thread of `at`, when the parts that are left out have changed.
    std::function<void(const std::vector<model::Unanswered>&)> on_unanswered;
  };
  struct Samples {
    std::shared_ptr<const model::UsageSample> before;  // less than kWanted older than `now`, or nullptr
    std::shared_ptr<const model::UsageSample> now;     // nullptr: there is none yet
  };

  // `clock` must outlive this object and whatever `at` was given.
  UsageSampler(Ports ports, const Clock& clock, std::chrono::milliseconds interval);

  // Never waits for a read. The samples may be as old as the last request but one: UsageSample::at says.
  [[nodiscard]] Samples ask();

 private:
  struct State;
  static void turn(const std::shared_ptr<State>& state);
  static void check(const std::shared_ptr<State>& state);
  static void collect(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;
};

}  // namespace neuron::monitor
