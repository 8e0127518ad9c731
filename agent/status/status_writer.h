#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "agent/base/clock.h"
#include "agent/base/mutex.h"
#include "agent/base/turn_loop.h"
#include "agent/kube/limits.h"
#include "agent/model/snapshot.h"
#include "agent/status/node_events.h"
#include "agent/status/node_object.h"
#include "agent/status/status_report.h"

namespace neuron::status {

// Passive data.
struct WriterState {
  bool current = false;      // the server has the newest report
  std::string error;         // why not; "" = none
  std::uint64_t writes = 0;  // of labels and conditions, since the start
  friend bool operator==(const WriterState&, const WriterState&) = default;
};

// Keeps labels and conditions of this node's object at the API server as of the newest snapshot, and writes events.
// Writes only differences from its last write, or from the node as read: at the start, every kReadInterval, and after a
// refused write. So an idle node costs one GET and one PATCH (the heartbeat of the conditions) every kReadInterval.
// lastTransitionTime changes with the status alone, also across restarts of the agent. A condition, or a label that is
// not below kOwnPrefix, is left to another manager for as long as that owns it.
//
// The first call comes at a time within kSpread after the start that the node's name decides, or at once where the
// report has a problem.
//
// set() and state() from any thread; they never wait for the server. run() blocks one thread.
class StatusWriter {
 public:
  struct Settings {
    std::string node;
    ReportSettings report{};
    std::optional<StartupTaint> startup_taint{};
    std::function<WallTime()> wall = [] { return std::chrono::system_clock::now(); };
    unsigned seed = std::random_device{}();
  };
  static constexpr std::chrono::seconds kSpread{60};
  static constexpr std::chrono::minutes kReadInterval{30};  // a tenth more or less by chance
  static constexpr std::chrono::minutes kMessagePause{5};   // between writes of another message of the same condition
  static constexpr int kBurst = 6;                          // writes of another state at once,
  static constexpr std::chrono::seconds kStatePause{30};    // and one in this time on average
  static constexpr std::chrono::milliseconds kFirstRetry{1000}, kLongestRetry{60'000};
  static constexpr std::chrono::minutes kRefusedRetry{5};  // 401, 403, 400, 422: an administrator has to act

  StatusWriter(kube::Api& api, Settings settings, const Clock& clock);

  // The newest state; replaces one that is not written yet, but none of its events.
  void set(const model::SnapshotPtr& snapshot) EXCLUDES(mutex_);
  // All resources of the node, or its driver, are registered under these names: the startup taint may go.
  void set_registered(std::vector<std::string> names) EXCLUDES(mutex_);
  [[nodiscard]] WriterState state() const EXCLUDES(mutex_);

  // Until `stop` is requested and a call in flight has ended (ApiClient::close() ends it).
  void run(const std::stop_token& stop);

  // One step of run(): does what is due; the time until the next. For tests.
  [[nodiscard]] std::chrono::milliseconds turn() EXCLUDES(mutex_);

 private:
  using ReportPtr = std::shared_ptr<const StatusReport>;

  // The part of a report that is to be written, given what others own.
  struct Wanted {
    std::map<std::string, std::string> labels;
    std::vector<Condition> conditions;
    Force force = Force::no;  // of labels
  };
  enum class Change { none, words, state };  // words: a message alone

  [[nodiscard]] std::chrono::milliseconds turn_report() EXCLUDES(mutex_);
  [[nodiscard]] Wanted wanted_of(const StatusReport& report) const;
  [[nodiscard]] Change change_of(const Wanted& wanted) const;
  [[nodiscard]] SteadyTime due(const StatusReport& report, SteadyTime now) const;
  void update(const StatusReport& report, SteadyTime now);
  [[nodiscard]] Result<void> refresh(const StatusReport& report, SteadyTime now);
  void take_over(const SeenNode& seen, const StatusReport& report);
  void log_shared(const StatusReport& report);
  [[nodiscard]] Result<void> write_labels(const Wanted& wanted);
  [[nodiscard]] Result<void> write_conditions(const Wanted& wanted, SteadyTime now);
  void write_events(SteadyTime now) EXCLUDES(mutex_);
  void finish(const Result<void>& written, SteadyTime now) EXCLUDES(mutex_);
  [[nodiscard]] std::chrono::milliseconds retry_after(const Error& error, kube::Backoff& backoff) const;

  kube::Api& api_;
  const Settings settings_;
  const Clock& clock_;
  const SteadyTime starts_;

  // For the thread in run().
  kube::Backoff backoff_;
  kube::Backoff events_backoff_;
  EventWriter event_writer_;
  StartupGate gate_;
  std::minstd_rand chance_;
  std::optional<SeenNode> seen_;                              // nullopt: has to be read first
  std::optional<std::map<std::string, std::string>> labels_;  // the agent's at the server; nullopt: unknown
  std::optional<std::vector<TimedCondition>> conditions_;     // likewise
  std::set<std::string> left_;                                // left to others, as logged last
  SteadyTime read_at_{};
  SteadyTime not_before_{};         // after a failure
  SteadyTime events_not_before_{};  // the same for events
  SteadyTime words_at_{};           // when another message may be written
  kube::TokenBucket bucket_{kStatePause, kBurst};
  bool heartbeat_ = false;    // conditions are written without a difference
  std::string events_error_;  // logged last

  TurnLoop loop_;
  mutable Mutex mutex_;
  model::SnapshotPtr newest_ GUARDED_BY(mutex_);
  ReportPtr report_ GUARDED_BY(mutex_);                     // of newest_
  std::vector<std::string> registered_ GUARDED_BY(mutex_);  // empty: not yet
  OpenFaults open_faults_ GUARDED_BY(mutex_);
  PendingEvents events_ GUARDED_BY(mutex_);
  WriterState state_ GUARDED_BY(mutex_);
};

// Delay from the start to the first call of an agent on that node, without a problem. Pure.
[[nodiscard]] std::chrono::milliseconds spread_of(const std::string& node, std::chrono::milliseconds over);

}  // namespace neuron::status
