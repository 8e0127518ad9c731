#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "agent/base/clock.h"
#include "agent/base/mutex.h"
#include "plugin/device/admissions.h"

namespace neuron::plugin {

// Admissions for gRPC's threads and the loop together: every decision falls under one lock. Nobody waits in it: who may
// not go yet leaves a function, which is called once, without the lock, by whichever call ends the wait.
class AdmissionGate {
 public:
  using Go = std::function<void()>;
  using VersionSource =
      std::function<holdings::CheckpointVersion()>;  // of the checkpoint; called under the lock: one stat

  // `changed`: the time of due() may have come sooner; any thread, must not block nor call the gate. `clock` must
  // outlive the gate.
  AdmissionGate(const Clock& clock, VersionSource version, std::function<void()> changed);

  // Any thread.
  void called() EXCLUDES(mutex_);
  void answer(model::Resource resource, Go go) EXCLUDES(mutex_);  // `go` ends with doubt() or answered()
  void doubt(model::Resource resource, Go go) EXCLUDES(mutex_);   // `go` ends with answered(); the loop sends a list
  void answered(Admissions::Outcome outcome) EXCLUDES(mutex_);    // before the answer is handed to gRPC
  void open_stream(model::Resource resource, Go go) EXCLUDES(mutex_);  // `go` offers the stream its first list
  void list_offered() EXCLUDES(mutex_);
  void release(model::Resource resource) EXCLUDES(mutex_);

  // The loop's thread.
  struct Due {
    bool lists = false;  // see Admissions::Due; ended by handed()
    bool same_list = false;
    bool list_for_doubt = false;  // an unchanged list, now: an answer waits for what it makes the kubelet write
    bool holders = false;
  };
  // look(), then checkpoint_written() for each write that inotify tells by then, then due().
  [[nodiscard]] Admissions::Look look() const EXCLUDES(mutex_);
  [[nodiscard]] Due due(const Admissions::Look& before) EXCLUDES(mutex_);
  void handed() EXCLUDES(mutex_);
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
  [[nodiscard]] std::vector<Go> take(const std::vector<Admissions::Ticket>& tickets) REQUIRES(mutex_);
  Admissions::Ticket keep(Go go) REQUIRES(mutex_);
  void go_on() EXCLUDES(mutex_);  // lets go whoever may

  const Clock& clock_;
  const VersionSource version_;
  const std::function<void()> changed_;
  mutable Mutex mutex_;
  Admissions admissions_ GUARDED_BY(mutex_);
  std::map<Admissions::Ticket, Go> waiting_ GUARDED_BY(mutex_);
  Admissions::Ticket last_ticket_ GUARDED_BY(mutex_) = 0;
  bool doubts_ GUARDED_BY(mutex_) = false;  // since the last due()
};

}  // namespace neuron::plugin
