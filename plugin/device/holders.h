#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/base/clock.h"
#include "agent/holdings/listed_holders.h"
#include "agent/model/allocation.h"
#include "plugin/device/admission_gate.h"
#include "plugin/device/allocations.h"
#include "plugin/device/kubelet_port.h"
#include "plugin/kubelet/checkpoint.h"

namespace neuron::plugin {

// Holdings of all containers, merged from two sources: PodResources names pods but leaves out plain init containers;
// the checkpoint has every container, by its pod's uid, as of its last write. One thread.
class MergedHolders {
 public:
  // The sources that could be read. `nothing`: neither, or a List that is not whole alone; the former state stays.
  enum class Source { list_and_checkpoint, list, checkpoint, nothing };

  // `interval`: see wants_fresh_checkpoint. `own_pod`: see holdings::ListedHolders.
  MergedHolders(const CheckpointSource& checkpoint, std::chrono::milliseconds interval, std::string own_pod = {})
      : checkpoint_(checkpoint), interval_(interval), claims_(std::move(own_pod)) {}

  // The kubelet's newest List, asked at `asked_at`. From then on, entries that the checkpoint alone has of these pods,
  // such as their init containers', carry the pods' names too. Holdings by claims stay until several answers lack them,
  // as no other source has them.
  void set_listed(std::vector<model::Allocation> listed, SteadyTime asked_at);

  // False: the newest List leaves out pods that run, as that of a kubelet which has just started; or there was none.
  [[nodiscard]] bool list_is_whole() const { return claims_.is_whole(); }

  // Held by claims: driver and device.
  [[nodiscard]] std::set<std::pair<std::string, std::string>> claimed() const;

  // List was refused or had no answer in time: its earlier answers count no more, but for claims.
  void list_failed() { listed_.reset(); }

  // Allocations as of the newest List, the checkpoint read now; the checkpoint alone while List does not answer.
  // nullopt: neither source could be read.
  [[nodiscard]] std::optional<ShownAllocations> merged(SteadyTime now);
  // The checkpoint that the last merged() read; nullptr: it could not be read.
  [[nodiscard]] const Checkpoint* written() const { return stored_ && !stored_hangs_ ? &*stored_ : nullptr; }
  [[nodiscard]] Source source() const { return source_; }  // of the last merged()

  // To be asked after each List, answered or not. True when the checkpoint has entries that List does not show, of
  // ended pods or of init containers: a checkpoint rewritten, as for each ListAndWatch message, distinguishes the
  // two. True
  // - twice per entry, as the first time may come too soon: the kubelet forgets an ended pod at a List that follows;
  // - twice more when a pod or container has left the list, as its init container may have held the entry;
  // - otherwise once per `interval`, as kubelets before 1.34 list pods that have ended, and while List fails.
  [[nodiscard]] bool wants_fresh_checkpoint(SteadyTime now);
  void kubelet_is_new() { asked_about_.clear(); }  // no fresh checkpoint comes from its predecessor

 private:
  // The checkpoint as it is now, or, while reading it hangs, as it was last; nullptr: it cannot be read.
  [[nodiscard]] const Checkpoint* stored(SteadyTime now);
  // Learns the pod name of each uid in the checkpoint from entries that both sources show.
  void learn_names(const std::vector<model::Allocation>& listed);

  const CheckpointSource& checkpoint_;
  std::chrono::milliseconds interval_;
  std::string error_;  // as last logged
  Source source_ = Source::nothing;
  std::optional<Checkpoint> stored_;                      // as last read
  SteadyTime stored_at_{};                                // when it was that
  bool stored_hangs_ = false;                             // it may be another by now
  std::optional<std::vector<model::Allocation>> listed_;  // nullopt while List does not answer
  holdings::ListedHolders claims_;
  std::map<std::string, std::pair<std::string, std::string>> names_;  // uid → namespace and name
  std::set<std::string> pods_;  // in the newest List: pods, and what their containers hold
  SteadyTime asked_at_{};
  SteadyTime wanted_at_{};                  // when a fresh checkpoint was last asked for
  std::set<std::string> unlisted_;          // entries found in the checkpoint only, at the last merge
  std::map<std::string, int> asked_about_;  // how often a fresh checkpoint was asked for because of each
};

// Keeps Allocations up to date with the kubelet: asks List when holdings may have changed, often while hardware is
// withheld because of them, and applies its answers and the checkpoint. One thread.
class HolderWatch {
 public:
  // Everything must outlive it.
  struct Parts {
    const Clock& clock;
    Allocations& allocations;
    AdmissionGate& admissions;
    const CheckpointSource& checkpoint;
    KubeletPort& kubelet;
  };

  // `interval`: how often List is asked when nothing else calls for it. `own_pod`: see holdings::ListedHolders.
  // `claims_expected`: see ServedResources::Settings.
  HolderWatch(const Parts& parts, std::chrono::milliseconds interval, std::string own_pod, bool claims_expected)
      : parts_(parts),
        interval_(interval),
        holders_(parts.checkpoint, interval, std::move(own_pod)),
        claims_expected_(claims_expected) {}

  // Lists can be made: an answer is in that can be relied on, or the kubelet has not given one for long enough.
  [[nodiscard]] bool is_known() const { return known_; }
  void ask(SteadyTime asked_at);
  void listed(const HoldersListed& event);
  // Applies the newest List and the checkpoint as it is now; nothing before is_known().
  void apply();
  [[nodiscard]] const Checkpoint* written() const { return holders_.written(); }  // as of apply(), see MergedHolders
  void kubelet_is_new() { holders_.kubelet_is_new(); }

 private:
  void learn(const HoldersListed& event);
  [[nodiscard]] bool claims_are_listed(SteadyTime asked_at);
  void log_source();
  [[nodiscard]] std::chrono::milliseconds ask_interval() const;
  [[nodiscard]] std::chrono::milliseconds ask_again_after_failure() const;

  const Parts parts_;
  const std::chrono::milliseconds interval_;
  MergedHolders holders_;
  bool claims_expected_;
  std::set<std::pair<std::string, std::string>> claims_seen_;  // while they are expected: of the newest answer
  std::optional<SteadyTime> claims_since_;                     // the first answer that had the same
  bool known_ = false;
  std::optional<SteadyTime> unknown_since_;  // a kubelet is there, and the first such answer was not
  int failures_ = 0;                         // of List, in a row
  bool asking_ = false;
  std::string error_;  // of List, while it fails
  std::optional<MergedHolders::Source> logged_source_;
};

}  // namespace neuron::plugin
