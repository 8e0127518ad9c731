#include "plugin/device/shown_holdings.h"

#include <algorithm>
#include <utility>

#include "agent/base/sorted.h"
#include "agent/core/hardware.h"
#include "plugin/kubelet/node_view.h"

namespace neuron::plugin {

using model::Resource;

std::vector<int> known_units(const grant::NodeUnits& node, Resource resource, const std::vector<std::string>& ids) {
  std::vector<int> units;
  units.reserve(ids.size());
  for (const std::string& id : ids) {
    if (const auto unit = node.unit_of(resource, id)) units.push_back(*unit);
  }
  return sorted_unique(std::move(units));
}

Holding holding_of(const grant::NodeUnits& node, Resource resource, std::vector<int> units) {
  Holding holding{resource, std::move(units), {}, {}, "", 0, {}};
  if (!model::has_cores(resource)) return holding;
  for (const int unit : holding.units) {
    for (const int core : node.cores_of(resource, unit)) holding.cores.push_back(core);
    holding.devices.push_back(node.device_of(resource, unit));
  }
  holding.cores = sorted_unique(std::move(holding.cores));
  holding.devices = sorted_unique(std::move(holding.devices));
  return holding;
}

std::vector<Holding> to_holdings(const grant::NodeUnits& node, const std::vector<model::Allocation>& shown,
                                 SteadyTime since) {
  std::vector<Holding> holdings;
  for (const model::Allocation& one : shown) {
    const auto resource = model::parse_resource(one.resource_name);
    if (!resource) continue;
    Holding holding = holding_of(node, *resource, known_units(node, *resource, one.ids));
    if (holding.units.empty()) continue;
    holding.holder = model::holder_of(one);
    holding.shown_as = model::holder_name(one);
    holding.since = since;
    holdings.push_back(std::move(holding));
  }
  return holdings;
}

std::vector<Holding> claims_to_holdings(const grant::NodeUnits& node, const std::vector<model::Allocation>& shown,
                                        std::string_view driver) {
  std::vector<Holding> holdings;
  for (const model::Allocation& one : shown) {
    if (one.resource_name != driver) continue;
    core::Hardware hardware;
    for (const std::string& id : one.ids) {
      if (const auto name = core::parse_pool_name(id)) {
        hardware.add(core::possible_hardware_of(*name, node.snapshot().host));
      }
    }
    Holding holder{Resource::neuroncore, {}, {}, {}, model::holder_of(one), 0, {}};
    holder.shown_as = model::holder_name(one);
    holder.claim = one.claim;
    holder.claim_namespace = one.pod_namespace;
    for (Holding& holding : holdings_of(node, hardware, holder)) {
      if (!holding.units.empty()) holdings.push_back(std::move(holding));
    }
  }
  return holdings;
}

}  // namespace neuron::plugin
