#include "plugin/dra/serve/node_board.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "agent/holdings/held.h"

namespace neuron::plugin::dra {
namespace {

std::optional<int> lnc_of(const model::Snapshot& snapshot) {
  const auto& lnc = snapshot.host.lnc;
  return lnc ? std::optional(lnc->value) : std::nullopt;
}

// nullptr: it has this one.
model::SnapshotPtr with_other_lnc(const model::Snapshot& snapshot, std::optional<int> lnc) {
  if (!lnc || lnc_of(snapshot) == lnc) return nullptr;
  return std::make_shared<const model::Snapshot>(holdings::with_held(snapshot, {}, lnc));
}

grant::NodeUnitsPtr with_lnc(grant::NodeUnitsPtr node, std::optional<int> lnc) {
  auto other = with_other_lnc(node->snapshot(), lnc);
  return other ? std::make_shared<const grant::NodeUnits>(std::move(other), *node) : node;
}

}  // namespace

void NodeBoard::set_node(grant::NodeUnitsPtr node) {
  const MutexLock lock(mutex_);
  newest_ = std::move(node);
  held_ = ports_.held();
  choose_numbering();
  show();
}

// Of what claims hold, as their record has it; else what it was so far; else the node's own.
void NodeBoard::choose_numbering() {
  const std::optional<int> scanned = lnc_of(newest_->snapshot());
  const HeldNumbering held = ports_.numbering ? ports_.numbering() : HeldNumbering{};
  const std::optional<int> before = std::exchange(lnc_, scanned);
  if (held.any && held.lnc) {
    lnc_ = held.lnc;
  } else if (held.any && before) {
    lnc_ = before;
  }
  node_ = with_lnc(newest_, lnc_);
  if (lnc_ == scanned) {
    if (before && before != lnc_ && lnc_) spdlog::info("core numbering changed lnc={} was={}", *lnc_, *before);
    waiting_lnc_.reset();
  } else if (waiting_lnc_ != scanned) {
    waiting_lnc_ = scanned;
    spdlog::warn(
        "LNC change deferred lnc={} in_use={}: claims hold devices, so all cores keep their numbers until these claims "
        "end; drain the node to apply the change",
        scanned ? std::to_string(*scanned) : "unknown", *lnc_);
  }
}

void NodeBoard::held_changed() {
  const MutexLock lock(mutex_);
  std::vector<std::string> held = ports_.held();
  if (!node_ || held == held_) return;
  held_ = std::move(held);
  choose_numbering();
  show();
}

void NodeBoard::marks_changed() {
  const MutexLock lock(mutex_);
  if (node_) show();
}

grant::NodeUnitsPtr NodeBoard::node() const {
  const MutexLock lock(mutex_);
  return node_;
}

grant::NodeUnitsPtr NodeBoard::numbered(grant::NodeUnitsPtr scanned) const {
  const MutexLock lock(mutex_);
  return with_lnc(std::move(scanned), lnc_);
}

model::SnapshotPtr NodeBoard::numbered(model::SnapshotPtr scanned) const {
  const MutexLock lock(mutex_);
  auto other = scanned ? with_other_lnc(*scanned, lnc_) : nullptr;
  return other ? other : scanned;
}

bool NodeBoard::is_empty() const {
  const MutexLock lock(mutex_);
  return node_ && empty_;
}

void NodeBoard::show() {
  Pool pool = make_pool(*node_, settings_.pool, held_);
  empty_ = pool.devices.empty();
  auto health = std::make_shared<const HealthList>(make_health_list(pool, *node_, settings_.pool_name));
  if (!health_ || *health != *health_) {
    health_ = health;
    ports_.health.publish(std::move(health));
  }
  if (ports_.mark) ports_.mark(pool, *node_);
  ports_.publish(std::move(pool));
}

}  // namespace neuron::plugin::dra
