#include "plugin/kubelet/node_view.h"

#include <spdlog/spdlog.h>

#include <string>
#include <utility>

#include "agent/base/sorted.h"
#include "agent/health/assess.h"

namespace neuron::plugin {
namespace {

std::optional<int> lnc_of(const model::Snapshot& snapshot) {
  const auto& lnc = snapshot.host.lnc;
  return lnc ? std::optional(lnc->value) : std::nullopt;
}

}  // namespace

bool NodeView::reads_as_scanned(const model::Snapshot& scan) const {
  return (!lnc_ || lnc_of(scan) == lnc_) && held_.devices.empty() && held_.efas.empty();
}

model::SnapshotPtr NodeView::read(model::SnapshotPtr scan) const {
  if (!scan || reads_as_scanned(*scan)) return scan;
  return std::make_shared<const model::Snapshot>(health::with_held(*scan, held_, lnc_));
}

grant::NodeUnitsPtr NodeView::read(grant::NodeUnitsPtr scan) const {
  if (!scan || reads_as_scanned(scan->snapshot())) return scan;
  return std::make_shared<const grant::NodeUnits>(
      std::make_shared<const model::Snapshot>(health::with_held(scan->snapshot(), held_, lnc_)), *scan);
}

void NodeView::set_newest(grant::NodeUnitsPtr scan) {
  newest_ = std::move(scan);
  node_ = read(newest_);
}

std::optional<int> NodeView::scanned_lnc() const {
  return lnc_of(newest_->snapshot());
}

void NodeView::set_lnc(std::optional<int> lnc) {
  if (std::exchange(lnc_, lnc) != lnc) node_ = read(newest_);
}

void NodeView::follow_lnc(std::optional<int> lnc, std::string_view holders, std::string_view hold) {
  const std::optional<int> before = lnc_;
  const std::optional<int> scanned = scanned_lnc();
  set_lnc(lnc);
  if (lnc == scanned) {
    if (before && lnc && before != lnc) spdlog::info("core numbering changed lnc={} was={}", *lnc, *before);
    return forget_deferred();
  }
  if (deferred_lnc_ == scanned) return;
  deferred_lnc_ = scanned;
  spdlog::warn(
      "LNC change deferred lnc={} in_use={}: {}, so all cores keep their numbers until these {} end; drain the node to "
      "apply the change",
      scanned ? std::to_string(*scanned) : "unknown", *lnc, hold, holders);
}

bool NodeView::add_held_device(int index) {
  if (node_->device(index) != nullptr) return false;
  if (!health::note_held_device(held_, index, newest_->snapshot().host)) return false;
  node_ = read(newest_);
  return true;
}

bool NodeView::add_held_efa(std::string_view name) {
  if (node_->unit_of(model::Resource::efa, name) || !health::note_held_efa(held_, name)) return false;
  node_ = read(newest_);
  return true;
}

std::vector<holdings::Holding> holdings_of(const grant::NodeUnits& node, const core::Hardware& hardware,
                                           const holdings::Holding& holder) {
  holdings::Holding cores = holder;
  cores.devices = hardware.device_indices();
  cores.cores = core::core_ids_of(hardware, node.snapshot().host);
  cores.units = cores.resource == model::Resource::neuroncore ? cores.cores : cores.devices;
  holdings::Holding nics = holder;
  nics.resource = model::Resource::efa;
  for (const std::string& name : hardware.efas) {
    if (const auto unit = node.unit_of(model::Resource::efa, name)) nics.units.push_back(*unit);
  }
  nics.units = sorted_unique(std::move(nics.units));
  std::vector<holdings::Holding> all;
  if (!cores.devices.empty()) all.push_back(std::move(cores));
  if (!nics.units.empty()) all.push_back(std::move(nics));
  return all;
}

}  // namespace neuron::plugin
