#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "agent/base/clock.h"
#include "agent/base/mutex.h"
#include "agent/holdings/listed_holders.h"
#include "plugin/dra/claim/plugin_holders.h"

namespace neuron::plugin::dra {

// Asks the kubelet what containers hold through a device plugin, or by claims of another driver such as this one under
// its earlier name: before anything is published, then often while they hold something, and now and then otherwise.
// PodResources List is the only source: the pod of the driver sees no directory but its own. Thread-safe.
class PluginHoldWatch {
 public:
  static constexpr std::chrono::seconds kWhileHeld{10};
  static constexpr std::chrono::seconds kOtherwise{60};
  static constexpr std::chrono::seconds kRetry{1};  // also while an answer leaves out what was held
  static constexpr int kMostRetries = 10;           // failures in a row; then it is asked every kWhileHeld
  // An instance of an earlier name may prepare claims beside this one while it is being replaced, or shortly after.
  static constexpr std::chrono::seconds kNew{120};  // so long it is asked every kWhileHeld from the start on
  // A kubelet that took the driver answers this, too. If it does not for so long, slices are better than none.
  static constexpr std::chrono::seconds kPatience{10};

  struct Ports {
    std::function<Result<std::vector<model::Allocation>>()> listed;  // may block, up to a deadline of its own
    std::function<grant::NodeUnitsPtr()> node;                       // of the newest scan; nullptr before the first
    std::function<void()> changed;                                   // holders() is something else now
    std::string driver{};                                            // whose claims are not meant: ours
    // The device plugin's entries in the kubelet's checkpoint, for a kubelet that has just started and lists nothing
    // yet; none when there is no checkpoint. May block, up to a deadline of its own. Empty: there are none.
    std::function<Result<std::vector<model::Allocation>>()> stored{};
    std::string own_pod{};  // see holdings::ListedHolders
    std::function<SteadyTime()> now = [] { return std::chrono::steady_clock::now(); };
  };
  // `patience`: from the time that the driver registered, how long await_first() waits for the holdings.
  explicit PluginHoldWatch(Ports ports, std::chrono::milliseconds patience = kPatience)
      : ports_(std::move(ports)), patience_(patience), held_(ports_.own_pod) {}

  void registered() EXCLUDES(mutex_);  // the driver registered
  [[nodiscard]] PluginHolders holders() const EXCLUDES(mutex_);

  // Blocks until the kubelet has registered the driver and listed the holdings. For the first there is no bound: pods
  // that the scheduler sends to a node whose kubelet has no driver wait for a minute and more, and readiness says so
  // meanwhile. For the second there is: `patience`. False: a stop was requested first.
  [[nodiscard]] bool await_first(const std::stop_token& stop) EXCLUDES(mutex_);
  // Until `stop` is requested. One thread.
  void run(const std::stop_token& stop) EXCLUDES(mutex_);

  // One turn of run(): asks, and returns the time until the next one. For tests, without a thread.
  [[nodiscard]] std::chrono::milliseconds turn() EXCLUDES(mutex_);

 private:
  // Until the flag is set, if one is given, a stop is requested, or that time has passed.
  void wait(const std::stop_token& stop, std::chrono::milliseconds longest, bool PluginHoldWatch::*flag = nullptr)
      EXCLUDES(mutex_);

  // The same of the thread in run():
  void learn_stored();
  [[nodiscard]] bool ask();  // false: no answer
  void apply(const grant::NodeUnits& node) EXCLUDES(mutex_);
  void set_known() EXCLUDES(mutex_);

  const Ports ports_;
  const std::chrono::milliseconds patience_;
  // Of the thread in run():
  holdings::ListedHolders held_;
  std::optional<SteadyTime> began_;
  bool stored_known_ = false;
  std::string stored_error_;  // as logged
  std::string last_error_;    // as logged
  int failures_ = 0;          // in a row

  mutable Mutex mutex_;
  std::condition_variable_any changed_;
  bool registered_ GUARDED_BY(mutex_) = false;
  bool known_ GUARDED_BY(mutex_) = false;  // what is held, once at least
  PluginHolders holders_ GUARDED_BY(mutex_);
};

}  // namespace neuron::plugin::dra
