#include "plugin/device/allocations.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "agent/base/parse.h"

namespace neuron::plugin {
namespace {

std::vector<int> sorted_unique(std::vector<int> values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

std::vector<int> known_units(const grant::NodeUnits& node, model::Resource resource,
                             const std::vector<std::string>& ids) {
  std::vector<int> units;
  units.reserve(ids.size());
  for (const std::string& id : ids) {
    if (const auto unit = node.unit_of(resource, id)) units.push_back(*unit);
  }
  return sorted_unique(std::move(units));
}

std::string join(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ",") + part;
  return text;
}

}  // namespace

Allocations::Allocations(grant::GrantOptions options, VersionSource version, const Clock& clock,
                         core::OfferPolicy offer, std::string claim_driver)
    : options_(std::move(options)),
      offer_(std::move(offer)),
      version_(std::move(version)),
      clock_(clock),
      claim_driver_(std::move(claim_driver)) {}

bool Allocations::is_offered(model::Resource resource, int unit) const {
  return offer_.offers(resource, node_->device_of(resource, unit));
}

Allocations::Hardware Allocations::hardware_of(model::Resource resource, const std::vector<int>& units) const {
  Hardware hardware;
  for (const int unit : units) {
    for (const int core : node_->cores_of(resource, unit)) {
      hardware.cores.push_back(core);
      hardware.devices.push_back(node_->device_of_core(core));
    }
    if (resource != model::Resource::neuroncore) hardware.devices.push_back(unit);  // also when its cores are unknown
  }
  return {sorted_unique(std::move(hardware.devices)), sorted_unique(std::move(hardware.cores))};
}

// The kubelet offers a unit once its container has ended, sooner than PodResources shows it. It may also offer what it
// has given to another container of the pod that it is admitting (docs/reference/kubelet.md#double-allocation), so an
// offer proves nothing about a younger holding.
void Allocations::forget_ended(model::Resource resource, const std::vector<int>& offered) {
  ledger_.offered(resource, offered, clock_.now() - holdings::Ledger::kMaxAdmission, clock_.now());
}

allocator::ChooseRequest Allocations::question(model::Resource resource, const std::vector<std::string>& available,
                                               const std::vector<std::string>& must_include, int size,
                                               holdings::CheckpointVersion version) {
  allocator::ChooseRequest request;
  request.available = known_units(*node_, resource, available);
  request.must_include = known_units(*node_, resource, must_include);
  request.size = size;
  std::vector<int> offered;
  std::set_difference(request.available.begin(), request.available.end(), request.must_include.begin(),
                      request.must_include.end(), std::back_inserter(offered));
  forget_ended(resource, offered);
  add_hints(resource, offered, request, version);
  const auto keep = [&](const auto& is_good) REQUIRES(mutex_) {
    std::vector<int> good;
    good.reserve(request.available.size());
    for (const int unit : request.available) {
      const bool wanted = std::binary_search(request.must_include.begin(), request.must_include.end(), unit);
      if (wanted || is_good(unit)) good.push_back(unit);
    }
    if (static_cast<int>(good.size()) >= size) request.available = std::move(good);
  };
  // Without units that failed since the last list, units listed only because a container held them, and units that
  // another container holds through another resource.
  keep([&](int unit) REQUIRES(mutex_) {
    return node_->health_of(resource, unit).state != model::HealthState::unhealthy && is_offered(resource, unit);
  });
  if (ledger_.holdings().empty() && ledger_.claimed().empty()) return request;
  keep([&](int unit) REQUIRES(mutex_) {
    if (resource == model::Resource::efa) return ledger_.claim_of_efa(unit) == nullptr;
    return !ledger_.conflict(resource, {unit}, node_->cores_of(resource, unit), 0);
  });
  return request;
}

allocator::Choice Allocations::choose(model::Resource resource, const allocator::ChooseRequest& request) const {
  switch (resource) {
    case model::Resource::neuroncore:
      return allocator::choose_cores(node_->topology(), request);
    case model::Resource::neuron:
    case model::Resource::neurondevice:
      return allocator::choose_devices(node_->topology(), request);
    case model::Resource::efa:
      break;
  }
  return allocator::choose_efas(node_->topology(), request);
}

// The units that are exactly the hardware this container was given through another resource a moment ago; nullopt when
// there was no such answer or it cannot be matched.
std::optional<std::vector<int>> Allocations::choice_on_same_cores(model::Resource resource,
                                                                  const allocator::ChooseRequest& request,
                                                                  holdings::CheckpointVersion version) const {
  const holdings::Holding* first = ledger_.cores_of_admission(resource, version);
  if (first == nullptr || !model::has_cores(resource)) return std::nullopt;
  const std::vector<int>& units = resource == model::Resource::neuroncore ? first->cores : first->devices;
  const auto known = node_->units(resource);  // the node may have changed since
  if (!std::includes(known.begin(), known.end(), units.begin(), units.end())) return std::nullopt;
  if (static_cast<int>(units.size()) != request.size) return std::nullopt;
  return units;
}

std::vector<std::string> Allocations::prefer(model::Resource resource, const std::vector<std::string>& available,
                                             const std::vector<std::string>& must_include, int size) {
  const MutexLock lock(mutex_);
  if (!node_) return {};
  const holdings::CheckpointVersion version = version_();
  allocator::ChooseRequest request = question(resource, available, must_include, size, version);
  allocator::Choice choice;
  if (auto same = choice_on_same_cores(resource, request, version);
      same && std::all_of(same->begin(), same->end(), [&](int unit) REQUIRES(mutex_) {
        return std::find(available.begin(), available.end(), node_->id_of(resource, unit)) != available.end();
      })) {
    choice = {std::move(*same), "the devices this container already has through another resource"};
  } else {
    choice = choose(resource, request);
  }
  std::vector<std::string> ids;
  for (const int unit : choice.ids) ids.push_back(node_->id_of(resource, unit));
  if (spdlog::should_log(spdlog::level::debug)) {
    spdlog::debug("prefer resource={} asked={} of={} chosen={} why=\"{}\"", model::resource_name(resource), size,
                  available.size(), join(ids), choice.why);
  }
  return ids;
}

refusals::Granted<std::vector<int>> Allocations::parse_ids(model::Resource resource,
                                                           const std::vector<std::string>& ids) const {
  if (ids.empty()) return fail(refusals::no_ids(resource));
  std::vector<int> units;
  for (const std::string& id : ids) {
    auto unit = node_->unit_of(resource, id);
    if (!unit) return fail(refusals::unknown_id(std::move(unit).error()));
    units.push_back(*unit);
  }
  std::sort(units.begin(), units.end());
  if (const auto twice = std::adjacent_find(units.begin(), units.end()); twice != units.end()) {
    return fail(refusals::asked_twice(resource, node_->id_of(resource, *twice)));
  }
  for (const int unit : units) {
    const std::string id = node_->id_of(resource, unit);
    const model::Health& health = node_->health_of(resource, unit);
    if (health.state == model::HealthState::unhealthy) return fail(refusals::unhealthy(resource, id, health));
    if (!is_offered(resource, unit)) return fail(refusals::not_offered(resource, id));
  }
  return units;
}

refusals::Granted<grant::Grant> Allocations::answer_for(model::Resource resource, const std::vector<int>& units,
                                                        holdings::CheckpointVersion version) {
  if (model::has_cores(resource)) return allocate_cores(resource, units, version);
  for (const int unit : units) {
    if (const holdings::Holding* with = ledger_.claim_of_efa(unit)) {
      return fail(refusals::claimed(resource, node_->id_of(resource, unit), *with));
    }
  }
  learn_size(resource, units, version);
  ledger_.record({resource, units, {}, {}, "", version, clock_.now()});
  return grant::grant_of_efas(*node_, units, options_);
}

// Why the hardware cannot be given: rules 1 and 2 of docs/resources.md#same-hardware.
std::optional<refusals::Refusal> Allocations::obstacle(model::Resource resource, const std::vector<int>& units,
                                                       const Hardware& hardware,
                                                       holdings::CheckpointVersion version) const {
  if (const holdings::Holding* first = ledger_.cores_of_admission(resource, version);
      first != nullptr && first->cores != hardware.cores) {
    return refusals::other_hardware(resource, *first, offer_);
  }
  if (const auto conflict = ledger_.conflict(resource, units, hardware.cores, version)) {
    return refusals::held(resource, *conflict);
  }
  return std::nullopt;
}

bool Allocations::needs_fresh_checkpoint(model::Resource resource, const std::vector<std::string>& ids) {
  const MutexLock lock(mutex_);
  const holdings::CheckpointVersion version = version_();
  if (!node_ || version == 0 || !model::has_cores(resource)) return false;
  const auto units = parse_ids(resource, ids);
  if (!units || !obstacle(resource, *units, hardware_of(resource, *units), version)) return false;
  waiting_version_ = version;
  return true;
}

bool Allocations::needs_second_checkpoint(model::Resource resource, const std::vector<std::string>& ids) {
  const MutexLock lock(mutex_);
  if (!node_ || waiting_version_ == 0) return false;
  const auto units = parse_ids(resource, ids);
  if (!units) return false;
  const auto conflict = ledger_.conflict(resource, *units, hardware_of(resource, *units).cores, version_());
  return conflict && conflict->with.doubtful;
}

void Allocations::confirm(const std::vector<model::Allocation>& written, holdings::CheckpointVersion version) {
  const MutexLock lock(mutex_);
  if (!node_ || waiting_version_ == 0 || version == waiting_version_) return;
  ledger_.confirm(to_holdings(written, clock_.now()), waiting_version_, clock_.now());
  ledger_.admission_goes_on(std::exchange(waiting_version_, version), version);
}

refusals::Granted<grant::Grant> Allocations::allocate_cores(model::Resource resource, const std::vector<int>& units,
                                                            holdings::CheckpointVersion version) {
  Hardware hardware = hardware_of(resource, units);
  if (auto error = obstacle(resource, units, hardware, version)) return fail(*std::move(error));
  learn_size(resource, units, version);
  grant::Grant answer = grant::grant_of_cores(*node_, hardware.devices, hardware.cores, options_);
  ledger_.record({resource, units, std::move(hardware.cores), std::move(hardware.devices), "", version, clock_.now()});
  return answer;
}

refusals::Granted<grant::Grant> Allocations::allocate(model::Resource resource, const std::vector<std::string>& ids) {
  const MutexLock lock(mutex_);
  if (!node_) return fail(refusals::not_scanned());
  const holdings::CheckpointVersion version = version_();
  ledger_.admission_goes_on(std::exchange(waiting_version_, 0),
                            version);  // unless confirm() has come, the kubelet has not written
  const auto units = parse_ids(resource, ids);
  refusals::Granted<grant::Grant> answer = units ? answer_for(resource, *units, version) : fail(units.error());
  if (!answer) ledger_.forget_admission(version);
  if (answer) {
    for (const std::string& id : ids) given_[resource][id] = clock_.now();
  }
  if (answer && spdlog::should_log(spdlog::level::debug)) {
    spdlog::debug("allocate resource={} given={} left=\"{}\"", model::resource_name(resource), join(ids), left());
  }
  return answer;
}

std::optional<SteadyTime> Allocations::given_at(model::Resource resource, const std::string& id) const {
  const MutexLock lock(mutex_);
  const auto of_resource = given_.find(resource);
  if (of_resource == given_.end()) return std::nullopt;
  const auto found = of_resource->second.find(id);
  return found == of_resource->second.end() ? std::nullopt : std::optional(found->second);
}

std::vector<holdings::Holding> Allocations::to_holdings(const std::vector<model::Allocation>& shown,
                                                        SteadyTime since) const {
  std::vector<holdings::Holding> holdings;
  for (const model::Allocation& one : shown) {
    const auto resource = model::parse_resource(one.resource_name);
    if (!resource) continue;
    std::vector<int> units = known_units(*node_, *resource, one.ids);
    if (units.empty()) continue;
    Hardware hardware = model::has_cores(*resource) ? hardware_of(*resource, units) : Hardware{};
    holdings.push_back({*resource, std::move(units), std::move(hardware.cores), std::move(hardware.devices),
                        model::holder_of(one), 0, since, model::holder_name(one)});
  }
  return holdings;
}

void Allocations::reconcile(const holdings::ShownAllocations& shown) {
  const MutexLock lock(mutex_);
  if (!node_) return;
  learn(shown);
  // An entry that only the checkpoint shows is older than the question and than that checkpoint; it has ended when a
  // newer checkpoint does not show it.
  const SteadyTime before = std::min(shown.asked_at, shown.stored_since) - SteadyTime::duration{1};
  ledger_.reconcile({to_holdings(shown.listed, shown.asked_at), shown.asked_at, to_holdings(shown.stored, before),
                     shown.stored_version, shown.stored_since});
  ledger_.set_claimed(claims_to_holdings(shown.claims));
}

std::optional<UnitList> Allocations::unit_list(model::Resource resource) const {
  const MutexLock lock(mutex_);
  if (!node_) return std::nullopt;
  if (!model::has_cores(resource)) return make_unit_list(*node_, resource, offer_, {{}, {}, claimed_efas()});
  return make_unit_list(*node_, resource, offer_, {ledger_.blocked_cores(resource), ledger_.held_units(resource)});
}

std::vector<holdings::Holding> Allocations::all_holdings() const {
  const MutexLock lock(mutex_);
  std::vector<holdings::Holding> all = ledger_.holdings();
  all.insert(all.end(), ledger_.claimed().begin(), ledger_.claimed().end());
  return all;
}

bool Allocations::needs_newer_checkpoint() const {
  const MutexLock lock(mutex_);
  return ledger_.needs_newer_checkpoint();
}

bool Allocations::holds_anything() const {
  const MutexLock lock(mutex_);
  return !ledger_.holdings().empty() || !ledger_.claimed().empty();
}

bool Allocations::withholds(model::Resource resource) const {
  const MutexLock lock(mutex_);
  if (!node_ || !offer_.serves(resource)) return false;
  if (!model::has_cores(resource)) return !claimed_efas().empty();
  const std::vector<int> blocked = ledger_.blocked_cores(resource);
  const std::vector<int> held = ledger_.held_units(resource);
  const auto& units = node_->units(resource);
  return std::any_of(units.begin(), units.end(), [&](int unit) REQUIRES(mutex_) {
    if (!is_offered(resource, unit)) return std::binary_search(held.begin(), held.end(), unit);
    const std::vector<int> cores = node_->cores_of(resource, unit);
    return std::any_of(cores.begin(), cores.end(),
                       [&](int core) { return std::binary_search(blocked.begin(), blocked.end(), core); });
  });
}

std::vector<int> Allocations::held_cores() const {
  const MutexLock lock(mutex_);
  std::vector<int> cores;
  for (const auto* all : {&ledger_.holdings(), &ledger_.claimed()}) {
    for (const holdings::Holding& holding : *all) {
      cores.insert(cores.end(), holding.cores.begin(), holding.cores.end());
    }
  }
  return sorted_unique(std::move(cores));
}

}  // namespace neuron::plugin
