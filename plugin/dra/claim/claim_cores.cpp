#include "plugin/dra/claim/claim_cores.h"

#include <algorithm>
#include <utility>

#include "agent/core/logical_cores.h"

namespace neuron::plugin::dra {
namespace {

// Cores as the memory gate knows them to be held: device and place in one number.
constexpr int kPlaces = 1024;

}  // namespace

std::vector<MemoryGate::Core> cores_of(const grant::NodeUnits& node, const Hardware& hardware) {
  const model::HostScan& host = node.snapshot().host;
  std::vector<MemoryGate::Core> cores;
  for (const HeldDevice& held : hardware.devices) {
    const model::NeuronDevice* device = node.device(held.device);
    if (device == nullptr) continue;
    std::vector<int> places = held.places;
    const int count = device->physical_cores ? device->physical_cores->value : 0;
    for (int place = 0; held.places.empty() && place < count; ++place) places.push_back(place);
    for (const core::CorePlace& place : core::core_places(*device, host, places)) {
      const int id = held.device * node.topology().cores_per_device + place.place / (host.lnc ? host.lnc->value : 1);
      MemoryGate::Core core{"core " + std::to_string(id), held.device, place.physical, {}};
      for (const int other : place.others) {
        if (std::binary_search(places.begin(), places.end(), other)) continue;
        core.maybe_of.push_back(held.device * kPlaces + other);
      }
      cores.push_back(std::move(core));
    }
  }
  return cores;
}

bool are_held(const ClaimStore& store, const std::vector<int>& cores) {
  return std::any_of(cores.begin(), cores.end(), [&](int core) {
    return store.is_held({{{core / kPlaces, {core % kPlaces}}}, {}});
  });
}

std::string owners_of(const grant::NodeUnitsPtr& node, int index, int physical_core) {
  const model::NeuronDevice* device = node ? node->device(index) : nullptr;
  return device == nullptr ? "" : core::pids_on_core(*device, physical_core);
}

}  // namespace neuron::plugin::dra
