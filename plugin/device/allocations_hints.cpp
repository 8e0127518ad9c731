// Hints of the allocations for the allocator, and its details for the log; allocations.cpp chooses.
#include <algorithm>
#include <set>
#include <utility>

#include "plugin/device/allocations.h"

namespace neuron::plugin {

// The interfaces, or the devices and cores, that the asking container was given a moment ago.
const holdings::Holding* Allocations::companion(model::Resource resource, holdings::CheckpointVersion version) const {
  return model::has_cores(resource) ? ledger_.nics_of_admission(resource, version)
                                    : ledger_.cores_of_admission(resource, version);
}

void Allocations::add_hints(model::Resource resource, const std::vector<int>& offered,
                            allocator::ChooseRequest& request, holdings::CheckpointVersion version) const {
  // A container whose unit is offered has most likely ended. That is no proof (forget_ended), but only steers here.
  constexpr std::chrono::milliseconds kLikelyEnded{300};
  const std::vector<bool> ended = ledger_.ended_when_given(resource, offered, clock_.now() - kLikelyEnded);
  std::set<int> held;
  std::set<int> held_efas;
  std::set<int> avoid;
  const auto add = [&](const holdings::Holding& holding, bool likely_ended) {
    if (model::has_cores(resource) && (holding.resource != resource || !holding.claim.empty())) {
      avoid.insert(holding.devices.begin(), holding.devices.end());
    }
    if (likely_ended) return;
    if (!model::has_cores(holding.resource)) held_efas.insert(holding.units.begin(), holding.units.end());
    held.insert(holding.devices.begin(), holding.devices.end());
  };
  for (std::size_t i = 0; i < ledger_.holdings().size(); ++i) add(ledger_.holdings()[i], ended[i]);
  for (const holdings::Holding& claimed : ledger_.claimed()) add(claimed, false);
  request.avoid_devices.assign(avoid.begin(), avoid.end());
  const auto is_well = [&](model::Resource of, int unit) REQUIRES(mutex_) {
    return node_->health_of(of, unit).state != model::HealthState::unhealthy;
  };
  // NICs that come first are chosen beside devices that can be given whole, if the node gives any so.
  std::vector<int> free_whole;
  bool gives_whole = false;
  for (const int device : node_->units(model::Resource::neuron)) {
    const bool whole = is_offered(model::Resource::neuron, device) || is_offered(model::Resource::neurondevice, device);
    gives_whole = gives_whole || whole;
    if (!is_well(model::Resource::neuron, device) || held.contains(device)) continue;
    request.free_devices.push_back(device);
    if (whole) free_whole.push_back(device);
  }
  if (gives_whole) request.free_devices = std::move(free_whole);
  if (model::has_cores(resource)) {
    request.reluctant_devices = withheld_devices(resource);
    for (const int efa : node_->units(model::Resource::efa)) {
      if (is_well(model::Resource::efa, efa) && !held_efas.contains(efa)) request.free_efas.push_back(efa);
    }
  } else if (const auto sizes = sizes_beside_.find(static_cast<std::size_t>(std::max(request.size, 0)));
             sizes != sizes_beside_.end()) {
    request.likely_sizes = sizes->second;
  }
  if (const holdings::Holding* beside = companion(resource, version)) {
    (model::has_cores(resource) ? request.prefer_efas : request.prefer_devices) =
        model::has_cores(resource) ? beside->units : beside->devices;
  }
}

// Devices that the kubelet does not give through another resource of cores now.
std::vector<int> Allocations::withheld_devices(model::Resource resource) const {
  std::set<int> devices;
  for (const auto& [other, units] : withheld_) {
    if (other == resource || !model::has_cores(other)) continue;
    devices.insert(units.begin(), units.end());
  }
  return {devices.begin(), devices.end()};
}

// Remembers the sizes of a container that has cores and NICs: the next one like it may ask for the NICs first.
void Allocations::learn_size(model::Resource resource, const std::vector<int>& units,
                             holdings::CheckpointVersion version) {
  constexpr std::size_t kRemembered = 4;
  const holdings::Holding* beside = companion(resource, version);
  if (beside == nullptr) return;
  const bool of_cores = model::has_cores(resource);
  const std::size_t efas = of_cores ? beside->units.size() : units.size();
  // As many devices as its cores fill: where they lie scattered, the next container's need not.
  const std::size_t cores = of_cores ? hardware_of(resource, units).cores.size() : beside->cores.size();
  const auto each = static_cast<std::size_t>(std::max(node_->topology().cores_per_device, 1));
  const int devices = static_cast<int>((cores + each - 1) / each);
  std::vector<int>& sizes = sizes_beside_[efas];
  std::erase(sizes, devices);
  sizes.insert(sizes.begin(), devices);
  if (sizes.size() > kRemembered) sizes.pop_back();
}

// "neuron=12 neuroncore=48 efa=6": healthy units that no container holds, for the log.
std::string Allocations::left() const {
  std::string text;
  for (const model::Resource resource : {model::Resource::neuron, model::Resource::neuroncore, model::Resource::efa}) {
    std::set<int> taken;
    for (const holdings::Holding& holding : ledger_.holdings()) {
      if (holding.resource == resource) taken.insert(holding.units.begin(), holding.units.end());
    }
    if (resource == model::Resource::efa) {
      for (const int efa : claimed_efas()) taken.insert(efa);
    }
    const std::vector<int> blocked = model::has_cores(resource) ? ledger_.blocked_cores(resource) : std::vector<int>{};
    const auto units = node_->units(resource);
    const auto free = std::count_if(units.begin(), units.end(), [&](int unit) REQUIRES(mutex_) {
      const auto cores = node_->cores_of(resource, unit);
      return !taken.contains(unit) && is_offered(resource, unit) &&
             node_->health_of(resource, unit).state != model::HealthState::unhealthy &&
             std::none_of(cores.begin(), cores.end(),
                          [&](int core) { return std::binary_search(blocked.begin(), blocked.end(), core); });
    });
    if (!units.empty())
      text += (text.empty() ? "" : " ") + std::string(model::short_name(resource)) + "=" + std::to_string(free);
  }
  return text;
}

void Allocations::note_published(model::Resource resource, const UnitList& units) {
  const MutexLock lock(mutex_);
  std::vector<int>& withheld = withheld_[resource];
  withheld.clear();
  for (const UnitState& unit : units) {
    if (unit.healthy || !node_) continue;
    const auto known = node_->unit_of(resource, unit.id);
    if (!known) continue;
    withheld.push_back(resource == model::Resource::neuroncore ? node_->device_of_core(*known) : *known);
  }
}

}  // namespace neuron::plugin
