#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "agent/base/clock.h"
#include "agent/base/mutex.h"
#include "plugin/device/admissions.h"

namespace neuron::plugin {

// Admissions (admissions.h), shared by gRPC's threads and the main loop under one lock. No call blocks: a caller that
// has to wait leaves a continuation, which is called once, without the lock: at once when no wait is needed, else on
// the thread whose call ends the wait. A method without a comment is the one of that name in Admissions, at the clock's
// time.
class AdmissionGate {
 public:
  using Continuation = std::function<void()>;
  using VersionSource =
      std::function<holdings::CheckpointVersion()>;  // of the checkpoint; called under the lock: one stat

  // `changed`: the time of due() may have come sooner; any thread, must not block nor call the gate. `clock` must
  // outlive the gate.
  AdmissionGate(const Clock& clock, VersionSource version, std::function<void()> changed);

  // Any thread.
  void called() EXCLUDES(mutex_);
  // `then` has to call wait_for_checkpoint() or answered().
  void answer(model::Resource resource, Continuation then) EXCLUDES(mutex_);
  // Makes due() want a list; `then`, which has to call answered(), comes when the kubelet has written it.
  void wait_for_checkpoint(model::Resource resource, Continuation then) EXCLUDES(mutex_);
  void answered(Admissions::Outcome outcome) EXCLUDES(mutex_);  // before gRPC gets the answer
  // `then` offers the stream its first list.
  void open_stream(model::Resource resource, Continuation then) EXCLUDES(mutex_);
  void list_offered() EXCLUDES(mutex_);
  void release(model::Resource resource) EXCLUDES(mutex_);

  // From here on: the main loop's thread. In this order: progress(), checkpoint_written() for each write that inotify
  // has reported since, due().
  [[nodiscard]] Admissions::Progress progress() const EXCLUDES(mutex_);
  [[nodiscard]] Admissions::Due due(const Admissions::Progress& before) EXCLUDES(mutex_);  // `begun` have been called
  void lists_sent() EXCLUDES(mutex_);
  void checkpoint_written() EXCLUDES(mutex_);
  void kubelet_is_new() EXCLUDES(mutex_);
  void woke() EXCLUDES(mutex_);
  void want_lists() EXCLUDES(mutex_);
  void want_checkpoint() EXCLUDES(mutex_);
  void want_holders(std::chrono::milliseconds after) EXCLUDES(mutex_);
  void want_holders_by(std::chrono::milliseconds after) EXCLUDES(mutex_);
  void asking_holders() EXCLUDES(mutex_);

  [[nodiscard]] std::optional<SteadyTime> next() const EXCLUDES(mutex_);  // when to call due() next

 private:
  [[nodiscard]] std::vector<Continuation> take(const std::vector<Admissions::Ticket>& tickets) REQUIRES(mutex_);
  Admissions::Ticket keep(Continuation then) REQUIRES(mutex_);
  void run_ready() EXCLUDES(mutex_);  // calls the continuations whose wait has ended

  const Clock& clock_;
  const VersionSource version_;
  const std::function<void()> changed_;
  mutable Mutex mutex_;
  Admissions admissions_ GUARDED_BY(mutex_);
  std::map<Admissions::Ticket, Continuation> waiting_ GUARDED_BY(mutex_);
  Admissions::Ticket last_ticket_ GUARDED_BY(mutex_) = 0;
};

}  // namespace neuron::plugin
