#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "agent/base/clock.h"
#include "agent/base/mutex.h"
#include "agent/holdings/holding.h"
#include "agent/model/resource.h"

namespace neuron::plugin {

// Time for an action that must not fall into an admission of the kubelet: after `idle_time` without a call, but at most
// `max_wait` after it was first wanted, as some nodes are never idle, or `max_busy_wait` during an admission. Plain
// arithmetic on times; not synchronised.
class IdleTimer {
 public:
  constexpr IdleTimer(std::chrono::milliseconds idle_time, std::chrono::milliseconds max_wait,
                      std::chrono::milliseconds max_busy_wait)
      : idle_time_(idle_time), max_wait_(max_wait), max_busy_wait_(max_busy_wait) {}

  // Wants it, not before `earliest`, which replaces what was wanted before; `max_wait` counts from the first one.
  void want(SteadyTime earliest) {
    since_ = std::min(since_.value_or(earliest), earliest);
    at_ = std::min(earliest, *since_ + max_wait_);
    next_.reset();
  }

  // The process has not run for a while, stopped or starved: calls of the kubelet may lie unread, so it counts as busy,
  // and the wait is extended for what has piled up. At most ten times until due(): a process may be starved
  // permanently.
  void woke(SteadyTime now) {
    constexpr int kMostWakes = 10;
    constexpr int kIdleTimesForBacklog = 5;
    if (!since_ || ++wakes_ > kMostWakes) return;
    since_ = std::max(*since_, now + kIdleTimesForBacklog * idle_time_ - max_wait_);
    at_ = std::max(*at_, now + idle_time_);
    next_.reset();
  }

  void drop() {
    since_.reset();
    at_.reset();
    next_.reset();
    wakes_ = 0;
  }

  // True once: now is the time. `last_call`: the newest call of the kubelet; `busy`: an admission has not ended, so
  // only `max_busy_wait` counts until it has.
  [[nodiscard]] bool due(SteadyTime now, SteadyTime last_call, bool busy) {
    if (!since_) return false;
    const SteadyTime most = *since_ + max_wait_;
    const SteadyTime idle = std::min(std::max(*at_, last_call + idle_time_), most);
    next_ = busy ? *since_ + max_busy_wait_ : idle;
    if (now < *next_) return false;
    drop();
    return true;
  }

  // Wanted for `max_wait` or longer.
  [[nodiscard]] bool overdue(SteadyTime now) const { return since_ && now >= *since_ + max_wait_; }

  // When to ask due() again, if anything is wanted. Sooner when the admission has ended.
  [[nodiscard]] std::optional<SteadyTime> next() const { return next_ ? next_ : at_; }

 private:
  std::chrono::milliseconds idle_time_;
  std::chrono::milliseconds max_wait_;
  std::chrono::milliseconds max_busy_wait_;
  std::optional<SteadyTime> since_;
  std::optional<SteadyTime> at_;
  std::optional<SteadyTime> next_;
  int wakes_ = 0;
};

// Orders answers to the kubelet, lists to it and queries of it (docs/adr/0006-admission-gate.md).
//
// The kubelet admits one container at a time, asks for its resources one after another without naming the container,
// and then writes its checkpoint. It writes it for every ListAndWatch message as well. Only an unchanged version of the
// checkpoint shows that an answer is for the same container as the one before. Hence three rules:
// - no list goes out from the first answer of a container until its checkpoint is written: the write for the list would
//   look like the end of the admission. On a node that is never idle a list goes out before the next container's first
//   answer, which waits for it;
// - no answer begins while a list is being sent, or was sent and is not yet in the checkpoint;
// - PodResources List, at which the kubelet forgets a container that is being admitted, is called only while no
//   admission goes on and the kubelet has not called for a while.
// kMaxWriteWait, kMaxIdleWait and kMaxBusyWait bound each wait. An answer may wait three times: for a list, and for two
// checkpoints.
//
// Driven by events, returns decisions: no lock, no clock, no I/O; not synchronised (AdmissionGate locks). "Written"
// always means: the kubelet has written its checkpoint. `version` is the checkpoint's, 0 if there is none.
class Admissions {
 public:
  using Ticket = std::uint64_t;  // of a waiting call; chosen by the caller, each used once

  // A list that is not in the checkpoint after this time never will be, as its kubelet is gone. The longest of each of
  // an answer's waits.
  static constexpr std::chrono::milliseconds kMaxWriteWait{1000};
  static constexpr std::chrono::milliseconds kMaxIdleWait{3000};    // longest wait of lists, of List and of new streams
  static constexpr std::chrono::milliseconds kMaxBusyWait{6000};    // of lists, while one container is being admitted
  static constexpr std::chrono::milliseconds kListIdleTime{250};    // from the kubelet's last call to a new list
  static constexpr std::chrono::milliseconds kAskIdleTime{100};     // from the kubelet's last call to List
  static constexpr std::chrono::milliseconds kAskAfterAnswer{500};  // from an answer to List
  // An admission without a call for so long has ended: the kubelet refused the pod half-way.
  static constexpr std::chrono::milliseconds kStalled{1000};

  // The kubelet has made a call, of whatever kind.
  void called(SteadyTime now) { last_call_ = now; }

  // The kubelet waits for an answer to Allocate. True: it has begun. False: it waits, and begins when ready(), due() or
  // release() returns the ticket. `version`: the checkpoint's now; it counts only while lists are overdue.
  [[nodiscard]] bool begin_answer(Ticket ticket, model::Resource resource, holdings::CheckpointVersion version,
                                  SteadyTime now);
  [[nodiscard]] bool lists_overdue(SteadyTime now) const { return lists_.overdue(now); }
  // The answer that has begun would be a refusal because of holdings that may have ended
  // (Allocations::needs_fresh_checkpoint): it waits, under a ticket, until a list that is published from `earliest` on
  // has been written.
  void wait_for_checkpoint(Ticket ticket, model::Resource resource, SteadyTime earliest);
  // The answer that has begun goes to the kubelet. `version`: the checkpoint's now. A refusal ends the admission.
  enum class Outcome { given, refused };
  void answered(Outcome outcome, holdings::CheckpointVersion version, SteadyTime now);

  // A new stream is about to show its first list. As begin_answer(); ended by lists_sent().
  [[nodiscard]] bool begin_stream(Ticket ticket, model::Resource resource, SteadyTime now);
  void list_published(SteadyTime now);  // one message will go to the kubelet
  void lists_sent() { --sending_; }     // ends begin_stream(), and what due() wanted sent

  void checkpoint_written();  // once per write
  // A new kubelet runs: lists to its predecessor never reach the checkpoint, and no admission of it continues.
  void kubelet_is_new();

  // Actions that the agent wants as soon as they are allowed.
  void want_lists(SteadyTime now) { lists_.want(now); }  // if they have changed
  void want_checkpoint(SteadyTime now);                  // a list even if none has changed: it makes the kubelet write
  void want_holders(SteadyTime earliest) { holders_.want(earliest); }
  void want_holders_by(SteadyTime latest);  // unless they are asked for sooner anyway
  void asking_holders() { holders_.drop(); }
  void woke(SteadyTime now);  // the process was stopped or starved for a while: calls of the kubelet may lie unread

  // A mark, to be taken before inotify is read for checkpoint_written(). due() considers an admission ended only if the
  // version had changed by then and no answer was given since, so that a write which inotify has not reported yet is
  // never mistaken for the write of a list.
  struct Progress {
    holdings::CheckpointVersion version = 0;
    std::uint64_t answers = 0;  // so far, given or refused
  };
  [[nodiscard]] Progress progress(holdings::CheckpointVersion version) const { return {version, answers_}; }

  struct Due {
    bool lists = false;         // send the lists that have changed
    bool same_list = false;     // a list has to go out: unless one of those does, send one as it was
    bool holders = false;       // ask List
    std::vector<Ticket> begun;  // answers and streams that begin now
  };
  // When it wants lists or a list, no answer begins until lists_sent().
  [[nodiscard]] Due due(const Progress& before, SteadyTime now);
  // Answers and streams that need not wait any longer; they have begun.
  [[nodiscard]] std::vector<Ticket> ready(SteadyTime now);
  [[nodiscard]] std::vector<Ticket> release(model::Resource resource);  // its server is going away: all begin

  [[nodiscard]] bool open() const;  // a container is being admitted, by all signs
  [[nodiscard]] bool answers_wait() const;
  [[nodiscard]] std::optional<SteadyTime> next() const;  // when to call due() again

 private:
  enum class Kind { answer, conflicting_answer, stream };
  struct Waiting {
    Ticket ticket{};
    model::Resource resource{};
    Kind kind{};
    SteadyTime until{};
    SteadyTime earliest{};        // when a list may be published for a conflicting answer
    bool list_wanted = false;     // due() has asked for one
    bool list_published = false;  // since then
    bool lists_first = false;     // an answer: lists are overdue, and its container is the next one
  };

  void forget_late(SteadyTime now);
  [[nodiscard]] SteadyTime stalled_at() const { return std::max(last_call_, woke_at_) + kStalled; }  // while it is open
  [[nodiscard]] bool may_go(const Waiting& one, SteadyTime now) const;
  void begin(const Waiting& one);

  SteadyTime last_call_{};
  SteadyTime woke_at_{};
  int answering_ = 0;                             // answers that have begun
  std::uint64_t answers_ = 0;                     // so far, given or refused
  holdings::CheckpointVersion open_version_ = 0;  // of the newest answer, until its admission has ended
  int sending_ = 0;                               // lists are being sent: due() or begin_stream() said so
  int on_the_way_ = 0;                            // lists published and not yet written
  SteadyTime last_published_{};
  bool never_written_ = false;  // a kubelet that keeps no checkpoint: waiting for it never succeeds
  bool same_list_ = false;
  std::vector<Waiting> waiting_;  // oldest first
  IdleTimer lists_{kListIdleTime, kMaxIdleWait, kMaxBusyWait};
  IdleTimer holders_{kAskIdleTime, kMaxIdleWait, kMaxIdleWait};
};

// Admissions, shared by gRPC's threads and the main loop under one lock, which is held for
// WatchedCheckpoint::kVersionBudget at most. A caller that has to wait for the kubelet leaves a continuation, which is
// called once, without the lock: at once when no wait is needed, else on the thread whose call ends the wait. A method
// without a comment is the one of that name in Admissions, at the clock's time.
class AdmissionGate {
 public:
  using Continuation = std::function<void()>;
  using VersionSource = std::function<holdings::CheckpointVersion()>;  // called under the lock

  // `changed`: the time of due() may have come sooner; any thread, must not block nor call the gate. `clock` must
  // outlive the gate.
  AdmissionGate(const Clock& clock, VersionSource version, std::function<void()> changed);

  // Any thread.
  void called() {
    locked([](Admissions& all, SteadyTime now) { all.called(now); });
  }
  // `then` has to call wait_for_checkpoint() or answered().
  void answer(model::Resource resource, Continuation then);
  // Makes due() want a list, at `earliest` or now; `then`, which has to call answered(), comes when the kubelet has
  // written it.
  void wait_for_checkpoint(model::Resource resource, SteadyTime earliest, Continuation then) EXCLUDES(mutex_);
  void answered(Admissions::Outcome outcome);  // before gRPC gets the answer
  // `then` publishes the first list to the stream.
  void open_stream(model::Resource resource, Continuation then);
  void list_published() {
    locked([](Admissions& all, SteadyTime now) { all.list_published(now); });
  }
  void release(model::Resource resource);

  // From here on: the main loop's thread. In this order: progress(), checkpoint_written() for each write that inotify
  // has reported since, due().
  [[nodiscard]] Admissions::Progress progress() const EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return admissions_.progress(version_());
  }
  [[nodiscard]] Admissions::Due due(const Admissions::Progress& before);  // `begun` have been called
  void lists_sent();
  void checkpoint_written();
  void kubelet_is_new();
  void woke() {
    locked([](Admissions& all, SteadyTime now) { all.woke(now); });
  }
  void want_lists() {
    locked([](Admissions& all, SteadyTime now) { all.want_lists(now); });
  }
  void want_checkpoint() {
    locked([](Admissions& all, SteadyTime now) { all.want_checkpoint(now); });
  }
  void want_holders(std::chrono::milliseconds after) {
    locked([after](Admissions& all, SteadyTime now) { all.want_holders(now + after); });
  }
  void want_holders_by(std::chrono::milliseconds after) {
    locked([after](Admissions& all, SteadyTime now) { all.want_holders_by(now + after); });
  }
  void asking_holders() {
    locked([](Admissions& all, SteadyTime /*now*/) { all.asking_holders(); });
  }
  [[nodiscard]] std::optional<SteadyTime> next() const EXCLUDES(mutex_) {  // when to call due() next
    const MutexLock lock(mutex_);
    return admissions_.next();
  }

 private:
  // `step` takes the admissions and the time.
  template <typename Step>
  void locked(const Step& step) EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    step(admissions_, clock_.now());
  }
  // `step` takes the same and returns tickets, whose continuations are called afterwards, without the lock.
  template <typename Step>
  void run(const Step& step) EXCLUDES(mutex_);
  // `begin` takes them and a new ticket. True: `then` is called at once; false: it waits under that ticket.
  template <typename Begin>
  void begin_or_wait(Continuation then, const Begin& begin) EXCLUDES(mutex_);

  const Clock& clock_;
  const VersionSource version_;
  const std::function<void()> changed_;
  mutable Mutex mutex_;
  Admissions admissions_ GUARDED_BY(mutex_);
  std::map<Admissions::Ticket, Continuation> waiting_ GUARDED_BY(mutex_);
  Admissions::Ticket last_ticket_ GUARDED_BY(mutex_) = 0;
};

}  // namespace neuron::plugin
