#include "plugin/device/units.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "agent/base/parse.h"
#include "agent/base/sorted.h"
#include "plugin/kubelet/node_view.h"

namespace neuron::plugin {
namespace {

allocator::Choice ask_allocator(const allocator::NodeTopology& topology, model::Resource resource,
                                const allocator::ChooseRequest& request) {
  switch (resource) {
    case model::Resource::neuroncore:
      return allocator::choose_cores(topology, request);
    case model::Resource::neuron:
    case model::Resource::neurondevice:
      return allocator::choose_devices(topology, request);
    case model::Resource::efa:
      break;
  }
  return allocator::choose_efas(topology, request);
}

// The interfaces, or the devices and cores, that the asking container was given a moment ago.
const Holding* companion(const UnitChooser::Basis& basis, model::Resource resource) {
  return model::has_cores(resource) ? basis.ledger.efas_of_admission(resource, basis.version)
                                    : basis.ledger.cores_of_admission(resource, basis.version);
}

// The units that are exactly the hardware this container was given through another resource a moment ago; nullopt when
// there was no such answer or it cannot be matched.
std::optional<std::vector<int>> units_on_same_cores(const UnitChooser::Basis& basis, model::Resource resource,
                                                    const std::vector<int>& available, int size) {
  const Holding* first = basis.ledger.cores_of_admission(resource, basis.version);
  if (first == nullptr || !model::has_cores(resource)) return std::nullopt;
  const std::vector<int>& units = resource == model::Resource::neuroncore ? first->cores : first->devices;
  if (static_cast<int>(units.size()) != size) return std::nullopt;
  if (!std::includes(available.begin(), available.end(), units.begin(), units.end())) return std::nullopt;
  return units;
}

// Why one unit of a placement cannot be given; "" = it can.
std::string obstacle_to(const UnitChooser::Basis& basis, model::Resource resource, int unit,
                        const std::vector<int>& available) {
  const std::string id = basis.node.id_of(resource, unit);
  if (basis.is_broken(resource, unit)) return id + " is unhealthy";
  if (!basis.is_offered(resource, unit)) return id + " is not offered under this name";
  const auto conflict = basis.ledger.conflict(resource, {unit}, basis.node.cores_of(resource, unit), basis.version);
  if (conflict) return conflict->describe();
  if (is_in(unit, basis.ledger.held_units(resource))) return id + " is held";
  if (!is_in(unit, available)) return id + " is not free at the kubelet";
  return "";
}

// Units of `resource` on the hardware of a placement; nullopt: there is no such id, or no such relation.
std::optional<std::vector<int>> units_of(const grant::NodeUnits& node, model::Resource resource,
                                         const PlacedIds& placement) {
  const bool is_alias = placement.of == model::Resource::neuron && resource == model::Resource::neurondevice;
  const bool is_same = placement.of == resource || is_alias;
  if (!is_same && (placement.of != model::Resource::neuron || resource != model::Resource::neuroncore)) {
    return std::nullopt;
  }
  std::vector<int> units;
  for (const int id : placement.ids) {
    const auto unit = node.unit_of(placement.of, std::to_string(id));
    if (!unit) return std::nullopt;
    const std::vector<int> own = is_same ? std::vector<int>{*unit} : node.cores_of(placement.of, *unit);
    units.insert(units.end(), own.begin(), own.end());
  }
  return sorted_unique(std::move(units));
}

// Leaves only good units in the request, as long as enough remain.
template <typename IsGood>
void keep(allocator::ChooseRequest& request, const IsGood& is_good) {
  std::vector<int> good;
  std::copy_if(request.available.begin(), request.available.end(), std::back_inserter(good),
               [&](int unit) { return is_in(unit, request.must_include) || is_good(unit); });
  if (static_cast<int>(good.size()) >= request.size) request.available = std::move(good);
}

}  // namespace

std::vector<int> known_units(const grant::NodeUnits& node, model::Resource resource,
                             const std::vector<std::string>& ids) {
  std::vector<int> units;
  units.reserve(ids.size());
  for (const std::string& id : ids) {
    if (const auto unit = node.unit_of(resource, id)) units.push_back(*unit);
  }
  return sorted_unique(std::move(units));
}

Holding holding_of(const grant::NodeUnits& node, model::Resource resource, std::vector<int> units) {
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

std::vector<core::PoolName> claimed_names(const model::Allocation& claim, std::string_view driver) {
  std::vector<core::PoolName> names;
  for (const std::string& id : claim.ids) {
    if (auto name = core::parse_pool_name(id)) names.push_back(*std::move(name));
  }
  if (claim.resource_name != driver && names.size() != claim.ids.size()) names.clear();
  return names;
}

std::vector<Holding> claims_to_holdings(const grant::NodeUnits& node, const std::vector<model::Allocation>& shown,
                                        std::string_view driver) {
  std::vector<Holding> holdings;
  for (const model::Allocation& one : shown) {
    core::Hardware hardware;
    for (const core::PoolName& name : claimed_names(one, driver)) {
      hardware.add(core::possible_hardware_of(name, node.snapshot().host));
    }
    Holding holder{model::Resource::neuroncore, {}, {}, {}, model::holder_of(one), 0, {}};
    holder.shown_as = model::holder_name(one);
    holder.claim = one.claim;
    holder.claim_namespace = one.pod_namespace;
    for (Holding& holding : holdings_of(node, hardware, holder)) {
      if (!holding.units.empty()) holdings.push_back(std::move(holding));
    }
  }
  return holdings;
}

std::vector<UnitFacts> unit_facts(const grant::NodeUnits& node, model::Resource resource,
                                  const core::OfferPolicy& offer, const UnitUse& use) {
  std::vector<UnitFacts> all;
  if (!offer.serves(resource)) return all;
  for (const int unit : node.units(resource)) {
    const std::vector<int> cores = node.cores_of(resource, unit);
    const bool blocked = is_in(unit, use.blocked_units) || std::any_of(cores.begin(), cores.end(), [&](int core) {
                           return is_in(core, use.blocked_cores);
                         });
    all.push_back({unit, offer.offers(resource, node.device_of(resource, unit)), is_in(unit, use.held), blocked,
                   node.health_of(resource, unit).state == model::HealthState::unhealthy});
  }
  return all;
}

UnitList make_unit_list(const grant::NodeUnits& node, model::Resource resource, const core::OfferPolicy& offer,
                        const UnitUse& use) {
  UnitList list;
  for (const UnitFacts& facts : unit_facts(node, resource, offer, use)) {
    if (!facts.is_listed()) continue;
    list.push_back(
        {node.id_of(resource, facts.unit), !facts.blocked && !facts.broken, node.numa_of(resource, facts.unit)});
  }
  return list;
}

allocator::Choice UnitChooser::choose(const Basis& basis, model::Resource resource, const std::vector<int>& available,
                                      const std::vector<int>& must_include, int size) const {
  if (auto same = units_on_same_cores(basis, resource, available, size)) {
    return {std::move(*same), "the devices this container already has through another resource"};
  }
  allocator::ChooseRequest request;
  request.available = available;
  request.must_include = must_include;
  request.size = size;
  add_hints(basis, resource, request);
  // Without units that failed since the last list, units listed only because a container held them, and units that
  // another container holds through another resource.
  keep(request, [&](int unit) { return !basis.is_broken(resource, unit) && basis.is_offered(resource, unit); });
  // Then without those that are held although the kubelet counts them as free.
  keep(request, [&, given = basis.ledger.maybe_given(resource)](int unit) { return !is_in(unit, given); });
  keep(request, [&](int unit) {
    if (resource == model::Resource::efa) return basis.ledger.claim_of_efa(unit) == nullptr;
    return !basis.ledger.conflict(resource, {unit}, basis.node.cores_of(resource, unit), 0);
  });
  return ask_allocator(basis.node.topology(), resource, request);
}

Result<std::vector<int>> UnitChooser::placed(const Basis& basis, model::Resource resource,
                                             const std::vector<int>& available, const std::vector<int>& must_include,
                                             int size, const PlacedIds& placement) const {
  const auto refused = [](std::string why) { return fail(ErrorCode::failed_precondition, std::move(why)); };
  auto units = units_of(basis.node, resource, placement);
  if (!units) return refused("not all of its ids are of this node");
  if (static_cast<int>(units->size()) != size) return refused("its ids stand for " + counted(units->size(), "unit"));
  if (!std::includes(units->begin(), units->end(), must_include.begin(), must_include.end())) {
    return refused("the kubelet reuses other ids, of an init container");
  }
  for (const int unit : *units) {
    if (is_in(unit, must_include)) continue;
    if (std::string why = obstacle_to(basis, resource, unit, available); !why.empty()) return refused(std::move(why));
  }
  const Holding* first = basis.ledger.cores_of_admission(resource, basis.version);
  if (first != nullptr && (resource == model::Resource::neuroncore ? first->cores : first->devices) != *units) {
    return refused("the container has other cores already, through another resource");
  }
  return *std::move(units);
}

void UnitChooser::add_hints(const Basis& basis, model::Resource resource, allocator::ChooseRequest& request) const {
  using model::Resource;
  const bool of_cores = model::has_cores(resource);
  // A container whose unit is available has most likely ended. That is no proof (Ledger::available); it only steers.
  constexpr std::chrono::milliseconds kLikelyEnded{300};
  const std::vector<bool> ended = basis.ledger.ended_when_given(
      resource, without(request.available, request.must_include), basis.now - kLikelyEnded);
  std::set<int> held;
  std::set<int> held_efas;
  std::set<int> avoid;
  const auto add = [&](const Holding& one, bool likely_ended) {
    const bool is_shared = of_cores && (one.resource != resource || !one.claim.empty());
    if (is_shared) avoid.insert(one.devices.begin(), one.devices.end());
    if (likely_ended) return;
    if (!model::has_cores(one.resource)) held_efas.insert(one.units.begin(), one.units.end());
    held.insert(one.devices.begin(), one.devices.end());
  };
  for (std::size_t i = 0; i < ended.size(); ++i) add(basis.ledger.holdings()[i], ended[i]);
  for (const Holding& claimed : basis.ledger.claimed()) add(claimed, false);
  request.avoid_devices.assign(avoid.begin(), avoid.end());
  // Interfaces that come first are chosen beside devices that can be given whole, if the node gives any so.
  std::vector<int> free_whole;
  bool gives_whole = false;
  for (const int device : basis.node.units(Resource::neuron)) {
    const bool whole = basis.is_offered(Resource::neuron, device) || basis.is_offered(Resource::neurondevice, device);
    gives_whole = gives_whole || whole;
    if (basis.is_broken(Resource::neuron, device) || held.contains(device)) continue;
    request.free_devices.push_back(device);
    if (whole) free_whole.push_back(device);
  }
  if (gives_whole) request.free_devices = std::move(free_whole);
  const Holding* beside = companion(basis, resource);
  if (!of_cores) {
    const auto sizes = sizes_beside_.find(static_cast<std::size_t>(std::max(request.size, 0)));
    if (sizes != sizes_beside_.end()) request.likely_sizes = sizes->second;
    if (beside != nullptr) request.prefer_devices = beside->devices;
    return;
  }
  for (const auto& [other, devices] : withheld_) {  // that the kubelet does not give through another resource of cores
    if (other == resource || !model::has_cores(other)) continue;
    request.reluctant_devices.insert(request.reluctant_devices.end(), devices.begin(), devices.end());
  }
  request.reluctant_devices = sorted_unique(std::move(request.reluctant_devices));
  for (const int efa : basis.node.units(Resource::efa)) {
    if (!basis.is_broken(Resource::efa, efa) && !held_efas.contains(efa)) request.free_efas.push_back(efa);
  }
  if (beside != nullptr) request.prefer_efas = beside->units;
}

void UnitChooser::note_published(const grant::NodeUnits& node, model::Resource resource, const UnitList& list) {
  std::vector<int>& withheld = withheld_[resource];
  withheld.clear();
  for (const UnitState& state : list) {
    if (state.healthy) continue;
    const auto unit = node.unit_of(resource, state.id);
    if (unit) withheld.push_back(resource == model::Resource::neuroncore ? node.device_of_core(*unit) : *unit);
  }
}

void UnitChooser::note_given(const Basis& basis, const Holding& given) {
  constexpr std::size_t kRemembered = 4;
  const Holding* beside = companion(basis, given.resource);
  if (beside == nullptr) return;
  const bool of_cores = model::has_cores(given.resource);
  const std::size_t efas = of_cores ? beside->units.size() : given.units.size();
  // As many devices as its cores fill: where they lie scattered, the next container's need not.
  const std::size_t cores = of_cores ? given.cores.size() : beside->cores.size();
  const auto each = static_cast<std::size_t>(std::max(basis.node.topology().cores_per_device, 1));
  const int devices = static_cast<int>((cores + each - 1) / each);
  std::vector<int>& sizes = sizes_beside_[efas];
  std::erase(sizes, devices);
  sizes.insert(sizes.begin(), devices);
  if (sizes.size() > kRemembered) sizes.pop_back();
}

}  // namespace neuron::plugin
