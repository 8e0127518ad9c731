#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/base/clock.h"
#include "agent/base/mutex.h"
#include "agent/base/result.h"
#include "agent/core/hardware.h"
#include "agent/core/logical_cores.h"
#include "agent/core/offer_policy.h"
#include "agent/grant/grant.h"
#include "agent/model/allocation.h"
#include "plugin/device/ledger.h"
#include "plugin/device/refusals.h"
#include "plugin/device/units.h"
#include "plugin/kubelet/node_view.h"

namespace neuron::plugin {

// Allocations as the kubelet shows them, from its two sources; see Ledger::Shown.
struct ShownAllocations {
  std::vector<model::Allocation> listed;
  SteadyTime asked_at{};
  std::vector<model::Allocation> stored;
  CheckpointVersion stored_version = 0;
  core::NumberingEvidence numbering{};        // of the same checkpoint, all of it
  std::vector<model::Allocation> claims{};    // by PodResources, as of its last answer: no checkpoint has them
  SteadyTime written_at = SteadyTime::max();  // of that checkpoint
};

// Whether a List of the agent was open during a call of the kubelet, which may then believe that units are free while
// it gives them to a container (docs/reference/kubelet.md#double-allocation). Plain arithmetic on times; not
// synchronised.
class ListOverlap {
 public:
  void list_asked(SteadyTime now) {
    open_until_ = SteadyTime::max();
    note(now);
  }
  void list_ended(SteadyTime at) { open_until_ = at; }
  // A call lasts from GetPreferredAllocation, or Allocate, to Allocate's answer; one that no Allocate follows is
  // forgotten after a while.
  void called(SteadyTime now) {
    if (now >= call_until_) overlaps_ = false;
    call_until_ = now + kMaxAdmission;
    note(now);
  }
  [[nodiscard]] bool answered() {
    call_until_ = {};
    return std::exchange(overlaps_, false);
  }

 private:
  void note(SteadyTime now) { overlaps_ = overlaps_ || (now < open_until_ && now < call_until_); }

  SteadyTime open_until_{}, call_until_{};
  bool overlaps_ = false;
};

// Decides which units are chosen, given and refused, for all resources of the process, so that resources which are the
// same hardware stay consistent (docs/resources.md#same-hardware) and interfaces follow devices. Holds no gRPC, does no
// I/O except `version`. Thread-safe; every method computes under one lock that no scanner ever takes, and that
// `version` may hold for WatchedCheckpoint::kVersionBudget while the kubelet's disk hangs.
class Allocations {
 public:
  // Distinguishes one container admission from the next; called under the lock. See ledger.h.
  using VersionSource = std::function<CheckpointVersion()>;

  // `clock` must outlive the allocations. `offer`: the devices given under each name, fixed; units that containers hold
  // otherwise, from before a restart, stay theirs and are withheld from the other name until they end. `claim_driver`:
  // claims hold hardware of this node, from before it came to serve the device plugin, which is withheld from all names
  // until they end: of this driver, and of others as claimed_names() says.
  Allocations(grant::GrantOptions options, VersionSource version, const Clock& clock, core::OfferPolicy offer = {},
              std::string claim_driver = std::string(core::kDefaultDriverName));

  // The newest snapshot's; nullptr = none yet. It is in node() at once, but core ids keep the logical core size of the
  // first one until adopt_numbering().
  void set_node(grant::NodeUnitsPtr node) EXCLUDES(mutex_);
  // The node as all answers and lists see it: with held hardware that no scan has shown (health/assess.h). nullptr
  // before the first set_node.
  [[nodiscard]] grant::NodeUnitsPtr node() const EXCLUDES(mutex_);
  // Another scan of this node with the core ids and the held hardware that node() has, so that the units of holdings
  // mean in it what they mean there; `scanned` itself where nothing differs. nullptr stays nullptr.
  [[nodiscard]] model::SnapshotPtr numbered(model::SnapshotPtr scanned) const EXCLUDES(mutex_);

  // The newest snapshot's logical core size counts from now on, unless a container holds hardware, whose ids would mean
  // other cores then. Called before lists are made, so that the next one has it. Logs either, once.
  void adopt_numbering() EXCLUDES(mutex_);

  // GetPreferredAllocation: always an answer, `size` ids out of `available` whenever that is possible. Ids the node
  // does not have are ignored; units that were given while List was open come last.
  [[nodiscard]] std::vector<std::string> prefer(model::Resource resource, const std::vector<std::string>& available,
                                                const std::vector<std::string>& must_include, int size)
      EXCLUDES(mutex_);

  // The preference for a container that others have placed: exactly these units, or, with the reason, the agent's own
  // choice.
  struct Preference {
    std::vector<std::string> ids;
    std::string obstacle;  // "" = as placed
  };
  [[nodiscard]] Preference prefer_placed(model::Resource resource, const std::vector<std::string>& available,
                                         const std::vector<std::string>& must_include, int size,
                                         const PlacedIds& placement) EXCLUDES(mutex_);

  // PodResources List is asked now; its answer has come, or its deadline has passed.
  void list_asked() EXCLUDES(mutex_);
  enum class ListEnd { answered, failed };
  void list_ended(ListEnd end) EXCLUDES(mutex_);

  // The kubelet has called Allocate, or GetPreferredAllocation. To be called at once, before any wait.
  void call_began() EXCLUDES(mutex_);
  // Allocate. An error gives nothing, and ends the admission: the container's earlier units count no more. A unit that
  // is held under the same name is given: the kubelet gives nothing twice, so the earlier holding has ended. Refusals
  // of plugin/device/refusals.h: invalid_argument (unknown, duplicate or no ids), failed_precondition (unhealthy unit;
  // one not offered under this name; hardware held by another container, which is named; a unit given while List was
  // open and available since; two resources of one container that are not the same hardware), unavailable (no snapshot
  // yet).
  [[nodiscard]] refusals::OrRefusal<grant::Grant> allocate(model::Resource resource,
                                                           const std::vector<std::string>& ids) EXCLUDES(mutex_);

  // When allocate() last gave that unit; nullopt: never.
  [[nodiscard]] std::optional<SteadyTime> given_at(model::Resource resource, const std::string& id) const
      EXCLUDES(mutex_);

  // To be asked before allocate(). True when that would refuse because of a holding that may have ended, which only a
  // new checkpoint shows: a list has to make the kubelet write one, and confirm() to be called; where none is written
  // in time, allocate() refuses.
  [[nodiscard]] bool needs_fresh_checkpoint(model::Resource resource, const std::vector<std::string>& ids)
      EXCLUDES(mutex_);
  // After that wait: the checkpoint that was written lacks the holding, but may be older than it. One for a list that
  // is sent from the returned time on decides, in the same way. nullopt: it has decided.
  [[nodiscard]] std::optional<SteadyTime> needs_second_checkpoint(model::Resource resource,
                                                                  const std::vector<std::string>& ids) EXCLUDES(mutex_);
  // The whole checkpoint as it is now. If it was written since needs_fresh_checkpoint() was true, a holding that it
  // lacks ends if the file is at least Ledger::kMaxWriteDelay younger. To be called for each checkpoint that is
  // written, before AdmissionGate::checkpoint_written(), which lets the waiting answers begin.
  void confirm(const std::vector<model::Allocation>& written, CheckpointVersion version, SteadyTime written_at)
      EXCLUDES(mutex_);

  // Holdings by PodResources and the checkpoint. The first call defines the numbering of core ids granted before this
  // process. Held devices and interfaces that no scan has shown are in node() from now on, as vanished; other ids the
  // node does not have are skipped.
  void reconcile(const ShownAllocations& shown) EXCLUDES(mutex_);

  // State of the last reconcile(): see Ledger.
  [[nodiscard]] bool needs_newer_checkpoint() const EXCLUDES(mutex_);

  // The list to advertise now, empty when there is nothing to register; nullopt before the first snapshot.
  [[nodiscard]] std::optional<UnitList> unit_list(model::Resource resource) const EXCLUDES(mutex_);

  // `units` was sent to the kubelet, which gives no container the units that it shows Unhealthy.
  void note_published(model::Resource resource, const UnitList& units) EXCLUDES(mutex_);

  // All holdings now, through the device plugin and by claims: a copy.
  [[nodiscard]] std::vector<Holding> all_holdings() const EXCLUDES(mutex_);
  [[nodiscard]] bool holds_anything() const EXCLUDES(mutex_);
  // The list of the resource differs from that of a free node: a unit that it would offer is not, because its hardware
  // is held through another one, or one is there only because it is held.
  [[nodiscard]] bool withholds(model::Resource resource) const EXCLUDES(mutex_);
  [[nodiscard]] std::vector<int> held_cores() const EXCLUDES(mutex_);  // by any container; ascending, unique

 private:
  struct Obstacle {  // why hardware cannot be given
    refusals::Refusal refusal;
    std::optional<Holding> with;  // as far as the kubelet's checkpoint may show its end
  };

  [[nodiscard]] Preference prefer_among(model::Resource resource, const std::vector<std::string>& available,
                                        const std::vector<std::string>& must_include, int size,
                                        const PlacedIds* placement) REQUIRES(mutex_);
  void view_changed(const grant::NodeUnitsPtr& before) REQUIRES(mutex_);
  void learn(const ShownAllocations& shown) REQUIRES(mutex_);
  void learn_numbering(const core::NumberingEvidence& evidence) REQUIRES(mutex_);
  void learn_units(const model::Allocation& shown) REQUIRES(mutex_);
  void learn_claim(const model::Allocation& shown) REQUIRES(mutex_);
  [[nodiscard]] UnitUse use_of(model::Resource resource) const REQUIRES(mutex_);
  [[nodiscard]] std::vector<UnitFacts> facts_of(model::Resource resource) const REQUIRES(mutex_);
  [[nodiscard]] UnitChooser::Basis basis(CheckpointVersion version) const REQUIRES(mutex_);
  [[nodiscard]] refusals::OrRefusal<Holding> resolve(model::Resource resource,
                                                     const std::vector<std::string>& ids) const REQUIRES(mutex_);
  [[nodiscard]] std::optional<Obstacle> obstacle(const Holding& asked, CheckpointVersion version) const
      REQUIRES(mutex_);
  [[nodiscard]] refusals::OrRefusal<grant::Grant> give(Holding asked, CheckpointVersion version) REQUIRES(mutex_);
  [[nodiscard]] std::string left() const REQUIRES(mutex_);

  const grant::GrantOptions options_;
  const core::OfferPolicy offer_;
  const VersionSource version_;
  const Clock& clock_;
  const std::string claim_driver_;

  mutable Mutex mutex_;
  NodeView view_ GUARDED_BY(mutex_);
  bool numbering_known_ GUARDED_BY(mutex_) = false;  // the view's LNC is that of the ids held from before this process
  Ledger ledger_ GUARDED_BY(mutex_);
  UnitChooser chooser_ GUARDED_BY(mutex_);
  ListOverlap list_overlap_ GUARDED_BY(mutex_);
  std::map<model::Resource, std::map<std::string, SteadyTime>> given_ GUARDED_BY(mutex_);  // last, by id
  // While an Allocate waits for a fresh checkpoint: the version of its admission, which no write ends meanwhile.
  CheckpointVersion waiting_version_ GUARDED_BY(mutex_) = 0;
};

}  // namespace neuron::plugin
