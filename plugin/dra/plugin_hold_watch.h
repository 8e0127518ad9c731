#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "agent/base/mutex.h"
#include "plugin/dra/plugin_holders.h"

namespace neuron::plugin::dra {

// Looks what containers hold through a device plugin: before anything is published, then often while they hold
// something, and now and then otherwise. Thread-safe.
class PluginHoldWatch {
 public:
  static constexpr std::chrono::seconds kWhileHeld{10};
  static constexpr std::chrono::seconds kOtherwise{60};
  static constexpr std::chrono::seconds kRetry{1};
  // A kubelet that took the driver answers this, too. If it does not, twice or for so long, slices are better than
  // none.
  static constexpr std::chrono::seconds kPatience{10};
  static constexpr int kMostFailures = 2;

  struct Ports {
    std::function<Result<std::vector<model::Allocation>>()> listed;  // may block, up to a deadline of its own
    std::function<grant::NodeUnitsPtr()> node;                       // of the newest scan; nullptr before the first
    std::function<void()> changed;                                   // holders() is something else now
    std::string driver{};                                            // whose claims are not meant: ours
  };
  // `patience`: from the time that the kubelet took the driver, how long await_first() waits for what is held.
  explicit PluginHoldWatch(Ports ports, std::chrono::milliseconds patience = kPatience)
      : ports_(std::move(ports)), patience_(patience) {}

  void registered() EXCLUDES(mutex_);  // the kubelet took the driver
  [[nodiscard]] PluginHolders holders() const EXCLUDES(mutex_);

  // Blocks until the kubelet has taken the driver and has said what is held. For the first there is no bound: pods that
  // the scheduler sends to a node whose kubelet has no driver wait for a minute and more, and readiness says so
  // meanwhile. For the second there is: `patience`. False: a stop was requested first.
  [[nodiscard]] bool await_first(const std::stop_token& stop) EXCLUDES(mutex_);
  // Until `stop` is requested. One thread.
  void run(const std::stop_token& stop) EXCLUDES(mutex_);

  // What run() does again and again: asks, and says when to ask again. For tests, without a thread.
  [[nodiscard]] std::chrono::milliseconds turn() EXCLUDES(mutex_);

 private:
  // Until the flag is set, if one is given, a stop is requested, or that time has passed.
  void wait(const std::stop_token& stop, std::chrono::milliseconds longest, bool PluginHoldWatch::*flag = nullptr)
      EXCLUDES(mutex_);

  void tell_known() EXCLUDES(mutex_);

  const Ports ports_;
  const std::chrono::milliseconds patience_;
  std::string last_error_;  // of the thread in run(), as logged
  int failures_ = 0;        // the same; in a row
  mutable Mutex mutex_;
  std::condition_variable_any changed_;
  bool registered_ GUARDED_BY(mutex_) = false;
  bool known_ GUARDED_BY(mutex_) = false;  // what is held, once at least
  PluginHolders holders_ GUARDED_BY(mutex_);
};

}  // namespace neuron::plugin::dra
