#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "agent/base/fd.h"
#include "plugin/dra/claim_cdi_files.h"
#include "plugin/dra/claim_store.h"
#include "plugin/dra/claim_sweep.h"

namespace neuron::plugin::dra {

// Upkeep of prepared claims besides calls of the kubelet: their CDI files are written again when some were removed or
// the node has changed, and orphaned claims are released.
class ClaimUpkeep {
 public:
  static constexpr std::chrono::seconds kSweepEvery{60};
  static constexpr std::chrono::milliseconds kPause{200};  // between two repairs

  using Run = std::function<void(std::function<void()>)>;  // on a thread that may hang

  // All of them must outlive it and every job of `run`. `changed`: something may have been released; any thread.
  ClaimUpkeep(ClaimStore& store, ClaimSweep& sweep, std::string cdi_directory, Run run, std::function<void()> changed);

  // Until `stop` is requested. Blocks one thread, which only works with files.
  void run(const std::stop_token& stop);

  // A scan shows the node otherwise than before: names of device nodes may have changed. Any thread; never blocks.
  void node_changed();

 private:
  void repair();
  void sweep();

  ClaimStore& store_;
  ClaimSweep& sweep_;
  CdiWatch watch_;
  const Fd changes_;  // eventfd
  const Run run_;
  const std::function<void()> changed_;
  const std::shared_ptr<std::atomic<bool>> sweeping_ = std::make_shared<std::atomic<bool>>(false);
  std::string last_error_;  // of a repair, as logged
};

}  // namespace neuron::plugin::dra
