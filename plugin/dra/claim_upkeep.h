#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "plugin/dra/claim_cdi_files.h"
#include "plugin/dra/claim_store.h"
#include "plugin/dra/claim_sweep.h"

namespace neuron::plugin::dra {

// What claims need now and then besides calls of the kubelet: their CDI files written again when somebody has removed
// some, and a look for claims that nobody is going to release.
class ClaimUpkeep {
 public:
  static constexpr std::chrono::seconds kSweepEvery{60};
  static constexpr std::chrono::milliseconds kPause{200};  // between two repairs

  using Run = std::function<void(std::function<void()>)>;  // on a thread that may hang

  // All of them must outlive it and every job of `run`. `changed`: something may have been released; any thread.
  ClaimUpkeep(ClaimStore& store, ClaimSweep& sweep, std::string cdi_directory, Run run, std::function<void()> changed);

  // Until `stop` is requested. Blocks one thread; asks nobody but the file system on it.
  void run(const std::stop_token& stop);

 private:
  void repair();
  void sweep();

  ClaimStore& store_;
  ClaimSweep& sweep_;
  CdiWatch watch_;
  const Run run_;
  const std::function<void()> changed_;
  const std::shared_ptr<std::atomic<bool>> sweeping_ = std::make_shared<std::atomic<bool>>(false);
  std::string last_error_;  // of a repair, as logged
};

}  // namespace neuron::plugin::dra
