#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "agent/base/clock.h"
#include "agent/base/mutex.h"
#include "agent/grant/grant.h"
#include "agent/kube/api.h"
#include "plugin/dra/claim/claim_record.h"
#include "plugin/dra/claim/claim_request.h"
#include "plugin/dra/claim/claim_shares.h"
#include "plugin/dra/claim/plugin_holders.h"
#include "plugin/kubelet/memory_gate.h"

namespace neuron::plugin::dra {

// A scan of the node that all waiting calls share, on a thread that may hang in a broken driver: one at a time, so that
// retried calls do not take thread upon thread. Thread-safe.
class SharedScan {
 public:
  using Scan = std::function<grant::NodeUnitsPtr()>;       // may never return
  using Run = std::function<void(std::function<void()>)>;  // on a thread that may hang
  static constexpr std::chrono::milliseconds kPatience{3000};

  // Objects that `scan` refers to must outlive every job of `run`. An empty `scan` finds nothing.
  SharedScan(Scan scan, Run run, std::chrono::milliseconds patience = kPatience);

  // Returns the units of a scan that begins now, or of the one that is under way; nullptr when that does not end within
  // the patience from its beginning. While one hangs, that is at once. Blocks.
  [[nodiscard]] grant::NodeUnitsPtr operator()();

 private:
  struct State;
  const Scan scan_;
  const Run run_;
  const std::chrono::milliseconds patience_;
  const std::shared_ptr<State> state_;  // shared with a job that hangs
};

// The pods of prepared claims whose grace periods are recorded, so that each is read once. Thread-safe.
class PodsRead {
 public:
  // The claim with the pods that were not read yet. Groups name no pods; theirs are the same, and were read at first.
  [[nodiscard]] ResourceClaim unread(ResourceClaim claim) const EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    claim.other_consumers.clear();
    if (const auto known = uids_.find(claim.uid); known != uids_.end()) {
      std::erase_if(claim.pods, [&](const PodRef& pod) { return known->second.contains(pod.uid); });
    }
    return claim;
  }
  void add(const ResourceClaim& claim) EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    for (const PodRef& pod : claim.pods) uids_[claim.uid].insert(pod.uid);
  }
  void forget(const std::string& uid) EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    uids_.erase(uid);
  }

 private:
  mutable Mutex mutex_;
  std::map<std::string, std::set<std::string>> uids_ GUARDED_BY(mutex_);  // of pods, by the claim's
};

// The answers of the gate, in their order.
class GateAnswers {
 public:
  using Answer = std::pair<std::size_t, std::optional<Error>>;  // of which claim, and why not

  void add(Answer answer) EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    answers_.push_back(std::move(answer));
    changed_.notify_all();
  }
  // Since the last call; waits for one at least.
  [[nodiscard]] std::vector<Answer> take() EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    while (answers_.empty()) changed_.wait(mutex_);
    return std::exchange(answers_, {});
  }

 private:
  Mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<Answer> answers_ GUARDED_BY(mutex_);
};

// Prepares and releases claims of this node. Prepared claims are in files alone (RecordStore), so that another instance
// of the driver, or this one after a crash, continues with them. Thread-safe; no lock is held while the API server is
// asked or memory is waited for, so no claim waits for another one.
class ClaimPreparer final : public ClaimCalls {
 public:
  struct Settings {
    std::string driver;  // "neuron.aws.com"
    std::string pool;    // this node's: its name
    grant::GrantOptions grant;
    UnhealthyTaint taint;  // as the pool has it
  };
  // Called from any thread. Objects that the functions refer to must outlive the preparer and every job of `run` and
  // `post`.
  struct Ports {
    std::function<grant::NodeUnitsPtr()> node;  // of the newest snapshot; nullptr before the first
    // Returns the units of a scan that begins now, for a device that was found since; on a thread of `run`, where it
    // may hang. Units that are unhealthy by `node` stay so. Empty: none.
    std::function<grant::NodeUnitsPtr()> scan;
    std::function<std::optional<std::uint64_t>(int device, int physical_core)> memory_in_use;  // as MemoryGate::Ports
    std::function<void(MemoryGate::Job)> run;
    std::function<void(SteadyTime, MemoryGate::Job)> post;
    // Must not block. Errors: unavailable while they are not known.
    std::function<Result<PluginHolders>()> plugin_holders = [] { return PluginHolders(); };
    // Every pod that the kubelet has here, also one that holds nothing yet: which pods of a group may use a claim. May
    // block. Empty: not known.
    PodsOfClaims::Here pods{};
  };

  // `store`, `api` and `clock` must outlive the preparer and every job that they were given to run.
  ClaimPreparer(Settings settings, Ports ports, RecordStore& store, kube::Api& api, const Clock& clock);

  // A claim that is prepared is answered as before, and its CDI file is there again; without the API server too. Else
  // its allocation is read, checked against this node and what other claims hold, leftovers of other containers are
  // waited for (MemoryGate::kTimeout), and then it is recorded with its CDI file. Cores of shares that another instance
  // has given away meanwhile are chosen again, a few times.
  [[nodiscard]] std::map<std::string, PrepareAnswer> prepare(const std::vector<ClaimRef>& claims,
                                                             const std::stop_token& stop) override;
  // Needs no API server, no driver and no device.
  [[nodiscard]] std::map<std::string, std::string> unprepare(const std::vector<ClaimRef>& claims) override;

 private:
  struct Pending;  // one claim of a call
  struct Call;

  [[nodiscard]] Result<void> read(Call& call, Pending& pending, const std::stop_token& stop);
  void learn_grace(Call& call, const ClaimRef& ref, const ResourceClaim& claim, const std::stop_token& stop);
  [[nodiscard]] Result<void> answer_again(Pending& pending);
  [[nodiscard]] Result<void> plan(Call& call, Pending& pending);
  [[nodiscard]] Result<ChosenShares> choose(const Call& call, const Pending& pending, const grant::NodeUnits& node);
  [[nodiscard]] Result<ClaimPlan> plan_by(const Call& call, const Pending& pending, const grant::NodeUnits& node);
  [[nodiscard]] Result<void> read_pods(Call& call, Pending& pending, const std::stop_token& stop);
  [[nodiscard]] Result<void> name_rebuilt(Call& call, const Pending& pending);
  [[nodiscard]] Result<void> grant(const Call& call, Pending& pending);
  void wait_and_commit(Call& call, const std::stop_token& stop);
  [[nodiscard]] static bool begin_anew(Call& call);
  void log_change(const Pending& pending) EXCLUDES(mutex_);

  const Settings settings_;
  const Ports ports_;
  RecordStore& store_;
  ClaimReader reader_;
  SharedScan scan_;
  ShareReservations reservations_;
  PodsRead pods_read_;
  std::atomic<std::uint64_t> calls_{0};

  Mutex mutex_;
  std::map<std::string, std::string> last_error_ GUARDED_BY(mutex_);  // by uid, as last logged

  MemoryGate gate_;
};

}  // namespace neuron::plugin::dra
