#include "plugin/dra/plugin_holders.h"

#include <algorithm>

#include "agent/core/pool_names.h"
#include "plugin/dra/claim_units.h"

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

bool is_held(const PluginHolders& holders, const Hardware& hardware) {
  return std::any_of(holders.begin(), holders.end(),
                     [&](const PluginHolder& holder) { return overlap(hardware, holder.hardware).has_value(); });
}

}  // namespace

PluginHolders plugin_holders(const grant::NodeUnits& node, const std::vector<model::Allocation>& listed) {
  PluginHolders holders;
  for (const model::Allocation& allocation : listed) {
    const auto resource = model::parse_resource(allocation.resource_name);
    if (!allocation.claim.empty() || !resource) continue;
    PluginHolder holder{model::holder_name(allocation), allocation.resource_name, {}};
    for (const std::string& id : allocation.ids) add_unit(holder.hardware, node, *resource, id);
    if (!holder.hardware.empty()) holders.push_back(std::move(holder));
  }
  return holders;
}

void taint_held(Pool& pool, const grant::NodeUnits& node, const PluginHolders& holders, const std::string& driver) {
  if (holders.empty()) return;
  for (PoolDevice& device : pool.devices) {
    const auto hardware = hardware_of(node, device.name);
    if (!hardware || !is_held(holders, *hardware)) continue;
    device.unhealthy = true;
    device.taints.push_back({driver + "/held", "device-plugin", "NoSchedule"});
  }
}

std::optional<Error> conflict(const PluginHolders& holders, const Hardware& hardware) {
  for (const PluginHolder& holder : holders) {
    const auto both = overlap(hardware, holder.hardware);
    if (!both) continue;
    return make_error(ErrorCode::failed_precondition,
                      *both + " is held by " + holder.container + ", which was given it through " + holder.resource +
                          " when a device plugin served this node; this is tried again, and succeeds once that pod has "
                          "ended");
  }
  return std::nullopt;
}

}  // namespace neuron::plugin::dra
