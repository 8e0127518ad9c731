// Which node the allocations sees: the newest scan, read in the numbering of what is held, with what is held and not
// there.
#include <spdlog/spdlog.h>

#include <algorithm>

#include "agent/base/parse.h"
#include "agent/holdings/held.h"
#include "plugin/device/allocations.h"

namespace neuron::plugin {
namespace {

bool holds_cores(const holdings::Ledger& ledger) {
  const auto of_cores = [](const holdings::Holding& one) { return model::has_cores(one.resource); };
  const auto& held = ledger.holdings();
  const auto& claimed = ledger.claimed();
  return std::any_of(held.begin(), held.end(), of_cores) || std::any_of(claimed.begin(), claimed.end(), of_cores);
}

}  // namespace

void Allocations::set_node(grant::NodeUnitsPtr node) {
  const MutexLock lock(mutex_);
  newest_ = std::move(node);
  if (newest_) show_newest();
}

grant::NodeUnitsPtr Allocations::node() const {
  const MutexLock lock(mutex_);
  return node_;
}

// Nothing is held that it may lack, and its core ids are those that are held.
bool Allocations::reads_as_scanned(const model::Snapshot& scanned) const {
  const auto& lnc = scanned.host.lnc;
  const bool same_numbering = !lnc_ || (lnc && lnc->value == *lnc_);
  return same_numbering && held_unseen_.devices.empty() && held_unseen_.efas.empty();
}

model::SnapshotPtr Allocations::numbered(model::SnapshotPtr scanned) const {
  const MutexLock lock(mutex_);
  if (!scanned || reads_as_scanned(*scanned)) return scanned;
  return std::make_shared<const model::Snapshot>(holdings::with_held(*scanned, held_unseen_, lnc_));
}

void Allocations::show_newest() {
  grant::NodeUnitsPtr next = newest_;
  if (!reads_as_scanned(newest_->snapshot())) {
    next = std::make_shared<const grant::NodeUnits>(
        std::make_shared<const model::Snapshot>(holdings::with_held(newest_->snapshot(), held_unseen_, lnc_)),
        *newest_);
  }
  if (const auto& lnc = next->snapshot().host.lnc; lnc && !lnc_) lnc_ = lnc->value;
  if (node_) {
    // Units of efa are positions, which move when an interface with a lower address appears.
    ledger_.renumber(model::Resource::efa, [&](int unit) REQUIRES(mutex_) -> std::optional<int> {
      const auto now = next->unit_of(model::Resource::efa, node_->id_of(model::Resource::efa, unit));
      return now ? std::optional(*now) : std::nullopt;
    });
  }
  node_ = std::move(next);
}

void Allocations::adopt_numbering() {
  const MutexLock lock(mutex_);
  if (!newest_ || !lnc_) return;
  const auto& scanned = newest_->snapshot().host.lnc;
  if (!scanned || scanned->value == *lnc_) {
    waiting_lnc_.reset();
    return;
  }
  if (holds_cores(ledger_)) {
    if (waiting_lnc_ == scanned->value) return;
    waiting_lnc_ = scanned->value;
    spdlog::warn(
        "LNC change deferred lnc={} in_use={}: containers hold cores, so all cores keep their numbers until these "
        "containers end; drain the node to apply the change",
        scanned->value, *lnc_);
    return;
  }
  spdlog::info("core numbering changed lnc={} was={}", scanned->value, *lnc_);
  lnc_ = scanned->value;
  waiting_lnc_.reset();
  show_newest();
}

// True: ids are read with another LNC than before.
bool Allocations::learn_numbering(const core::NumberingEvidence& evidence) {
  const model::HostScan& host = newest_->snapshot().host;
  if (numbering_known_ || !core::physical_cores_per_device(host)) return false;
  numbering_known_ = true;
  if (lnc_ && (evidence.given.empty() || holds_cores(ledger_))) return false;
  const auto lnc = core::lnc_in_use(evidence, host);
  if (!lnc || lnc == lnc_) return false;
  lnc_ = lnc;
  return true;
}

// True: it names hardware that no scan has shown.
bool Allocations::learn_unseen(const model::Allocation& shown) {
  const auto resource = model::parse_resource(shown.resource_name);
  if (!resource) return false;
  constexpr int kMaxUnit = 65535;
  const model::HostScan& host = newest_->snapshot().host;
  const int cores = core::physical_cores_per_device(host).value_or(0) / lnc_.value_or(1);
  bool unseen = false;
  for (const std::string& id : shown.ids) {
    if (resource == model::Resource::efa) {
      unseen = (!node_->unit_of(model::Resource::efa, id) && holdings::note_held_efa(held_unseen_, id)) || unseen;
      continue;
    }
    auto index = parse_int(id, 0, kMaxUnit);
    if (index && resource == model::Resource::neuroncore)
      index = cores > 0 ? std::optional(*index / cores) : std::nullopt;
    if (!index || node_->device(*index) != nullptr) continue;
    unseen = holdings::note_held_device(held_unseen_, *index, host) || unseen;
  }
  return unseen;
}

void Allocations::learn(const holdings::ShownAllocations& shown) {
  bool changed = learn_numbering(shown.numbering);
  for (const auto* source : {&shown.listed, &shown.stored}) {
    for (const model::Allocation& one : *source) changed = learn_unseen(one) || changed;
  }
  for (const model::Allocation& one : shown.claims) changed = learn_unseen_claim(one) || changed;
  if (changed) show_newest();
}

}  // namespace neuron::plugin
