#include "plugin/dra/serve/node_board.h"

#include <algorithm>
#include <utility>

#include "agent/base/parse.h"

namespace neuron::plugin::dra {
namespace {

using model::Health;
using model::Resource;

const Health* worst_health(const grant::NodeUnits& node, const std::vector<int>& devices) {
  const Health* worst = nullptr;
  for (const int index : devices) {
    if (node.device(index) == nullptr) return nullptr;
    const Health& one = node.health_of(Resource::neuron, index);
    if (worst == nullptr || badness(one.state) > badness(worst->state)) worst = &one;
  }
  return worst;
}

// nullptr: the snapshot lacks the hardware.
const Health* find_health(const grant::NodeUnits& node, const PoolDevice& device) {
  const auto name = parse_pool_name(device.name);
  if (!name) return nullptr;
  if (const auto* efa = std::get_if<EfaName>(&*name)) {
    const std::vector<int>& units = node.units(Resource::efa);
    const auto found =
        std::ranges::find_if(units, [&](int unit) { return efa_label(node.efa(unit).name) == efa->label; });
    return found == units.end() ? nullptr : &node.health_of(Resource::efa, *found);
  }
  const auto* core = std::get_if<CoreName>(&*name);
  if (core != nullptr && node.device(core->device) != nullptr) {
    const std::vector<int> ids = node.cores_of(Resource::neuron, core->device);
    const auto at = static_cast<std::size_t>(core->core);
    if (at < ids.size()) return &node.health_of(Resource::neuroncore, ids[at]);
  }
  return worst_health(node, device.devices);
}

DeviceHealth::State state_of(const Health& health) {
  switch (health.state) {
    case model::HealthState::unhealthy:
      return DeviceHealth::State::unhealthy;
    case model::HealthState::unknown:
      return DeviceHealth::State::unknown;
    case model::HealthState::healthy:
    case model::HealthState::degraded:
      break;
  }
  return DeviceHealth::State::healthy;
}

std::string message_of(const Health& health) {
  std::string text = health.sentence;
  if (!health.action.empty()) text += (text.empty() ? "" : "; ") + health.action;
  return printable(text, kMostMessage - std::string_view("...").size());
}

DeviceHealth health_of_absent(const PoolDevice& device, const model::HostScan& host) {
  using Kind = model::ScanPart::Kind;
  if (is_unread_list(host, device.kind == DeviceKind::efa ? Kind::pci : Kind::devices)) {
    return {device.name, DeviceHealth::State::unknown,
            "the list it would be on cannot be read and was not read since the driver started"};
  }
  return {device.name, DeviceHealth::State::unhealthy, "it is no longer on this node; delete the pod that holds it"};
}

}  // namespace

HealthList make_health_list(const Pool& pool, const grant::NodeUnits& node, std::string pool_name) {
  HealthList list{std::move(pool_name), {}};
  list.devices.reserve(pool.devices.size());
  for (const PoolDevice& device : pool.devices) {
    const Health* health = find_health(node, device);
    list.devices.push_back(health != nullptr ? DeviceHealth{device.name, state_of(*health), message_of(*health)}
                                             : health_of_absent(device, node.snapshot().host));
  }
  return list;
}

void NodeBoard::set_node(grant::NodeUnitsPtr node) {
  const MutexLock lock(mutex_);
  view_.set_newest(std::move(node));
  held_ = sources_.devices();
  choose_numbering();
  publish();
}

// That of the held devices in the claims' record; else the one used so far; else the node's own.
void NodeBoard::choose_numbering() {
  const HeldNumbering held = sources_.numbering ? sources_.numbering() : HeldNumbering{};
  std::optional<int> lnc = view_.scanned_lnc();
  if (held.any && (held.lnc || view_.lnc())) lnc = held.lnc ? held.lnc : view_.lnc();
  view_.follow_lnc(lnc, "claims", "claims hold devices");
}

void NodeBoard::held_changed() {
  const MutexLock lock(mutex_);
  std::vector<std::string> held = sources_.devices();
  if (!view_.node() || held == held_) return;
  held_ = std::move(held);
  choose_numbering();
  publish();
}

void NodeBoard::marks_changed() {
  const MutexLock lock(mutex_);
  if (view_.node()) publish();
}

grant::NodeUnitsPtr NodeBoard::node() const {
  const MutexLock lock(mutex_);
  return view_.node();
}

grant::NodeUnitsPtr NodeBoard::numbered(grant::NodeUnitsPtr scanned) const {
  const MutexLock lock(mutex_);
  return view_.read(std::move(scanned));
}

model::SnapshotPtr NodeBoard::numbered(model::SnapshotPtr scanned) const {
  const MutexLock lock(mutex_);
  return view_.read(std::move(scanned));
}

bool NodeBoard::is_empty() const {
  const MutexLock lock(mutex_);
  return view_.node() && empty_;
}

void NodeBoard::publish() {
  const grant::NodeUnits& node = *view_.node();
  Pool pool = make_pool(node, settings_.pool, held_);
  empty_ = pool.devices.empty();
  auto health = std::make_shared<const HealthList>(make_health_list(pool, node, settings_.pool_name));
  if (!health_ || *health != *health_) {
    health_ = health;
    health_hub_.publish(std::move(health));
  }
  if (sources_.mark) sources_.mark(pool, node);
  publish_(std::move(pool));
}

}  // namespace neuron::plugin::dra
