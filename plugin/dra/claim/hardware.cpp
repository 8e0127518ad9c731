#include "plugin/dra/claim/hardware.h"

#include <algorithm>
#include <iterator>

#include "agent/base/parse.h"
#include "agent/core/logical_cores.h"
#include "agent/core/pool_names.h"
#include "plugin/dra/slices/pool.h"

namespace neuron::plugin::dra {
namespace {

constexpr int kPlaces = 1024;  // device * kPlaces + place is the number of a place

template <typename T>
std::vector<T> merged(const std::vector<T>& one, const std::vector<T>& other) {
  std::vector<T> both;
  std::set_union(one.begin(), one.end(), other.begin(), other.end(), std::back_inserter(both));
  return both;
}

// The first of both; nullptr: none.
template <typename T>
const T* first_common(const std::vector<T>& one, const std::vector<T>& other) {
  const auto found = std::find_if(one.begin(), one.end(),
                                  [&](const T& each) { return std::binary_search(other.begin(), other.end(), each); });
  return found == one.end() ? nullptr : &*found;
}

std::string quoted(const std::string& pool_device) {
  return "\"" + printable(pool_device, 64) + "\"";
}

Error not_here(const std::string& pool_device) {
  return make_error(ErrorCode::not_found, quoted(pool_device) +
                                              " is allocated, but this node has no such device; delete the pod, so "
                                              "that a new one is scheduled onto present devices");
}

struct Named {
  core::PoolName name;
  core::PoolHardware hardware;
};

// Errors: also where only a part of the named hardware is there.
Result<Named> find(const grant::NodeUnits& node, const std::string& pool_device) {
  const auto name = core::parse_pool_name(pool_device);
  if (!name) return fail(ErrorCode::invalid_argument, quoted(pool_device) + " is not a device that this driver offers");
  const model::HostScan& host = node.snapshot().host;
  core::PoolHardware hardware = core::hardware_of(*name, host);
  if (hardware.devices.empty() && hardware.efas.empty()) return fail(not_here(pool_device));
  if (!std::holds_alternative<core::EfaName>(*name) &&
      hardware.devices.size() != core::named_devices(*name, host).size()) {
    return fail(not_here(pool_device));
  }
  return Named{*name, std::move(hardware)};
}

model::Health worst_health(const grant::NodeUnits& node, const Named& named) {
  std::optional<model::Health> worst;
  const auto add = [&](model::Resource resource, int unit) {
    const model::Health& health = node.health_of(resource, unit);
    if (!worst || model::badness(health.state) > model::badness(worst->state)) worst = health;
  };
  if (std::holds_alternative<core::CoreName>(named.name) && !named.hardware.cores.empty()) {
    for (const int core : named.hardware.cores) add(model::Resource::neuroncore, core);
  } else {
    for (const int device : named.hardware.devices) add(model::Resource::neuron, device);
  }
  for (const std::string& efa : named.hardware.efas) {
    if (const auto unit = node.unit_of(model::Resource::efa, efa)) add(model::Resource::efa, *unit);
  }
  return worst.value_or(model::Health());
}

}  // namespace

void Hardware::add(const Hardware& more) {
  for (const HeldDevice& held : more.devices) {
    const auto at = std::lower_bound(devices.begin(), devices.end(), held.device,
                                     [](const HeldDevice& each, int device) { return each.device < device; });
    if (at == devices.end() || at->device != held.device) {
      devices.insert(at, held);
    } else if (at->places.empty() || held.places.empty()) {
      at->places.clear();
    } else {
      at->places = merged(at->places, held.places);
    }
  }
  efas = merged(efas, more.efas);
}

std::optional<std::string> overlap(const Hardware& one, const Hardware& other) {
  for (const HeldDevice& held : one.devices) {
    for (const HeldDevice& theirs : other.devices) {
      if (held.device != theirs.device) continue;
      const std::string device = "neuron" + std::to_string(held.device);
      if (held.places.empty() || theirs.places.empty()) return device;
      if (const int* place = first_common(held.places, theirs.places)) {
        return "core position " + std::to_string(*place) + " of " + device;
      }
    }
  }
  if (const std::string* efa = first_common(one.efas, other.efas)) return "interface " + *efa;
  return std::nullopt;
}

Result<Hardware> hardware_of(const grant::NodeUnits& node, const std::string& pool_device) {
  TRY_ASSIGN(const Named named, find(node, pool_device));
  Hardware hardware{{}, named.hardware.efas};
  for (const int device : named.hardware.devices) hardware.devices.push_back({device, {}});
  if (const auto* core = std::get_if<core::CoreName>(&named.name)) {
    const auto& lnc = node.snapshot().host.lnc;
    if (!lnc || named.hardware.cores.empty()) return fail(not_here(pool_device));
    for (int i = 0; i < lnc->value; ++i) hardware.devices[0].places.push_back(core->core * lnc->value + i);
  }
  return hardware;
}

Result<void> check_offered(const grant::NodeUnits& node, const std::string& pool_device) {
  const auto name = core::parse_pool_name(pool_device);
  const auto* group = name ? std::get_if<core::GroupName>(&*name) : nullptr;
  if (group == nullptr) return {};
  const std::vector<Group> groups = groups_of(node);
  const bool is_offered =
      std::any_of(groups.begin(), groups.end(), [&](const Group& one) { return one.name == *group; });
  return is_offered ? Result<void>() : fail(not_here(pool_device));
}

Result<void> check_health(const grant::NodeUnits& node, const AllocationResult& result, const UnhealthyTaint& taint) {
  TRY_ASSIGN(const Named named, find(node, result.device));
  const model::Health health = worst_health(node, named);
  if (health.state != model::HealthState::unhealthy) return {};
  if (!taint.effect.empty() && tolerates(result.tolerations, taint.key, health.reason, taint.effect)) return {};
  std::string why =
      quoted(result.device) + " is unhealthy: " + (health.sentence.empty() ? health.reason : health.sentence);
  if (!health.action.empty()) why += "; " + health.action;
  return fail(ErrorCode::failed_precondition, why + "; delete the pod, so that a new one gets another device");
}

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

Hardware place_of(int number) {
  return {{{number / kPlaces, {number % kPlaces}}}, {}};
}

}  // namespace neuron::plugin::dra
