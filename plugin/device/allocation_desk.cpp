#include "plugin/device/allocation_desk.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "agent/base/parse.h"
#include "plugin/device/refusals.h"

namespace neuron::plugin {
namespace {

std::vector<int> sorted_unique(std::vector<int> values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

std::vector<int> known_units(const NodeView& view, model::Resource resource, const std::vector<std::string>& ids) {
  std::vector<int> units;
  units.reserve(ids.size());
  for (const std::string& id : ids) {
    if (const auto unit = view.unit_of(resource, id)) units.push_back(*unit);
  }
  return sorted_unique(std::move(units));
}

std::string join(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ",") + part;
  return text;
}

}  // namespace

AllocationDesk::AllocationDesk(ResponseOptions options, MarkSource mark, const Clock& clock, core::OfferPolicy offer)
    : options_(std::move(options)), offer_(std::move(offer)), mark_(std::move(mark)), clock_(clock) {}

bool AllocationDesk::is_offered(model::Resource resource, int unit) const {
  return offer_.offers(resource, view_->device_of(resource, unit));
}

AllocationDesk::Silicon AllocationDesk::silicon_of_units(model::Resource resource,
                                                         const std::vector<int>& units) const {
  Silicon silicon;
  for (const int unit : units) {
    for (const int core : view_->cores_of(resource, unit)) {
      silicon.cores.push_back(core);
      silicon.devices.push_back(view_->device_of_core(core));
    }
    if (resource != model::Resource::neuroncore) silicon.devices.push_back(unit);  // also when its cores are unknown
  }
  return {sorted_unique(std::move(silicon.devices)), sorted_unique(std::move(silicon.cores))};
}

// What the kubelet offers is free by its own account, and it knows sooner than PodResources tells us.
void AllocationDesk::forget_ended(model::Resource resource, const allocator::ChooseRequest& request) {
  constexpr std::chrono::milliseconds kSettled{300};  // no container starts and ends so fast
  std::vector<int> offered;
  std::set_difference(request.available.begin(), request.available.end(), request.must_include.begin(),
                      request.must_include.end(), std::back_inserter(offered));
  ledger_.offered(resource, offered, clock_.now() - kSettled, clock_.now());
}

allocator::ChooseRequest AllocationDesk::question(model::Resource resource, const std::vector<std::string>& available,
                                                  const std::vector<std::string>& must_include, int size,
                                                  holdings::AdmissionMark mark) {
  allocator::ChooseRequest request;
  request.available = known_units(*view_, resource, available);
  request.must_include = known_units(*view_, resource, must_include);
  request.size = size;
  forget_ended(resource, request);
  add_hints(resource, request, mark);
  const auto keep = [&](const auto& is_good) {
    std::vector<int> good;
    good.reserve(request.available.size());
    for (const int unit : request.available) {
      const bool wanted = std::binary_search(request.must_include.begin(), request.must_include.end(), unit);
      if (wanted || is_good(unit)) good.push_back(unit);
    }
    if (static_cast<int>(good.size()) >= size) request.available = std::move(good);
  };
  // Without what has failed since the kubelet was last told, what is listed only because a container held it, and what
  // another container holds through another resource.
  keep([&](int unit) {
    return view_->health_of(resource, unit).state != model::HealthState::unhealthy && is_offered(resource, unit);
  });
  if (ledger_.holdings().empty()) return request;
  keep([&](int unit) { return !ledger_.conflict(resource, {unit}, view_->cores_of(resource, unit), 0); });
  return request;
}

allocator::Choice AllocationDesk::choose(model::Resource resource, const allocator::ChooseRequest& request) const {
  switch (resource) {
    case model::Resource::neuroncore:
      return allocator::choose_cores(view_->topology(), request);
    case model::Resource::neuron:
    case model::Resource::neurondevice:
      return allocator::choose_devices(view_->topology(), request);
    case model::Resource::efa:
      break;
  }
  return allocator::choose_efas(view_->topology(), request);
}

// The units that are exactly the silicon this container was given through another resource a moment ago; nullopt when
// there was no such answer or it cannot be matched.
std::optional<std::vector<int>> AllocationDesk::choice_on_same_silicon(model::Resource resource,
                                                                       const allocator::ChooseRequest& request,
                                                                       holdings::AdmissionMark mark) const {
  const holdings::Holding* first = ledger_.silicon_of_admission(resource, mark);
  if (first == nullptr || !model::is_silicon(resource)) return std::nullopt;
  const std::vector<int>& units = resource == model::Resource::neuroncore ? first->cores : first->devices;
  const auto known = view_->units(resource);  // the view may have changed since
  if (!std::includes(known.begin(), known.end(), units.begin(), units.end())) return std::nullopt;
  if (static_cast<int>(units.size()) != request.size) return std::nullopt;
  return units;
}

std::vector<std::string> AllocationDesk::prefer(model::Resource resource, const std::vector<std::string>& available,
                                                const std::vector<std::string>& must_include, int size) {
  const MutexLock lock(mutex_);
  if (!view_) return {};
  const holdings::AdmissionMark mark = mark_();
  allocator::ChooseRequest request = question(resource, available, must_include, size, mark);
  allocator::Choice choice;
  if (auto same = choice_on_same_silicon(resource, request, mark);
      same && std::all_of(same->begin(), same->end(), [&](int unit) {
        return std::find(available.begin(), available.end(), view_->id_of(resource, unit)) != available.end();
      })) {
    choice = {std::move(*same), "the silicon this container already has through another resource"};
  } else {
    choice = choose(resource, request);
  }
  std::vector<std::string> ids;
  for (const int unit : choice.ids) ids.push_back(view_->id_of(resource, unit));
  if (spdlog::should_log(spdlog::level::debug)) {
    spdlog::debug("prefer resource={} asked={} of={} chosen={} why=\"{}\"", model::resource_name(resource), size,
                  available.size(), join(ids), choice.why);
  }
  return ids;
}

Result<std::vector<int>> AllocationDesk::parse_ids(model::Resource resource,
                                                   const std::vector<std::string>& ids) const {
  if (ids.empty()) return fail(refusals::no_ids(resource));
  std::vector<int> units;
  for (const std::string& id : ids) {
    TRY_ASSIGN(const int unit, view_->unit_of(resource, id));
    units.push_back(unit);
  }
  std::sort(units.begin(), units.end());
  if (const auto twice = std::adjacent_find(units.begin(), units.end()); twice != units.end()) {
    return fail(refusals::asked_twice(resource, view_->id_of(resource, *twice)));
  }
  for (const int unit : units) {
    const std::string id = view_->id_of(resource, unit);
    const model::Health& health = view_->health_of(resource, unit);
    if (health.state == model::HealthState::unhealthy) return fail(refusals::unhealthy(resource, id, health));
    if (!is_offered(resource, unit)) return fail(refusals::not_offered(resource, id));
  }
  return units;
}

Result<ContainerAnswer> AllocationDesk::answer_for(model::Resource resource, const std::vector<int>& units,
                                                   holdings::AdmissionMark mark) {
  if (model::is_silicon(resource)) return allocate_silicon(resource, units, mark);
  learn_size(resource, units, mark);
  ledger_.record({resource, units, {}, {}, "", mark, clock_.now()});
  return answer_for_efa(*view_, units, options_);
}

// Why the silicon cannot be given: rules 1 and 2 of docs/resources.md#same-silicon.
std::optional<Error> AllocationDesk::obstacle(model::Resource resource, const std::vector<int>& units,
                                              const Silicon& silicon, holdings::AdmissionMark mark) const {
  if (const holdings::Holding* first = ledger_.silicon_of_admission(resource, mark);
      first != nullptr && first->cores != silicon.cores) {
    return refusals::other_silicon(resource, *first, offer_);
  }
  if (const auto conflict = ledger_.conflict(resource, units, silicon.cores, mark)) {
    return refusals::held(resource, *conflict);
  }
  return std::nullopt;
}

bool AllocationDesk::doubtful(model::Resource resource, const std::vector<std::string>& ids) {
  const MutexLock lock(mutex_);
  const holdings::AdmissionMark mark = mark_();
  if (!view_ || mark == 0 || !model::is_silicon(resource)) return false;
  const Result<std::vector<int>> units = parse_ids(resource, ids);
  if (!units || !obstacle(resource, *units, silicon_of_units(resource, *units), mark)) return false;
  doubted_ = mark;
  return true;
}

void AllocationDesk::confirm(const std::vector<holdings::ShownHolding>& written, holdings::AdmissionMark mark) {
  const MutexLock lock(mutex_);
  if (!view_ || doubted_ == 0 || mark == doubted_) return;
  ledger_.confirm(to_holdings(written, clock_.now()));
  ledger_.admission_goes_on(std::exchange(doubted_, mark), mark);
}

Result<ContainerAnswer> AllocationDesk::allocate_silicon(model::Resource resource, const std::vector<int>& units,
                                                         holdings::AdmissionMark mark) {
  Silicon silicon = silicon_of_units(resource, units);
  if (auto error = obstacle(resource, units, silicon, mark)) return fail(*std::move(error));
  learn_size(resource, units, mark);
  ContainerAnswer answer = answer_for_silicon(*view_, silicon.devices, silicon.cores, options_);
  ledger_.record({resource, units, std::move(silicon.cores), std::move(silicon.devices), "", mark, clock_.now()});
  return answer;
}

Result<ContainerAnswer> AllocationDesk::allocate(model::Resource resource, const std::vector<std::string>& ids) {
  const MutexLock lock(mutex_);
  if (!view_) return fail(refusals::not_scanned());
  const holdings::AdmissionMark mark = mark_();
  ledger_.admission_goes_on(std::exchange(doubted_, 0),
                            mark);  // unless confirm() has come, the kubelet has not written
  const Result<std::vector<int>> units = parse_ids(resource, ids);
  Result<ContainerAnswer> answer = units ? answer_for(resource, *units, mark) : fail(units.error());
  if (!answer) ledger_.forget_admission(mark);
  if (answer && spdlog::should_log(spdlog::level::debug)) {
    spdlog::debug("allocate resource={} given={} left=\"{}\"", model::resource_name(resource), join(ids), left());
  }
  return answer;
}

std::vector<holdings::Holding> AllocationDesk::to_holdings(const std::vector<holdings::ShownHolding>& shown,
                                                           SteadyTime since) const {
  std::vector<holdings::Holding> holdings;
  for (const holdings::ShownHolding& one : shown) {
    const auto resource = model::parse_resource(one.resource_name);
    if (!resource) continue;
    std::vector<int> units = known_units(*view_, *resource, one.ids);
    if (units.empty()) continue;
    Silicon silicon = model::is_silicon(*resource) ? silicon_of_units(*resource, units) : Silicon{};
    holdings.push_back({*resource, std::move(units), std::move(silicon.cores), std::move(silicon.devices), one.holder,
                        0, since, one.shown_as});
  }
  return holdings;
}

void AllocationDesk::reconcile(const holdings::ShownHoldings& shown) {
  const MutexLock lock(mutex_);
  if (!view_) return;
  learn(shown);
  // What the checkpoint alone shows is older than the question, and over when a newer checkpoint does not show it.
  const SteadyTime before = shown.asked_at - SteadyTime::duration{1};
  ledger_.reconcile({to_holdings(shown.listed, shown.asked_at), shown.asked_at, to_holdings(shown.stored, before),
                     shown.stored_mark});
}

std::optional<UnitList> AllocationDesk::unit_list(model::Resource resource) const {
  const MutexLock lock(mutex_);
  if (!view_) return std::nullopt;
  if (!model::is_silicon(resource)) return make_unit_list(*view_, resource, offer_, {});
  return make_unit_list(*view_, resource, offer_, {ledger_.blocked_cores(resource), ledger_.held_units(resource)});
}

bool AllocationDesk::holds_anything() const {
  const MutexLock lock(mutex_);
  return !ledger_.holdings().empty();
}

bool AllocationDesk::withholds(model::Resource resource) const {
  const MutexLock lock(mutex_);
  if (!view_ || !model::is_silicon(resource) || !offer_.serves(resource)) return false;
  const std::vector<int> blocked = ledger_.blocked_cores(resource);
  const std::vector<int> held = ledger_.held_units(resource);
  const auto& units = view_->units(resource);
  return std::any_of(units.begin(), units.end(), [&](int unit) {
    if (!is_offered(resource, unit)) return std::binary_search(held.begin(), held.end(), unit);
    const std::vector<int> cores = view_->cores_of(resource, unit);
    return std::any_of(cores.begin(), cores.end(),
                       [&](int core) { return std::binary_search(blocked.begin(), blocked.end(), core); });
  });
}

std::vector<int> AllocationDesk::held_cores() const {
  const MutexLock lock(mutex_);
  std::vector<int> cores;
  for (const holdings::Holding& holding : ledger_.holdings()) {
    cores.insert(cores.end(), holding.cores.begin(), holding.cores.end());
  }
  return sorted_unique(std::move(cores));
}

}  // namespace neuron::plugin
