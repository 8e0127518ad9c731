#pragma once

#include <chrono>
#include <condition_variable>
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
#include "agent/kube/limits.h"
#include "agent/model/snapshot.h"
#include "agent/status/node_apply.h"
#include "agent/status/node_report.h"
#include "agent/status/told_events.h"

namespace neuron::status {

// How far telling is. Passive data.
struct WriterState {
  bool told = false;         // the server shows what is known here
  std::string error;         // why not; "" = nothing
  std::uint64_t writes = 0;  // of labels and conditions, since the start
  friend bool operator==(const WriterState&, const WriterState&) = default;
};

// Keeps labels and conditions of this node's object at the API server as the newest snapshot has it, and tells events.
// Writes only what differs from what it wrote last, or from what it finds when it looks: at the start, every kLook, and
// after a write that was refused. So an idle node costs one GET and one PATCH (the heartbeat of the conditions) every
// kLook. lastTransitionTime moves with the status alone, over restarts of the agent too. What somebody else owns (a
// condition, a label that is not below kOwnPrefix) is left to them for as long as they do.
//
// The first call comes at a time within kSpread after the start that the node's name decides, or at once where the
// report has a problem.
//
// set() and state() from any thread, and never block for the server. run() blocks one thread.
class StatusWriter {
 public:
  struct Settings {
    std::string node;
    ReportSettings report{};
    std::function<WallTime()> wall = [] { return std::chrono::system_clock::now(); };
    unsigned seed = std::random_device{}();  // of chance
  };
  static constexpr std::chrono::seconds kSpread{60};
  static constexpr std::chrono::minutes kLook{30};         // a tenth more or less by chance
  static constexpr std::chrono::minutes kMessagePause{5};  // between writes of another message of the same condition
  static constexpr int kBurst = 6;                         // writes of another state at once,
  static constexpr std::chrono::seconds kStatePause{30};   // and one in this time on average
  static constexpr std::chrono::milliseconds kFirstRetry{1000}, kLongestRetry{60'000};
  static constexpr std::chrono::minutes kRefusedRetry{5};  // 401, 403, 400, 422: only somebody else can cure it

  StatusWriter(kube::Api& api, Settings settings, const Clock& clock);

  // The newest state; replaces one that is not told yet, but none of its events.
  void set(const model::SnapshotPtr& snapshot) EXCLUDES(mutex_);
  [[nodiscard]] WriterState state() const EXCLUDES(mutex_);

  // Until `stop` is requested; then a call that is under way still takes its time (ApiClient::close() ends it).
  void run(const std::stop_token& stop);

  // What run() does again and again: what is due, and how long until something is. For tests.
  [[nodiscard]] std::chrono::milliseconds turn() EXCLUDES(mutex_);

 private:
  using ReportPtr = std::shared_ptr<const NodeReport>;

  // What there is to write of a report, given what others own.
  struct Wanted {
    std::map<std::string, std::string> labels;
    std::vector<Condition> conditions;
    Force force = Force::no;  // of labels
  };
  enum class Change { none, words, state };  // words: of a message alone

  [[nodiscard]] Wanted wanted_of(const NodeReport& report) const;
  [[nodiscard]] Change change_of(const Wanted& wanted) const;
  [[nodiscard]] SteadyTime due(const NodeReport& report, SteadyTime now) const;
  void tell(const NodeReport& report, SteadyTime now);
  [[nodiscard]] Result<void> look(const NodeReport& report, SteadyTime now);
  void take_over(const NodeLook& look, const NodeReport& report);
  void say_left(const NodeReport& report);
  [[nodiscard]] Result<void> write_labels(const Wanted& wanted);
  [[nodiscard]] Result<void> write_conditions(const Wanted& wanted, SteadyTime now);
  void tell_events(SteadyTime now) EXCLUDES(mutex_);
  void finish(const Result<void>& told, SteadyTime now) EXCLUDES(mutex_);
  [[nodiscard]] std::chrono::milliseconds retry_after(const Error& error, kube::Backoff& backoff) const;

  kube::Api& api_;
  const Settings settings_;
  const Clock& clock_;
  const SteadyTime starts_;

  // Of the thread in run().
  kube::Backoff backoff_;
  kube::Backoff events_backoff_;
  EventWriter event_writer_;
  std::minstd_rand chance_;
  std::optional<NodeLook> look_;                              // nullopt: to be looked at first
  std::optional<std::map<std::string, std::string>> labels_;  // as they are at the server, ours; nullopt: not known
  std::optional<std::vector<TimedCondition>> conditions_;     // likewise
  std::set<std::string> left_;                                // what is left to others, as it was said last
  SteadyTime look_at_{};
  SteadyTime not_before_{};         // after a failure
  SteadyTime events_not_before_{};  // the same of events
  SteadyTime words_at_{};           // when another message may be written
  SteadyTime bucket_full_at_{};     // of kBurst
  bool heartbeat_ = false;          // conditions are written though nothing differs
  std::string events_error_;        // said last

  mutable Mutex mutex_;
  std::condition_variable_any woken_;
  std::uint64_t wakes_ GUARDED_BY(mutex_) = 0;
  model::SnapshotPtr newest_ GUARDED_BY(mutex_);
  ReportPtr report_ GUARDED_BY(mutex_);  // of newest_
  OpenFaults open_faults_ GUARDED_BY(mutex_);
  EventsToTell events_ GUARDED_BY(mutex_);
  WriterState state_ GUARDED_BY(mutex_);
};

// When, after the start, an agent on the node of that name makes its first call where nothing is wrong. Pure.
[[nodiscard]] std::chrono::milliseconds spread_of(const std::string& node, std::chrono::milliseconds over);

}  // namespace neuron::status
