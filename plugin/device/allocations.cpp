#include "plugin/device/allocations.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "agent/base/parse.h"
#include "agent/base/sorted.h"

namespace neuron::plugin {
namespace {

using model::Resource;

bool holds_cores(const Ledger& ledger) {
  const auto of_cores = [](const Holding& one) { return model::has_cores(one.resource); };
  return std::any_of(ledger.holdings().begin(), ledger.holdings().end(), of_cores) ||
         std::any_of(ledger.claimed().begin(), ledger.claimed().end(), of_cores);
}

}  // namespace

Allocations::Allocations(grant::GrantOptions options, VersionSource version, const Clock& clock,
                         core::OfferPolicy offer, std::string claim_driver)
    : options_(std::move(options)),
      offer_(std::move(offer)),
      version_(std::move(version)),
      clock_(clock),
      claim_driver_(std::move(claim_driver)) {}

void Allocations::set_node(grant::NodeUnitsPtr node) {
  const MutexLock lock(mutex_);
  if (!node) return;
  const grant::NodeUnitsPtr before = view_.node();
  view_.set_newest(std::move(node));
  view_changed(before);
}

grant::NodeUnitsPtr Allocations::node() const {
  const MutexLock lock(mutex_);
  return view_.node();
}

model::SnapshotPtr Allocations::numbered(model::SnapshotPtr scanned) const {
  const MutexLock lock(mutex_);
  return view_.read(std::move(scanned));
}

// The LNC of the first scan that has one stays. Units of efa are positions, which move when an interface with a lower
// address appears.
void Allocations::view_changed(const grant::NodeUnitsPtr& before) {
  if (before == view_.node()) return;
  if (const auto& lnc = view_.node()->snapshot().host.lnc; lnc && !view_.lnc()) view_.set_lnc(lnc->value);
  if (!before) return;
  ledger_.renumber(Resource::efa, [&before, now = view_.node()](int unit) -> std::optional<int> {
    const auto same = now->unit_of(Resource::efa, before->id_of(Resource::efa, unit));
    return same ? std::optional(*same) : std::nullopt;
  });
}

void Allocations::adopt_numbering() {
  const MutexLock lock(mutex_);
  if (!view_.node() || !view_.lnc()) return;
  const std::optional<int> scanned = view_.scanned_lnc();
  if (!scanned) return view_.forget_deferred();
  const grant::NodeUnitsPtr before = view_.node();
  view_.follow_lnc(holds_cores(ledger_) ? view_.lnc() : scanned, "containers", "containers hold cores");
  view_changed(before);
}

void Allocations::learn_numbering(const core::NumberingEvidence& evidence) {
  const model::HostScan& host = view_.newest()->snapshot().host;
  if (numbering_known_ || !core::physical_cores_per_device(host)) return;
  if (!view_.lnc() || (!evidence.given.empty() && !holds_cores(ledger_))) {
    if (const auto lnc = core::lnc_in_use(evidence, host)) view_.set_lnc(lnc);
  }
  numbering_known_ = view_.lnc().has_value();
}

void Allocations::learn_units(const model::Allocation& shown) {
  const auto resource = model::parse_resource(shown.resource_name);
  if (!resource) return;
  constexpr int kMaxUnit = 65535;
  const int physical = core::physical_cores_per_device(view_.newest()->snapshot().host).value_or(0);
  const int cores = view_.lnc() ? physical / *view_.lnc() : 0;  // 0: ids mean nothing yet
  for (const std::string& id : shown.ids) {
    if (resource == Resource::efa) {
      view_.add_held_efa(id);
      continue;
    }
    auto index = parse_int(id, 0, kMaxUnit);
    if (index && resource == Resource::neuroncore) index = cores > 0 ? std::optional(*index / cores) : std::nullopt;
    if (index) view_.add_held_device(*index);
  }
}

void Allocations::learn_claim(const model::Allocation& shown) {
  for (const core::PoolName& name : claimed_names(shown, claim_driver_)) {
    for (const int device : core::named_devices(name, view_.newest()->snapshot().host)) view_.add_held_device(device);
    if (const auto* efa = std::get_if<core::EfaName>(&name)) view_.add_held_efa(efa->label);
  }
}

void Allocations::learn(const ShownAllocations& shown) {
  const grant::NodeUnitsPtr before = view_.node();
  learn_numbering(shown.numbering);
  for (const auto* source : {&shown.listed, &shown.stored}) {
    for (const model::Allocation& one : *source) learn_units(one);
  }
  for (const model::Allocation& one : shown.claims) learn_claim(one);
  view_changed(before);
}

UnitChooser::Basis Allocations::basis(CheckpointVersion version) const {
  return {*view_.node(), ledger_, offer_, version, clock_.now()};
}

Allocations::Preference Allocations::prefer_among(Resource resource, const std::vector<std::string>& available,
                                                  const std::vector<std::string>& must_include, int size,
                                                  const PlacedIds* placement) {
  if (!view_.node()) return {{}, "not scanned yet"};
  const grant::NodeUnits& node = *view_.node();
  const std::vector<int> free = known_units(node, resource, available);
  const std::vector<int> wanted = known_units(node, resource, must_include);
  const CheckpointVersion version = version_();
  // A unit is available once its container has ended, sooner than PodResources shows it. So may be what the kubelet has
  // given to another container of the pod that it is admitting (docs/reference/kubelet.md#double-allocation), which
  // proves nothing about a younger holding.
  const SteadyTime now = clock_.now();
  list_overlap_.called(now);
  ledger_.available(resource, without(free, wanted), now - kMaxAdmission, now);
  Preference answer;
  allocator::Choice choice;
  if (placement != nullptr) {
    auto placed = chooser_.placed(basis(version), resource, free, wanted, size, *placement);
    if (placed) {
      choice = {*std::move(placed), "placed by others"};
    } else {
      answer.obstacle = placed.error().message;
    }
  }
  if (choice.ids.empty()) choice = chooser_.choose(basis(version), resource, free, wanted, size);
  for (const int unit : choice.ids) answer.ids.push_back(node.id_of(resource, unit));
  spdlog::debug("prefer resource={} asked={} of={} chosen={} why=\"{}\"", model::resource_name(resource), size,
                available.size(), fmt::join(answer.ids, ","), choice.why);
  return answer;
}

std::vector<std::string> Allocations::prefer(Resource resource, const std::vector<std::string>& available,
                                             const std::vector<std::string>& must_include, int size) {
  const MutexLock lock(mutex_);
  return prefer_among(resource, available, must_include, size, nullptr).ids;
}

Allocations::Preference Allocations::prefer_placed(Resource resource, const std::vector<std::string>& available,
                                                   const std::vector<std::string>& must_include, int size,
                                                   const PlacedIds& placement) {
  const MutexLock lock(mutex_);
  return prefer_among(resource, available, must_include, size, &placement);
}

void Allocations::list_asked() {
  const MutexLock lock(mutex_);
  list_overlap_.list_asked(clock_.now());
  ledger_.list_asked(clock_.now());
}

void Allocations::list_ended(ListEnd end) {
  const MutexLock lock(mutex_);
  // A kubelet that has not answered in time may still be at it.
  list_overlap_.list_ended(clock_.now() + (end == ListEnd::answered ? SteadyTime::duration{0} : kMaxAdmission));
}

void Allocations::call_began() {
  const MutexLock lock(mutex_);
  list_overlap_.called(clock_.now());
}

// The holding that an answer for these ids would be.
refusals::OrRefusal<Holding> Allocations::resolve(Resource resource, const std::vector<std::string>& ids) const {
  const grant::NodeUnits& node = *view_.node();
  if (ids.empty()) return fail(refusals::no_ids(resource));
  std::vector<int> units;
  for (const std::string& id : ids) {
    auto unit = node.unit_of(resource, id);
    if (!unit) return fail(refusals::unknown_id(std::move(unit).error()));
    units.push_back(*unit);
  }
  std::sort(units.begin(), units.end());
  if (const auto twice = std::adjacent_find(units.begin(), units.end()); twice != units.end()) {
    return fail(refusals::asked_twice(resource, node.id_of(resource, *twice)));
  }
  for (const int unit : units) {
    const std::string id = node.id_of(resource, unit);
    const model::Health& health = node.health_of(resource, unit);
    if (health.state == model::HealthState::unhealthy) return fail(refusals::unhealthy(resource, id, health));
    if (!offer_.offers(resource, node.device_of(resource, unit))) return fail(refusals::not_offered(resource, id));
  }
  return holding_of(node, resource, std::move(units));
}

// Rules 1 and 2 of docs/resources.md#same-hardware.
std::optional<Allocations::Obstacle> Allocations::obstacle(const Holding& asked, CheckpointVersion version) const {
  const Holding* const given = ledger_.available_though_given(asked.resource, asked.units);
  if (given != nullptr && version != 0) {  // 0: no checkpoint could show its end
    const int unit = common(asked.units, given->units).front();
    return Obstacle{refusals::given_before(asked.resource, view_.node()->id_of(asked.resource, unit), *given), *given};
  }
  if (!model::has_cores(asked.resource)) {
    for (const int unit : asked.units) {
      const Holding* with = ledger_.claim_of_efa(unit);
      if (with == nullptr) continue;
      return Obstacle{refusals::claimed(asked.resource, view_.node()->id_of(asked.resource, unit), *with), {}};
    }
    return std::nullopt;
  }
  if (const Holding* first = ledger_.cores_of_admission(asked.resource, version);
      first != nullptr && first->cores != asked.cores) {
    return Obstacle{refusals::other_hardware(asked.resource, *first, offer_), *first};
  }
  if (const auto conflict = ledger_.conflict(asked.resource, asked.units, asked.cores, version)) {
    const bool is_claim = !conflict->with.claim.empty();
    return Obstacle{refusals::held(asked.resource, *conflict), is_claim ? std::nullopt : std::optional(conflict->with)};
  }
  return std::nullopt;
}

bool Allocations::needs_fresh_checkpoint(Resource resource, const std::vector<std::string>& ids) {
  const MutexLock lock(mutex_);
  const CheckpointVersion version = version_();
  if (!view_.node() || version == 0) return false;
  const auto asked = resolve(resource, ids);
  if (!asked) return false;
  const auto found = obstacle(*asked, version);
  if (!found || !found->with) return false;
  waiting_version_ = version;
  return true;
}

std::optional<SteadyTime> Allocations::needs_second_checkpoint(Resource resource, const std::vector<std::string>& ids) {
  const MutexLock lock(mutex_);
  if (!view_.node() || waiting_version_ == 0) return std::nullopt;
  const auto asked = resolve(resource, ids);
  if (!asked) return std::nullopt;
  const auto found = obstacle(*asked, waiting_version_);
  const bool doubtful = found && found->with && found->with->doubtful;
  return doubtful ? std::optional(ledger_.decided_at()) : std::nullopt;
}

void Allocations::confirm(const std::vector<model::Allocation>& written, CheckpointVersion version,
                          SteadyTime written_at) {
  const MutexLock lock(mutex_);
  if (!view_.node() || waiting_version_ == 0 || version == waiting_version_) return;
  ledger_.confirm(to_holdings(*view_.node(), written, clock_.now()), written_at);
  ledger_.admission_goes_on(std::exchange(waiting_version_, version), version);
}

refusals::OrRefusal<grant::Grant> Allocations::give(Holding asked, CheckpointVersion version) {
  if (auto found = obstacle(asked, version)) return fail(std::move(found->refusal));
  chooser_.note_given(basis(version), asked);
  const grant::NodeUnits& node = *view_.node();
  grant::Grant answer = model::has_cores(asked.resource)
                            ? grant::grant_of_cores(node, asked.devices, asked.cores, options_)
                            : grant::grant_of_efas(node, asked.units, options_);
  asked.version = version;
  asked.since = clock_.now();
  asked.given_during_list = list_overlap_.answered();
  ledger_.record(std::move(asked));
  return answer;
}

refusals::OrRefusal<grant::Grant> Allocations::allocate(Resource resource, const std::vector<std::string>& ids) {
  const MutexLock lock(mutex_);
  if (!view_.node()) return fail(refusals::not_scanned());
  const CheckpointVersion version = version_();
  // Unless confirm() has come, the kubelet has not written.
  ledger_.admission_goes_on(std::exchange(waiting_version_, 0), version);
  auto asked = resolve(resource, ids);
  refusals::OrRefusal<grant::Grant> answer = asked ? give(*std::move(asked), version) : fail(asked.error());
  if (!answer) {
    ledger_.forget_admission(version);
    static_cast<void>(list_overlap_.answered());
    return answer;
  }
  for (const std::string& id : ids) given_[resource][id] = clock_.now();
  if (spdlog::should_log(spdlog::level::debug)) {
    spdlog::debug("allocate resource={} given={} left=\"{}\"", model::resource_name(resource), fmt::join(ids, ","),
                  left());
  }
  return answer;
}

std::optional<SteadyTime> Allocations::given_at(Resource resource, const std::string& id) const {
  const MutexLock lock(mutex_);
  const auto of_resource = given_.find(resource);
  if (of_resource == given_.end()) return std::nullopt;
  const auto found = of_resource->second.find(id);
  return found == of_resource->second.end() ? std::nullopt : std::optional(found->second);
}

void Allocations::reconcile(const ShownAllocations& shown) {
  const MutexLock lock(mutex_);
  if (!view_.node()) return;
  learn(shown);
  // An entry that only the checkpoint shows is older than the question and than that checkpoint; it has ended when a
  // newer checkpoint does not show it.
  const SteadyTime before = std::min(shown.asked_at, shown.written_at) - SteadyTime::duration{1};
  ledger_.reconcile({to_holdings(*view_.node(), shown.listed, shown.asked_at), shown.asked_at,
                     to_holdings(*view_.node(), shown.stored, before), shown.stored_version, shown.written_at});
  ledger_.set_claimed(claims_to_holdings(*view_.node(), shown.claims, claim_driver_));
}

UnitUse Allocations::use_of(Resource resource) const {
  UnitUse use{{}, ledger_.held_units(resource)};
  if (model::has_cores(resource)) {
    use.blocked_cores = ledger_.blocked_cores(resource);
    return use;
  }
  for (const Holding& holding : ledger_.claimed()) {
    if (holding.resource == resource) use.blocked_units = merged(use.blocked_units, holding.units);
  }
  return use;
}

std::vector<UnitFacts> Allocations::facts_of(Resource resource) const {
  return unit_facts(*view_.node(), resource, offer_, use_of(resource));
}

std::optional<UnitList> Allocations::unit_list(Resource resource) const {
  const MutexLock lock(mutex_);
  if (!view_.node()) return std::nullopt;
  return make_unit_list(*view_.node(), resource, offer_, use_of(resource));
}

void Allocations::note_published(Resource resource, const UnitList& units) {
  const MutexLock lock(mutex_);
  if (view_.node()) chooser_.note_published(*view_.node(), resource, units);
}

std::vector<Holding> Allocations::all_holdings() const {
  const MutexLock lock(mutex_);
  std::vector<Holding> all = ledger_.holdings();
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

bool Allocations::withholds(Resource resource) const {
  const MutexLock lock(mutex_);
  if (!view_.node()) return false;
  const std::vector<UnitFacts> all = facts_of(resource);
  return std::any_of(all.begin(), all.end(), [](const UnitFacts& one) { return one.offered ? one.blocked : one.held; });
}

std::vector<int> Allocations::held_cores() const {
  std::vector<int> cores;
  for (const Holding& holding : all_holdings()) cores.insert(cores.end(), holding.cores.begin(), holding.cores.end());
  return sorted_unique(std::move(cores));
}

// "neuron=12 neuroncore=48 efa=6": healthy units that no container holds, for the log.
std::string Allocations::left() const {
  std::string text;
  for (const Resource resource : {Resource::neuron, Resource::neuroncore, Resource::efa}) {
    if (view_.node()->units(resource).empty()) continue;
    const std::vector<UnitFacts> all = facts_of(resource);
    const auto free = std::count_if(all.begin(), all.end(), [](const UnitFacts& one) {
      return one.offered && !one.held && !one.blocked && !one.broken;
    });
    text += (text.empty() ? "" : " ") + std::string(model::short_name(resource)) + "=" + std::to_string(free);
  }
  return text;
}

}  // namespace neuron::plugin
