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
#include "agent/base/result.h"
#include "agent/grant/grant.h"
#include "agent/holdings/listed_holders.h"
#include "agent/model/allocation.h"
#include "plugin/dra/claim/claim_plan.h"
#include "plugin/dra/slices/pool.h"
#include "plugin/kubelet/checkpoint.h"

// Hardware that containers hold through a device plugin on a node that now serves claims: pods that ran before the
// change continue (docs/dra.md#moving-over). Neither claims nor schedulers know of it, so the pool is tainted and
// Prepare refuses it until they end. The same of claims of another driver whose devices have this driver's names, as
// after a rename.
namespace neuron::plugin::dra {

struct PluginHolder {
  std::string container;  // "namespace/pod/container", or "pod <uid>/container"
  std::string resource;   // "aws.amazon.com/neuron"; of a claim its driver
  bool is_claim = false;
  Hardware hardware;
  friend bool operator==(const PluginHolder&, const PluginHolder&) = default;
};
using PluginHolders = std::vector<PluginHolder>;

// Reads two kinds of holders from the kubelet's list: those of this agent's resources, with ids that this node may
// have, also for devices that the scan lacks; and claims of another driver than `driver`, with devices whose names are
// those of this driver's pool. Core ids are of the LNC that `numbering` shows; where it shows none, of every LNC that
// the devices support. In the order of the list. Pure.
[[nodiscard]] PluginHolders plugin_holders(const grant::NodeUnits& node, const std::vector<model::Allocation>& listed,
                                           const std::string& driver, const core::NumberingEvidence& numbering = {});

// Taints whatever of the pool overlaps with what they hold, NoSchedule, with "<driver>/held=device-plugin" or
// "=other-driver"; for a server that keeps no taints such a device counts as unhealthy, and is left out. Pure.
void taint_held(Pool& pool, const grant::NodeUnits& node, const PluginHolders& holders, const std::string& driver);

// failed_precondition when one of them has some of the hardware, naming the holder, for the event of the pod. Pure.
[[nodiscard]] std::optional<Error> conflict(const PluginHolders& holders, const Hardware& hardware);

// Asks the kubelet what containers hold through a device plugin, or by claims of another driver such as this one under
// its earlier name: after the first scan, again when the kubelet registers the driver, then often while they hold
// something, and now and then otherwise. Until it is known nothing is published and no claim prepared. Sources:
// PodResources List and, until that answers, the kubelet's checkpoint. Thread-safe.
class PluginHoldWatch {
 public:
  static constexpr std::chrono::seconds kWhileHeld{10};
  static constexpr std::chrono::seconds kOtherwise{60};
  static constexpr std::chrono::seconds kRetry{1};  // also while an answer leaves out what was held
  static constexpr int kMostRetries = 10;           // failures in a row; then it is asked every kWhileHeld
  // An instance of an earlier name may prepare claims beside this one while it is being replaced, or shortly after.
  static constexpr std::chrono::seconds kNew{120};  // so long it is asked every kWhileHeld from the start on
  // A kubelet that has registered the driver answers this, too. After this time slices are published without an answer.
  static constexpr std::chrono::seconds kPatience{10};

  struct Ports {
    std::function<Result<std::vector<model::Allocation>>()> listed;  // may block, up to a deadline of its own
    std::function<grant::NodeUnitsPtr()> node;                       // of the newest snapshot; nullptr before the first
    std::function<void()> changed;                                   // holders() is something else now
    std::string driver{};                                            // this driver; its claims are skipped
    // The device plugin's entries in the kubelet's checkpoint, for a kubelet that has just started and lists nothing
    // yet, and how their cores are numbered; none when there is no checkpoint. May block, up to a deadline of its own.
    // Empty: there are none.
    std::function<Result<Checkpoint>()> stored{};
    std::string own_pod{};          // see holdings::ListedHolders
    std::function<void()> asked{};  // once: the kubelet has answered, or failed to. May be empty
    std::function<SteadyTime()> now = [] { return std::chrono::steady_clock::now(); };
  };
  // `patience`: from the time that the driver registered, how long await_first() and known_holders() want the holdings.
  explicit PluginHoldWatch(Ports ports, std::chrono::milliseconds patience = kPatience)
      : ports_(std::move(ports)), patience_(patience), held_(ports_.own_pod) {}

  void scanned() EXCLUDES(mutex_);     // Ports::node has one; run() does not ask before
  void registered() EXCLUDES(mutex_);  // the driver registered
  [[nodiscard]] PluginHolders holders() const EXCLUDES(mutex_);
  // For what must not be given twice. Errors: unavailable while it is not known what is held, but not after the
  // patience.
  [[nodiscard]] Result<PluginHolders> known_holders() const EXCLUDES(mutex_);

  // Blocks until the kubelet has registered the driver, a stop is requested, or so long. Whether it has.
  [[nodiscard]] bool await_registered(const std::stop_token& stop, std::chrono::milliseconds longest) EXCLUDES(mutex_);
  // Blocks until the kubelet has registered the driver and listed the holdings. For the first there is no bound: pods
  // that the scheduler sends to a node whose kubelet has no driver wait for a minute and more, and readiness shows it
  // meanwhile. For the second there is: `patience`. False: a stop was requested first.
  [[nodiscard]] bool await_first(const std::stop_token& stop) EXCLUDES(mutex_);
  // Until `stop` is requested. One thread.
  void run(const std::stop_token& stop) EXCLUDES(mutex_);

  // One turn of run(): asks; the time until the next. For tests, without a thread.
  [[nodiscard]] std::chrono::milliseconds turn() EXCLUDES(mutex_);

 private:
  // Until the flag is set, if one is given, a stop is requested, or that time has passed.
  void wait(const std::stop_token& stop, std::chrono::milliseconds longest, bool PluginHoldWatch::*flag = nullptr)
      EXCLUDES(mutex_);

  // Functions of the thread in run():
  void learn_stored();
  [[nodiscard]] std::chrono::milliseconds ask_and_apply(const grant::NodeUnits& node) EXCLUDES(mutex_);
  [[nodiscard]] bool ask() EXCLUDES(mutex_);  // false: no answer
  void apply(const grant::NodeUnits& node) EXCLUDES(mutex_);

  const Ports ports_;
  const std::chrono::milliseconds patience_;
  // Members of the thread in run():
  holdings::ListedHolders held_;
  std::optional<SteadyTime> began_;
  core::NumberingEvidence numbering_;
  bool stored_known_ = false;
  std::string stored_error_;  // as logged
  std::string last_error_;    // as logged
  int failures_ = 0;          // in a row
  bool has_asked_ = false;

  mutable Mutex mutex_;
  std::condition_variable_any changed_;
  bool scanned_ GUARDED_BY(mutex_) = false;
  bool registered_ GUARDED_BY(mutex_) = false;
  SteadyTime registered_at_ GUARDED_BY(mutex_){};
  bool due_ GUARDED_BY(mutex_) = false;    // run() asks without delay
  bool known_ GUARDED_BY(mutex_) = false;  // what is held, once at least
  PluginHolders holders_ GUARDED_BY(mutex_);
};

}  // namespace neuron::plugin::dra
