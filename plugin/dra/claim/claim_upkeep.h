#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "agent/base/clock.h"
#include "agent/base/fd.h"
#include "agent/base/mutex.h"
#include "plugin/dra/claim/claim_cdi_files.h"
#include "plugin/dra/claim/claim_store.h"
#include "plugin/dra/claim/claim_sweep.h"
#include "plugin/kubelet/cdi_writer.h"

namespace neuron::plugin::dra {

// Upkeep of prepared claims besides calls of the kubelet: their CDI files are written again when some were removed or
// the node has changed, and orphaned claims are released. All files are read and written by jobs that may hang.
class ClaimUpkeep {
 public:
  static constexpr std::chrono::seconds kSweepEvery{60};
  static constexpr std::chrono::milliseconds kPause{200};  // between two repairs

  using Run = std::function<void(std::function<void()>)>;  // on a thread that may hang

  struct Settings {
    std::string cdi_directory;
    std::string claims_directory;  // for the log
  };
  // All of them must outlive it and every job of `run_repair`, which gets repairs, and of `run_sweep`. `changed`:
  // something may have been released; any thread.
  struct Ports {
    Run run_repair;
    Run run_sweep;
    std::function<void()> changed;
    const Clock& clock;
  };
  ClaimUpkeep(ClaimStore& store, ClaimSweep& sweep, Settings settings, Ports ports);

  // Repairs at once, and then when it is needed, until `stop` is requested. Blocks one thread, which touches no file.
  void run(const std::stop_token& stop);

  // Blocks until the first repair of run() has ended, or for CdiWriter::kPatience: false.
  [[nodiscard]] bool await_first() EXCLUDES(mutex_);

  // A scan shows the node otherwise than before: names of device nodes may have changed. Any thread; never blocks.
  void node_changed();

 private:
  struct Wakeup;  // an eventfd, shared with jobs
  [[nodiscard]] bool begin_repair();
  [[nodiscard]] bool end_repair() EXCLUDES(mutex_);
  [[nodiscard]] bool take_news();
  void sweep();

  ClaimStore& store_;
  ClaimSweep& sweep_;
  const Settings settings_;
  const Ports ports_;
  const std::shared_ptr<Wakeup> changes_;
  const std::shared_ptr<Wakeup> repaired_;
  CdiWriter writer_;
  std::optional<CdiWatch> watch_;                       // of the CDI directory
  std::shared_ptr<std::optional<CdiWatch>> new_watch_;  // of the repair that is under way; null: it opens none
  const std::shared_ptr<std::atomic<bool>> sweeping_ = std::make_shared<std::atomic<bool>>(false);

  Mutex mutex_;
  std::condition_variable_any first_ended_;
  bool has_repaired_ GUARDED_BY(mutex_) = false;
};

}  // namespace neuron::plugin::dra
