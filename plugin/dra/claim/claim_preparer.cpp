#include "plugin/dra/claim/claim_preparer.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <condition_variable>
#include <optional>
#include <set>
#include <utility>

#include "agent/base/parse.h"
#include "agent/core/logical_cores.h"
#include "plugin/dra/claim/claim_grant.h"
#include "plugin/dra/claim/claim_plan.h"

namespace neuron::plugin::dra {

struct ClaimPreparer::Pending {
  ClaimRef ref;
  std::shared_ptr<const ClaimRecord> before{};  // nullptr: it was not prepared
  ResourceClaim claim{};
  ClaimPlan plan{};
  std::vector<ContainerUse> containers{};
  std::string unread{};                         // as ClaimUse has it
  std::optional<std::chrono::seconds> grace{};  // as ClaimRecord has it
  ClaimRecord record{};                         // as it is to be
  PrepareAnswer answer{};
  bool is_done = false;     // answered
  bool is_planned = false;  // in this call
  bool lost = false;        // cores that were chosen for it, to another instance of the driver

  [[nodiscard]] bool computes() const {
    return std::ranges::any_of(plan.requests, std::mem_fn(&PlannedRequest::computes));
  }
  void refuse(const Error& error) {
    answer = refused(error);
    is_done = true;
  }
};

struct ClaimPreparer::Call {
  PodsOfClaims pods;
  std::uint64_t number = 0;
  std::vector<Pending> claims{};
  RecordStore::View view{};
  grant::NodeUnitsPtr seen{};        // of the newest scan
  grant::NodeUnitsPtr node{};        // the same, or of one that was made for this call
  std::optional<Error> api_error{};  // the API server does not answer: it is not asked again

  // The next step for every claim that is not answered yet; one that fails is.
  template <typename Step>
  void each(const Step& step) {
    for (Pending& pending : claims) {
      if (pending.is_done) continue;
      if (auto result = step(pending); !result) pending.refuse(result.error());
    }
  }
};

namespace {

constexpr int kMostChoices = 3;  // of the cores of shares, in one call
constexpr const char* kStopping = "the call was cancelled or the driver is stopping; retried automatically";

bool is_no_answer(const Error& error) {
  return error.code == ErrorCode::unavailable || error.code == ErrorCode::deadline_exceeded;
}

std::string shown(const ClaimRef& ref) {
  constexpr std::size_t kMaxShown = 640;
  return printable_line(ref.claim_namespace + "/" + ref.name + " uid=" + ref.uid, kMaxShown);
}

// Rebuilt from its CDI file, without the name by which containers use it.
bool is_nameless(const ClaimRecord& record) {
  return record.name.empty() && !record.held().devices.empty();
}

}  // namespace

ClaimPreparer::ClaimPreparer(Settings settings, Ports ports, RecordStore& store, kube::Api& api, const Clock& clock)
    : settings_(std::move(settings)),
      ports_(std::move(ports)),
      store_(store),
      reader_(api, settings_.driver),
      scan_(ports_.scan, ports_.run),
      gate_({ports_.memory_in_use, ports_.run, ports_.post,
             [&store](const std::vector<int>& places) {
               return std::ranges::any_of(places, [&](int place) { return store.is_held(place_of(place)); });
             },
             [newest = ports_.node](int index, int core) {
               const grant::NodeUnitsPtr node = newest();
               const model::NeuronDevice* device = node ? node->device(index) : nullptr;
               return device == nullptr ? "" : core::pids_on_core(*device, core);
             }},
            clock) {}

// Its files are there again, for containers that are recreated.
Result<void> ClaimPreparer::answer_again(Pending& pending) {
  TRY(store_.write_again(pending.ref.uid));
  pending.answer.devices = pending.before->devices;
  pending.is_done = true;
  return {};
}

// Of pods that have come since it was prepared, as far as they can be read.
void ClaimPreparer::learn_grace(Call& call, const ClaimRef& ref, const ResourceClaim& claim,
                                const std::stop_token& stop) {
  const ResourceClaim unread = pods_read_.unread(claim);
  if (unread.pods.empty()) return;
  const auto read = call.pods.read(unread, ref.claim_namespace, stop);
  if (read && store_.extend_grace(claim.uid, read->grace)) pods_read_.add(unread);
}

Result<void> ClaimPreparer::read(Call& call, Pending& pending, const std::stop_token& stop) {
  const ClaimRef& ref = pending.ref;
  if (!is_object_uid(ref.uid)) {
    return fail(ErrorCode::invalid_argument, RefusalReason::bad_request,
                "\"" + printable(ref.uid, 64) + "\" is not a claim uid");
  }
  if (const auto known = call.view.records.find(ref.uid); known != call.view.records.end()) {
    pending.before = known->second;
  }
  auto claim = call.api_error ? fail(*call.api_error) : reader_.read_claim(ref.claim_namespace, ref.name);
  if (!claim) {
    if (is_no_answer(claim.error())) call.api_error = claim.error();
    // A prepared claim is known without the server, and only a clear answer contradicts it.
    const bool is_gone = claim.error().code == ErrorCode::not_found;
    if (pending.before && pending.before->is_whole() && !is_gone) return answer_again(pending);
    return fail(unread_claim(std::move(claim).error()));
  }
  if (claim->uid != ref.uid) {
    return fail(ErrorCode::failed_precondition, RefusalReason::no_claim,
                "the claim was deleted and recreated under the same name (uid " + printable(claim->uid, 64) + ", not " +
                    ref.uid + "); delete the pod, so that a new one uses the new claim");
  }
  if (pending.before && is_same_allocation(*pending.before, *claim)) {
    learn_grace(call, ref, *claim, stop);
    return answer_again(pending);
  }
  pending.claim = *std::move(claim);
  return {};
}

// The cores of its shares, which stay reserved until the call ends.
Result<ChosenShares> ClaimPreparer::choose(const Call& call, const Pending& pending, const grant::NodeUnits& node) {
  const std::string& uid = pending.ref.uid;
  Hardware beside;
  for (const Pending& other : call.claims) {
    if (other.ref.uid == uid) continue;
    beside.add(other.is_done && other.before ? other.before->held() : other.plan.held());
  }
  const auto pick = [&](const Hardware& reserved, const ChosenShares& kept) -> Result<ChosenShares> {
    const ClaimRecords records = store_.held_claims();  // newer than the call's view
    TRY_ASSIGN(const PluginHolders holders, ports_.plugin_holders());
    return choose_shares(pending.claim, {node, *call.seen, settings_.taint, records, holders, reserved, beside}, kept);
  };
  return reservations_.reserve(call.number, uid, pick);
}

Result<ClaimPlan> ClaimPreparer::plan_by(const Call& call, const Pending& pending, const grant::NodeUnits& node) {
  ChosenShares chosen;
  if (std::ranges::any_of(pending.claim.results, [](const auto& result) { return result.cores.has_value(); })) {
    TRY_ASSIGN(chosen, choose(call, pending, node));
  }
  TRY_ASSIGN(ClaimPlan plan, plan_of(pending.claim, node, settings_.pool, settings_.taint, chosen));
  if (&node != call.seen.get()) TRY(check_known_health(pending.claim, *call.seen, settings_.taint, chosen));
  return plan;
}

Result<void> ClaimPreparer::plan(Call& call, Pending& pending) {
  if (!call.node) {
    return fail(ErrorCode::unavailable, RefusalReason::not_scanned,
                "this node has not been scanned yet; retried automatically");
  }
  pending.is_planned = true;
  auto plan = plan_by(call, pending, *call.node);
  if (!plan && plan.error().code == ErrorCode::not_found && ports_.scan) {
    grant::NodeUnitsPtr newer = scan_();
    if (!newer) {
      return fail(ErrorCode::unavailable, RefusalReason::not_scanned,
                  plan.error().message + ": the newest scan does not show it, and another scan " +
                      "has not finished; retried automatically");
    }
    call.node = std::move(newer);
    plan = plan_by(call, pending, *call.node);
  }
  TRY_ASSIGN(pending.plan, std::move(plan));
  TRY(check_groups(pending.plan, pending.before.get(), *call.node));
  const Hardware held = pending.plan.held();
  // By newer records than the call's view, as shares were chosen: a claim that was released since is no conflict.
  if (auto error = conflict(store_.held_claims(), pending.ref.uid, held)) return fail(*std::move(error));
  if (held.empty()) return {};
  TRY_ASSIGN(const PluginHolders holders, ports_.plugin_holders());
  if (auto error = conflict(holders, held)) return fail(*std::move(error));
  return {};
}

// Only what computes has variables, which depend on the use. A server that does not answer now will later: then, not by
// guessing, the claim is prepared.
Result<void> ClaimPreparer::read_pods(Call& call, Pending& pending, const std::stop_token& stop) {
  const bool computes = pending.computes();
  if (call.api_error && !computes) return {};
  const auto read = call.pods.read(pending.claim, pending.ref.claim_namespace, stop);
  if (read) pending.grace = read->grace;
  if (read) pods_read_.add(pending.claim);
  if (read && computes) pending.containers = read->containers;
  if (read || !computes) return {};
  if (is_no_answer(read.error())) return fail(Error(read.error()).with_reason(to_string(RefusalReason::pods_unread)));
  pending.unread = read.error().message;
  if (read.error().code == ErrorCode::permission_denied) {
    pending.unread += "; allow the driver's service account to get pods";
  }
  return {};
}

// A claim that was rebuilt gets its name when a container of this one uses it: it is looked up by that.
Result<void> ClaimPreparer::name_rebuilt(Call& call, const Pending& pending) {
  const std::string& claim_namespace = pending.ref.claim_namespace;
  ClaimRecords& records = call.view.records;
  std::set<std::string> unknown;
  for (const ContainerUse& container : pending.containers) {
    for (const auto& [name, used] : container.claims) unknown.insert(name);
  }
  for (const Pending& other : call.claims) {
    if (other.ref.claim_namespace == claim_namespace) unknown.erase(other.ref.name);
  }
  for (const auto& [uid, record] : records) {
    if (record->claim_namespace == claim_namespace) unknown.erase(record->name);
  }
  for (const std::string& name : unknown) {
    if (std::ranges::none_of(records, [](const auto& one) { return is_nameless(*one.second); })) break;
    const auto claim = reader_.read_claim(claim_namespace, name);
    if (!claim && claim.error().code == ErrorCode::not_found) continue;
    if (!claim) return fail(unread_claim(claim.error()));
    const auto found = records.find(claim->uid);
    if (found == records.end() || !is_nameless(*found->second)) continue;
    ClaimRecord named = *found->second;
    named.claim_namespace = claim_namespace;
    named.name = name;
    found->second = std::make_shared<const ClaimRecord>(std::move(named));
  }
  return {};
}

// The claim's grant, together with other claims of its containers.
Result<void> ClaimPreparer::grant(const Call& call, Pending& pending) {
  const ClaimRef& ref = pending.ref;
  ClaimUse use{{}, pending.containers, pending.unread};
  for (const Pending& other : call.claims) {
    const bool is_prepared = other.is_done && other.answer.error.empty();
    if (other.ref.claim_namespace != ref.claim_namespace || is_prepared) continue;
    use.claims[other.ref.name] = {other.plan.requests, std::nullopt, other.answer.error};
  }
  for (const auto& [uid, record] : call.view.records) {
    const bool may_be_used = !pending.unread.empty() && is_nameless(*record);
    if (record->claim_namespace != ref.claim_namespace && !may_be_used) continue;
    const auto [known, is_new] = use.claims.try_emplace(may_be_used ? record->shown() : record->name);
    if (is_new) known->second = known_of(*record);
  }
  const GrantFacts facts{*call.node, settings_.grant};
  TRY_ASSIGN(const auto environments, environments_of(facts, ref.name, use));
  const auto& host_lnc = call.node->snapshot().host.lnc;
  ClaimRecord& record = pending.record;
  if (host_lnc) record.node_lnc = host_lnc->value;
  if (auto clash = lnc_clash(pending.plan.requests, record.node_lnc, store_.held_claims(), ref.uid)) {
    return fail(*std::move(clash));
  }
  ClaimGrant granted = grant_of_claim(facts, settings_.driver, ref.uid, pending.plan.devices, environments);
  record.claim_namespace = ref.claim_namespace;
  record.name = ref.name;
  record.uid = ref.uid;
  record.resource_version = pending.claim.resource_version;
  record.devices = std::move(granted.devices);
  record.cdi_text = std::move(granted.cdi_text);
  record.grace = pending.grace;
  for (const PlannedRequest& planned : pending.plan.requests) {
    const auto environment = environments.find(planned.name);
    record.requests.push_back({planned, environment == environments.end() ? Environment() : environment->second});
  }
  return {};
}

void ClaimPreparer::wait_and_commit(Call& call, const std::stop_token& stop) {
  const auto answers = std::make_shared<GateAnswers>();  // jobs that hang keep it
  const std::string group = std::to_string(call.number);
  std::size_t waiting = 0;
  for (std::size_t i = 0; i < call.claims.size(); ++i) {
    const Pending& pending = call.claims[i];
    if (pending.is_done) continue;
    ++waiting;
    const Hardware held = pending.plan.held();
    const bool is_own = pending.before && pending.before->held() == held;  // what is on it now is its own
    auto cores = is_own ? std::vector<MemoryGate::Core>() : cores_of(*call.node, held);
    const auto done = [answers, i](std::optional<Error> error) { answers->add({i, std::move(error)}); };
    if (cores.empty()) {
      done(std::nullopt);
    } else {
      gate_.wait(group, "claim " + pending.ref.claim_namespace + "/" + pending.ref.name, std::move(cores), done);
    }
  }
  const std::stop_callback on_stop(stop, [&] { gate_.cancel(group, kStopping); });
  while (waiting > 0) {
    for (auto& [which, error] : answers->take()) {
      --waiting;
      Pending& pending = call.claims[which];
      if (!error && stop.stop_requested()) error = make_error(ErrorCode::unavailable, kStopping);
      if (error) {
        const bool is_late = error->code == ErrorCode::deadline_exceeded;
        const auto reason = is_late ? RefusalReason::in_use : RefusalReason::interrupted;
        pending.refuse((*std::move(error)).with_reason(to_string(reason)));
        continue;
      }
      pending.answer.devices = pending.record.devices;
      pending.is_done = true;
      const auto done = store_.commit(std::move(pending.record), call.view.releases);
      if (done) continue;
      pending.refuse(done.error());
      pending.lost = lost_shares(pending.plan, pending.ref.uid, store_.held_claims());  // as the commit has read them
    }
  }
}

// All claims of the call, of which nothing was answered yet: variables of a container are those of all its claims.
bool ClaimPreparer::begin_anew(Call& call) {
  if (std::ranges::none_of(call.claims, std::mem_fn(&Pending::lost))) return false;
  for (Pending& pending : call.claims) {
    if (!pending.is_planned) continue;
    pending.record = {};
    pending.answer = {};
    pending.is_done = pending.is_planned = pending.lost = false;
  }
  return true;
}

std::map<std::string, PrepareAnswer> ClaimPreparer::prepare(const std::vector<ClaimRef>& claims,
                                                            const std::stop_token& stop) {
  Call call{{reader_, ports_.pods}, ++calls_};
  for (const ClaimRef& ref : claims) call.claims.push_back({ref});
  if (auto view = store_.view()) {
    call.view = *std::move(view);
  } else {
    call.each([&](Pending&) -> Result<void> { return fail(view.error()); });
  }
  call.each([&](Pending& pending) { return read(call, pending, stop); });
  call.node = call.seen = ports_.node();
  int choices = 0;
  do {
    call.each([&](Pending& pending) { return plan(call, pending); });
    call.each([&](Pending& pending) -> Result<void> {
      TRY(read_pods(call, pending, stop));
      return name_rebuilt(call, pending);
    });
    call.each([&](Pending& pending) { return grant(call, pending); });
    wait_and_commit(call, stop);
  } while (++choices < kMostChoices && begin_anew(call));
  reservations_.end(call.number);
  std::map<std::string, PrepareAnswer> answers;
  for (Pending& pending : call.claims) {
    log_change(pending);
    answers[pending.ref.uid] = std::move(pending.answer);
  }
  return answers;
}

void ClaimPreparer::log_change(const Pending& pending) {
  constexpr std::size_t kMaxRemembered = 1024;
  const std::string& error = pending.answer.error;
  const MutexLock lock(mutex_);
  if (error.empty()) {
    const bool had_failed = last_error_.erase(pending.ref.uid) > 0;
    if (!pending.before || had_failed) {
      spdlog::info("claim prepared claim={} devices={}", shown(pending.ref), pending.answer.devices.size());
    }
    return;
  }
  if (last_error_.size() >= kMaxRemembered) last_error_.clear();
  if (std::exchange(last_error_[pending.ref.uid], error) == error) return;
  spdlog::warn("claim not prepared claim={} reason={}: {}", shown(pending.ref), pending.answer.reason, error);
}

std::map<std::string, std::string> ClaimPreparer::unprepare(const std::vector<ClaimRef>& claims) {
  std::map<std::string, std::string> answers;
  for (const ClaimRef& ref : claims) {
    std::string& answer = answers[ref.uid];
    if (!is_object_uid(ref.uid)) continue;  // it was never prepared
    pods_read_.forget(ref.uid);
    if (const auto released = store_.release(ref.uid); !released) answer = released.error().message;
    const MutexLock lock(mutex_);
    last_error_.erase(ref.uid);
    if (answer.empty()) {
      spdlog::info("claim released claim={}", shown(ref));
    } else {
      spdlog::warn("claim not released claim={}: {}", shown(ref), answer);
    }
  }
  return answers;
}

}  // namespace neuron::plugin::dra
