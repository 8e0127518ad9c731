#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "agent/base/workers.h"
#include "agent/model/host_scan.h"

namespace neuron::monitor {

// Runs scans one after another on a worker and makes each come to an end: a part of the machine whose read hangs in a
// broken driver is given up together with the thread and the scanner that read it, and a new scanner reads the rest.
// When the old thread returns, the next scan reads the part again. So at most one thread hangs per part, and
// kMaxLeftBehind in all; beyond those the scan itself hangs.
//
// begin(), check() and take() on one thread, which none of them blocks.
class WatchedScan {
 public:
  // Asked before each part; false leaves it out, as all that follows once the scan was given up.
  using MayRead = std::function<bool(const model::ScanPart&)>;
  using Scan = std::function<model::HostScan(const MayRead&)>;  // on a worker, one call at a time; may block
  using MakeScan = std::function<Scan()>;  // must not block; what it makes shares nothing mutable with earlier ones

  static constexpr int kChecksPerBudget = 8;
  static constexpr std::size_t kMaxLeftBehind = 64;

  // `on_done`: on the worker, when take() has something. `workers` must outlive this object.
  WatchedScan(Workers& workers, MakeScan make_scan, std::function<void()> on_done);
  ~WatchedScan();  // a scan that still runs calls `on_done` no more

  void begin();  // not while a scan runs

  // To be called kChecksPerBudget times per budget while a scan runs: a part whose read takes longer than the budget is
  // given up. Time is counted in these calls, so that no part is blamed when the whole process was stopped. After the
  // first one, the other parts of the same scan get less, at least an eighth of the budget, so that a driver that hangs
  // everywhere does not hold up the rest for half a minute.
  void check();

  // The scan that has ended, with `unanswered` filled in: once.
  [[nodiscard]] std::optional<model::HostScan> take();

 private:
  struct State;
  void run_attempt(std::uint64_t attempt);

  Workers& workers_;
  MakeScan make_scan_;
  Scan scan_;
  std::shared_ptr<State> state_;
};

}  // namespace neuron::monitor
