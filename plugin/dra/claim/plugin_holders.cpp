#include "plugin/dra/claim/plugin_holders.h"

#include <algorithm>

#include "agent/core/pool_names.h"
#include "plugin/dra/claim/claim_units.h"

namespace neuron::plugin::dra {
namespace {

using model::Resource;

// Units of whole devices and of cores are devices of the pool, by the same names.
std::string pool_name_of(const grant::NodeUnits& node, Resource resource, int unit) {
  const int device = node.device_of(resource, unit);
  if (resource != Resource::neuroncore) return core::to_string(core::PoolName{core::DeviceName{device}});
  const std::vector<int> cores = node.cores_of(Resource::neuron, device);
  const auto at = std::find(cores.begin(), cores.end(), unit);
  return core::to_string(core::PoolName{core::CoreName{device, static_cast<int>(at - cores.begin())}});
}

void add_unit(Hardware& hardware, const grant::NodeUnits& node, Resource resource, const std::string& id) {
  const auto unit = node.unit_of(resource, id);
  const std::vector<int>& all = node.units(resource);
  if (!unit || !std::binary_search(all.begin(), all.end(), *unit)) return;
  if (resource == Resource::efa) {
    hardware.add({{}, {node.efa(*unit).name}});
  } else if (const auto some = hardware_of(node, pool_name_of(node, resource, *unit))) {
    hardware.add(*some);
  }
}

// The first of them; nullptr: none.
const PluginHolder* holder_of(const PluginHolders& holders, const Hardware& hardware) {
  const auto found = std::find_if(holders.begin(), holders.end(), [&](const PluginHolder& holder) {
    return overlap(hardware, holder.hardware).has_value();
  });
  return found == holders.end() ? nullptr : &*found;
}

// A pod that only the checkpoint names is known by its uid.
std::string container_of(const model::Allocation& allocation) {
  const std::string name = model::holder_name(allocation);
  return name.empty() ? model::holder_of(allocation) : name;
}

// Of a claim of another driver. Units that this node lacks are left out.
PluginHolder holder_by_claim(const grant::NodeUnits& node, const model::Allocation& allocation) {
  PluginHolder holder{container_of(allocation), allocation.resource_name, true, {}};
  for (const std::string& id : allocation.ids) {
    if (const auto some = hardware_of(node, id)) holder.hardware.add(*some);
  }
  return holder;
}

}  // namespace

PluginHolders plugin_holders(const grant::NodeUnits& node, const std::vector<model::Allocation>& listed,
                             const std::string& driver) {
  PluginHolders holders;
  for (const model::Allocation& allocation : listed) {
    if (!allocation.claim.empty()) {
      if (allocation.resource_name == driver) continue;
      PluginHolder holder = holder_by_claim(node, allocation);
      if (!holder.hardware.empty()) holders.push_back(std::move(holder));
      continue;
    }
    const auto resource = model::parse_resource(allocation.resource_name);
    if (!resource) continue;
    PluginHolder holder{container_of(allocation), allocation.resource_name, false, {}};
    for (const std::string& id : allocation.ids) add_unit(holder.hardware, node, *resource, id);
    if (!holder.hardware.empty()) holders.push_back(std::move(holder));
  }
  return holders;
}

void taint_held(Pool& pool, const grant::NodeUnits& node, const PluginHolders& holders, const std::string& driver) {
  if (holders.empty()) return;
  for (PoolDevice& device : pool.devices) {
    const auto hardware = hardware_of(node, device.name);
    const PluginHolder* holder = hardware ? holder_of(holders, *hardware) : nullptr;
    if (holder == nullptr) continue;
    device.unhealthy = true;
    device.taints.push_back({driver + "/held", holder->is_claim ? "other-driver" : "device-plugin", "NoSchedule"});
  }
}

std::optional<Error> conflict(const PluginHolders& holders, const Hardware& hardware) {
  for (const PluginHolder& holder : holders) {
    const auto both = overlap(hardware, holder.hardware);
    if (!both) continue;
    return make_error(
        ErrorCode::failed_precondition,
        *both + " is held by " + holder.container + ", which was allocated it through " + holder.resource +
            (holder.is_claim ? ", another claim driver on this node" : " when a device plugin served this node") +
            "; retried automatically, succeeds once that pod has ended");
  }
  return std::nullopt;
}

}  // namespace neuron::plugin::dra
