#include "plugin/device/unit_list.h"

#include <algorithm>

namespace neuron::plugin {

UnitList make_unit_list(const grant::NodeUnits& node, model::Resource resource, const core::OfferPolicy& offer,
                        const UnitUse& use) {
  UnitList list;
  if (!offer.serves(resource)) return list;
  for (const int unit : node.units(resource)) {
    const bool held = std::binary_search(use.held.begin(), use.held.end(), unit);
    if (!held && !offer.offers(resource, node.device_of(resource, unit))) continue;
    const std::vector<int> cores = node.cores_of(resource, unit);
    const bool blocked = std::binary_search(use.blocked_units.begin(), use.blocked_units.end(), unit) ||
                         std::any_of(cores.begin(), cores.end(), [&](int core) {
                           return std::binary_search(use.blocked_cores.begin(), use.blocked_cores.end(), core);
                         });
    const bool broken = node.health_of(resource, unit).state == model::HealthState::unhealthy;
    list.push_back({node.id_of(resource, unit), !blocked && !broken, node.numa_of(resource, unit)});
  }
  return list;
}

}  // namespace neuron::plugin
