#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/holdings/holding.h"

// All holdings, across resources that are the same hardware, and of interfaces. Plain state, no I/O, no clock of its
// own; not synchronised: Allocations locks.
namespace neuron::plugin {

using holdings::CheckpointVersion;
using holdings::Holding;
using holdings::kMaxAdmission;

// A holding that stands in the way of a request.
struct Conflict {
  int core = 0;  // the lowest core in dispute
  Holding with;
  // "core 4 is held by default/train/worker through aws.amazon.com/neuron", or "... through claim chips"
  [[nodiscard]] std::string describe() const;
};

class Ledger {
 public:
  // An answer the agent gave. The kubelet gives nothing twice, so a container that held one of the same units has
  // ended, and all its holdings go, through whatever resource. One exception: an init container's units are given again
  // to the next container of its pod, in the same admission, while it keeps its other units until it ends. So of a
  // holding younger than kMaxAdmission only the hardware given now goes; reconcile() decides about the rest.
  void record(Holding holding);

  // The kubelet passes `units` of a resource as available: containers that held one of them since before `settled` have
  // ended. Younger holdings stay, as units that the kubelet has just given may be among them (its race:
  // docs/reference/kubelet.md#double-allocation), and so do maybe_given() ones, which may be at any time. A holding
  // that ends here does not return with a List that was asked before `now`.
  void available(model::Resource resource, const std::vector<int>& units, SteadyTime settled, SteadyTime now);

  // An admission that was refused: the kubelet fails the pod permanently and writes no checkpoint, so the next
  // container has the same version and must not be mistaken for this one.
  void forget_admission(CheckpointVersion version);

  // The kubelet's checkpoint, whose file is of `written_at`, while the kubelet waits for an answer: every holder is in
  // it, the container being admitted included. Holdings with a unit that is not in it have ended; those that are
  // younger than the file proves (kMaxWriteDelay) are doubtful.
  void confirm(const std::vector<Holding>& written, SteadyTime written_at);

  // The kubelet writes a checkpoint without the lock under which it was collected: of two, the older may be written
  // last, and its file then looks newer than its content, by at most this
  // (docs/reference/kubelet.md#capacity-and-checkpoint). So a checkpoint proves the end only of a holding that is
  // older. Less than Admissions::kStalled, so that the one written then decides.
  static constexpr std::chrono::milliseconds kMaxWriteDelay{950};
  // A checkpoint that is written from then on decides about all doubtful holdings.
  [[nodiscard]] SteadyTime decided_at() const;

  // The checkpoint has changed while the kubelet waited for an answer: its admission continues under the new version.
  void admission_goes_on(CheckpointVersion before, CheckpointVersion now);

  // Allocations as the kubelet shows them, merged from its two sources.
  struct Shown {
    std::vector<Holding> listed;  // by PodResources, asked at `asked_at`
    SteadyTime asked_at{};
    std::vector<Holding> stored;                // in the checkpoint, as far as not listed
    CheckpointVersion stored_version = 0;       // of that checkpoint
    SteadyTime written_at = SteadyTime::max();  // when it was written, by its file
  };
  // Takes over what the kubelet shows:
  // - shown holdings are confirmed, with their holders' names; unknown ones, from before this process, are added;
  // - what was recorded before the question and is not shown has ended, unless the kubelet has not written its
  //   checkpoint since the answer, or may not have had the answer on record when it was asked (kAnswerTransit), or the
  //   checkpoint may be older than the answer (kMaxWriteDelay);
  // - a shown container is outdated, and left out, when one of its units was given since: after the question, or under
  //   the version of this very checkpoint. As it may be the container that was given it, what List shows it with stays
  //   if it is on record: record() has ended another one's.
  // Takes n log n of time for n entries. Of more than kMostShown, the others are kept only as far as they hold a unit
  // that those do not.
  void reconcile(const Shown& shown);
  // A holding was left out by a checkpoint that may be older. One that is written kMaxWriteDelay after it decides.
  [[nodiscard]] bool needs_newer_checkpoint() const;
  // Time from the answer until the kubelet has it on record; less than the pause between its last call and the agent's
  // List (Admissions::kAskIdleTime).
  static constexpr std::chrono::milliseconds kAnswerTransit{80};
  static constexpr std::size_t kMostShown = 1024;  // every core of the largest node, eight times

  // While the kubelet answers List, it may count units that it is giving as free, and give them to the next pod
  // (docs/reference/kubelet.md#double-allocation). A List of the agent was asked at `asked_at`: what was given so
  // shortly before that the kubelet may not have it on record counts as given while it was open
  // (Holding::given_during_list).
  void list_asked(SteadyTime asked_at);
  // Units of `resource` that such containers hold: that they are available proves nothing. Ascending, unique.
  [[nodiscard]] std::vector<int> maybe_given(model::Resource resource) const;
  // A holding with one of `units`, given while List was open, which has been available since: only a checkpoint shows
  // its end. An init container's that the next one of its pod uses again was not available. nullptr: none.
  [[nodiscard]] const Holding* available_though_given(model::Resource resource, const std::vector<int>& units) const;

  // All holdings by claims of dynamic resource allocation, as PodResources last showed them: one holding for the cores
  // of a claim (as neuroncore) and one for its interfaces. The kubelet's device manager knows nothing of claims and
  // counts their hardware as free; so no answer, no checkpoint and no call of available() ends them. Bounded as
  // reconcile() is.
  void set_claimed(std::vector<Holding> claimed);
  [[nodiscard]] const std::vector<Holding>& claimed() const { return claimed_; }
  // The claim's holding of this interface; nullptr when no claim holds it.
  [[nodiscard]] const Holding* claim_of_efa(int unit) const;

  // The units of a resource have other numbers from now on: `number_of` an old one, nullopt when it is no more.
  void renumber(model::Resource resource, const std::function<std::optional<int>(int)>& number_of);

  // The first holding of another resource, or by a claim, that overlaps `cores`, leaving out those of the admission
  // `version` and those of containers that have ended if `units` of `resource` are given (see record).
  [[nodiscard]] std::optional<Conflict> conflict(model::Resource resource, const std::vector<int>& units,
                                                 const std::vector<int>& cores, CheckpointVersion version) const;

  // The devices and cores, or the interfaces, already given to the container that is being admitted under `version` and
  // now asks for `resource`; nullptr when none. A container asks for a resource once. So an answer for `resource` under
  // the same version, and all before it, went to a pod that the kubelet then refused without writing its checkpoint.
  [[nodiscard]] const Holding* cores_of_admission(model::Resource resource, CheckpointVersion version) const;
  [[nodiscard]] const Holding* efas_of_admission(model::Resource resource, CheckpointVersion version) const;

  // Cores that `resource` must not offer: held by a claim, or through another resource and not through this one as
  // well. (The kubelet gives no other container what this one holds; Unhealthy would be wrong for a running container.)
  // Ascending, unique. A left_out holding frees only the cores of its own container.
  [[nodiscard]] std::vector<int> blocked_cores(model::Resource resource) const;

  // Units of `resource` that containers hold through it. Ascending, unique.
  [[nodiscard]] std::vector<int> held_units(model::Resource resource) const;

  [[nodiscard]] const std::vector<Holding>& holdings() const { return holdings_; }
  // For each of holdings(): of a container that held some of `units` of `resource` since before `settled`.
  [[nodiscard]] std::vector<bool> ended_when_given(model::Resource resource, const std::vector<int>& units,
                                                   SteadyTime settled = SteadyTime::max()) const;

 private:
  // Those of `listed` that are left out are added to `outdated`.
  [[nodiscard]] std::vector<Holding> not_outdated(const Shown& shown, std::vector<Holding>& outdated) const;
  [[nodiscard]] const Holding* of_admission(model::Resource resource, CheckpointVersion version, bool of_cores) const;

  std::vector<Holding> holdings_;  // through the device plugin; oldest first
  std::vector<Holding> claimed_;
  std::map<std::pair<model::Resource, int>, SteadyTime>
      available_since_;  // units of those that available() ended, and when
};

}  // namespace neuron::plugin
