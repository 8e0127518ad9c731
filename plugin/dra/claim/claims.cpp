#include "plugin/dra/claim/claims.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <condition_variable>
#include <fstream>
#include <memory>
#include <mutex>
#include <set>
#include <tuple>
#include <utility>

#include "agent/base/parse.h"
#include "plugin/dra/claim/claim_cores.h"
#include "plugin/dra/claim/claim_lnc.h"
#include "plugin/dra/claim/claim_pods.h"
#include "plugin/dra/claim/claim_units.h"
#include "plugin/dra/claim/claim_use.h"

namespace neuron::plugin::dra {

struct Claims::Pending {
  ClaimRef ref;
  std::shared_ptr<const PreparedClaim> before;  // nullptr: it was not prepared
  Claim claim;
  ClaimPlan plan;
  std::vector<ContainerOfPod> containers;
  std::string unread;  // as ClaimUse has it
  PreparedClaim prepared;
  PrepareAnswer answer;
  bool is_done = false;                         // answered
  std::optional<std::chrono::seconds> grace{};  // as PreparedClaim has it

  [[nodiscard]] bool computes() const {
    return std::any_of(plan.shares.begin(), plan.shares.end(),
                       [](const RequestShare& share) { return share.computes(); });
  }
};

struct Claims::Call {
  ClaimStore::View view;
  grant::NodeUnitsPtr seen;  // of the newest scan
  grant::NodeUnitsPtr node;  // the same, or of one that was made for this call
  std::vector<Pending> claims;
  std::optional<Error> api_error;  // the API server does not answer: it is not asked again
  PodsOfClaims pods;

  [[nodiscard]] GrantFacts facts(const ClaimsSettings& settings) const { return {*node, settings.grant}; }
  // The next step for every claim that is not answered yet; one that fails is.
  template <typename Step>
  void each(const Step& step) {
    for (Pending& pending : claims) {
      if (pending.is_done) continue;
      if (auto result = step(pending); !result) refuse(pending, result.error());
    }
  }
  static void refuse(Pending& pending, const Error& error) {
    constexpr std::size_t kMaxMessage = 1000;  // an event has 1,024
    pending.answer = {{}, printable_line(error.message, kMaxMessage), error.code};
    pending.is_done = true;
  }
};

namespace {

constexpr const char* kStopping = "the call was cancelled or the driver is stopping; retried automatically";

bool is_no_answer(const Error& error) {
  return error.code == ErrorCode::unavailable || error.code == ErrorCode::deadline_exceeded;
}

// Whether the allocation is still the one that was prepared.
bool is_same(const PreparedClaim& prepared, const Claim& claim) {
  std::set<std::tuple<std::string, std::string, std::string>> was, is;
  for (const PreparedDevice& device : prepared.devices) {
    for (const std::string& request : device.requests) was.emplace(request, device.pool, device.device);
  }
  for (const ClaimResult& result : claim.results) is.emplace(result.request, result.pool, result.device);
  return was == is;
}

bool has_device(const PreparedClaim& prepared, const std::string& name) {
  return std::any_of(prepared.devices.begin(), prepared.devices.end(),
                     [&](const PreparedDevice& device) { return device.device == name; });
}

// Rebuilt of its CDI file, without the name by which containers use it.
bool is_nameless(const PreparedClaim& claim) {
  return claim.name.empty() && !claim.held().devices.empty();
}

// Answers of the gate, in their order.
struct GateAnswers {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::pair<std::size_t, std::optional<Error>>> news;  // which claim, why not

  void add(std::size_t which, std::optional<Error> error) {
    const std::lock_guard lock(mutex);
    news.emplace_back(which, std::move(error));
    changed.notify_all();
  }
  [[nodiscard]] std::vector<std::pair<std::size_t, std::optional<Error>>> take() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return !news.empty(); });
    return std::exchange(news, {});
  }
};

}  // namespace

Claims::Claims(ClaimsSettings settings, ClaimsPorts ports, ClaimStore& store, kube::Api& api, const Clock& clock)
    : settings_(std::move(settings)),
      ports_(std::move(ports)),
      store_(store),
      reader_(api, settings_.driver),
      scan_(ports_.scan, ports_.run),
      gate_({ports_.memory_in_use, ports_.run, ports_.post,
             [&store](const std::vector<int>& cores) { return are_held(store, cores); },
             [node = ports_.node](int device, int core) { return owners_of(node(), device, core); }},
            clock) {}

// Its files are there again, for containers that are made anew.
Result<void> Claims::answer_again(Pending& pending) {
  TRY(store_.write_again(pending.ref.uid));
  pending.answer.devices = pending.before->devices;
  pending.is_done = true;
  return {};
}

Result<void> Claims::read(Call& call, Pending& pending) {
  const ClaimRef& ref = pending.ref;
  if (!is_plain_uid(ref.uid)) {
    return fail(ErrorCode::invalid_argument, "\"" + printable(ref.uid, 64) + "\" is not a claim uid");
  }
  if (const auto known = call.view.claims.find(ref.uid); known != call.view.claims.end())
    pending.before = known->second;
  auto claim = call.api_error ? fail(*call.api_error) : reader_.read_claim(ref.claim_namespace, ref.name);
  if (!claim) {
    if (is_no_answer(claim.error())) call.api_error = claim.error();
    // A prepared claim is known without the server, and only a clear answer contradicts it.
    const bool is_denied = claim.error().code == ErrorCode::not_found;
    if (pending.before && pending.before->is_whole() && !is_denied) return answer_again(pending);
    return fail(std::move(claim).error());
  }
  if (claim->uid != ref.uid) {
    return fail(ErrorCode::failed_precondition, "the claim was deleted and recreated under the same name (uid " +
                                                    printable(claim->uid, 64) + ", not " + ref.uid +
                                                    "); delete the pod, so that a new one uses the new claim");
  }
  if (pending.before && is_same(*pending.before, *claim)) return answer_again(pending);
  pending.claim = *std::move(claim);
  return {};
}

Result<void> Claims::plan(Call& call, Pending& pending) {
  if (!call.node) {
    return fail(ErrorCode::unavailable, "this node has not been scanned yet; retried automatically");
  }
  auto plan = plan_of(pending.claim, *call.node, settings_.pool, settings_.taint);
  if (!plan && plan.error().code == ErrorCode::not_found && ports_.scan) {
    grant::NodeUnitsPtr newer = scan_();
    if (!newer) {
      return fail(ErrorCode::unavailable, plan.error().message +
                                              ": the newest scan does not show it, and another scan " +
                                              "has not finished; retried automatically");
    }
    call.node = std::move(newer);
    plan = plan_of(pending.claim, *call.node, settings_.pool, settings_.taint);
  }
  if (!plan) return fail(std::move(plan).error());
  if (call.node != call.seen) TRY(check_known_health(pending.claim, *call.seen, settings_.taint));
  pending.plan = *std::move(plan);
  for (const GrantedDevice& one : pending.plan.devices) {
    if (!pending.before || !has_device(*pending.before, one.device)) TRY(check_offered(*call.node, one.device));
  }
  const Hardware held = pending.plan.held();
  if (auto error = conflict(call.view.claims, pending.ref.uid, held)) return fail(*std::move(error));
  if (!ports_.plugin_holders) return {};
  if (auto error = conflict(ports_.plugin_holders(), held)) return fail(*std::move(error));
  return {};
}

// Only what computes has variables, which depend on the use. A server that does not answer now will later: then, not by
// guessing, the claim is prepared.
Result<void> Claims::read_pods(Call& call, Pending& pending, const std::stop_token& stop) {
  if (call.api_error && !pending.computes()) return {};
  const auto read = call.pods.read(pending.claim, pending.ref.claim_namespace, stop);
  if (read) pending.grace = read->grace;
  if (read && pending.computes()) pending.containers = read->containers;
  if (read || !pending.computes()) return {};
  if (is_no_answer(read.error())) return fail(read.error());
  pending.unread = read.error().message;
  if (read.error().code == ErrorCode::permission_denied) {
    pending.unread += "; allow the driver's service account to get pods";
  }
  return {};
}

// A claim that was rebuilt gets its name when a container of this one uses it: it is looked up by that.
Result<void> Claims::name_rebuilt(Call& call, const Pending& pending) {
  std::set<std::string> others;
  for (const ContainerOfPod& container : pending.containers) {
    for (const auto& [name, used] : container.claims) others.insert(name);
  }
  const std::string& claim_namespace = pending.ref.claim_namespace;
  for (const Pending& other : call.claims) {
    if (other.ref.claim_namespace == claim_namespace) others.erase(other.ref.name);
  }
  for (const auto& [uid, claim] : call.view.claims) {
    if (claim->claim_namespace == claim_namespace) others.erase(claim->name);
  }
  for (const std::string& name : others) {
    if (std::none_of(call.view.claims.begin(), call.view.claims.end(),
                     [](const auto& one) { return is_nameless(*one.second); })) {
      return {};
    }
    const auto claim = reader_.read_claim(claim_namespace, name);
    if (!claim && claim.error().code == ErrorCode::not_found) continue;
    if (!claim) return fail(claim.error());
    const auto found = call.view.claims.find(claim->uid);
    if (found == call.view.claims.end() || !is_nameless(*found->second)) continue;
    PreparedClaim named = *found->second;
    named.claim_namespace = claim_namespace;
    named.name = name;
    found->second = std::make_shared<const PreparedClaim>(std::move(named));
  }
  return {};
}

// The claim's grant, together with other claims of its containers.
Result<void> Claims::grant(const Call& call, Pending& pending) {
  ClaimUse use;
  use.containers = pending.containers;
  use.unread = pending.unread;
  for (const Pending& other : call.claims) {
    const bool is_prepared = other.is_done && other.answer.error.empty();
    if (other.ref.claim_namespace != pending.ref.claim_namespace || is_prepared) continue;
    use.claims[other.ref.name] = {other.plan.shares, std::nullopt, other.answer.error};
  }
  for (const auto& [uid, claim] : call.view.claims) {
    const bool may_be_used = !pending.unread.empty() && is_nameless(*claim);
    if (claim->claim_namespace != pending.ref.claim_namespace && !may_be_used) continue;
    const auto [known, is_new] = use.claims.try_emplace(may_be_used ? claim->shown() : claim->name);
    if (is_new) known->second = known_of(*claim);
  }
  const GrantFacts facts = call.facts(settings_);
  TRY_ASSIGN(const auto environments, environments_of(facts, pending.ref.name, use));
  const auto& host_lnc = call.node->snapshot().host.lnc;
  const auto node_lnc = host_lnc ? std::optional(host_lnc->value) : std::nullopt;
  if (auto clash = lnc_clash(pending.plan.shares, node_lnc, call.view.claims, pending.ref.uid)) {
    return fail(*std::move(clash));
  }
  ClaimGrant granted = grant_of_claim(facts, settings_.driver, pending.ref.uid, pending.plan.devices, environments);
  pending.prepared = {false,
                      pending.ref.claim_namespace,
                      pending.ref.name,
                      pending.ref.uid,
                      pending.claim.resource_version,
                      {},
                      std::move(granted.devices),
                      std::move(granted.cdi_text),
                      node_lnc};
  pending.prepared.grace = pending.grace;
  for (const RequestShare& share : pending.plan.shares) {
    const auto environment = environments.find(share.request);
    pending.prepared.requests.push_back(
        {share, environment == environments.end() ? Environment() : environment->second});
  }
  return {};
}

Result<void> Claims::commit(const Call& call, Pending& pending) {
  pending.answer.devices = pending.prepared.devices;
  TRY(store_.commit(std::move(pending.prepared), call.view.releases));
  pending.is_done = true;
  return {};
}

void Claims::wait_and_commit(Call& call, const std::stop_token& stop) {
  const auto answers = std::make_shared<GateAnswers>();  // jobs that hang keep it
  const std::string group = std::to_string(++calls_);
  std::size_t waiting = 0;
  for (std::size_t i = 0; i < call.claims.size(); ++i) {
    const Pending& pending = call.claims[i];
    if (pending.is_done) continue;
    ++waiting;
    const Hardware held = pending.plan.held();
    const bool is_own = pending.before && pending.before->held() == held;  // what is on it now is its own
    auto cores = is_own ? std::vector<MemoryGate::Core>() : cores_of(*call.node, held);
    const auto done = [answers, i](std::optional<Error> error) { answers->add(i, std::move(error)); };
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
        Call::refuse(pending, *error);
      } else if (auto done = commit(call, pending); !done) {
        Call::refuse(pending, done.error());
      }
    }
  }
}

std::map<std::string, PrepareAnswer> Claims::prepare(const std::vector<ClaimRef>& claims, const std::stop_token& stop) {
  Call call{{}, {}, {}, {}, {}, {reader_, ports_.pods}};
  for (const ClaimRef& ref : claims) call.claims.push_back({ref, {}, {}, {}, {}, {}, {}, {}, false});
  if (auto view = store_.view()) {
    call.view = *std::move(view);
  } else {
    call.each([&](Pending&) -> Result<void> { return fail(view.error()); });
  }
  call.each([&](Pending& pending) { return read(call, pending); });
  call.node = call.seen = ports_.node();
  call.each([&](Pending& pending) { return plan(call, pending); });
  call.each([&](Pending& pending) -> Result<void> {
    TRY(read_pods(call, pending, stop));
    return name_rebuilt(call, pending);
  });
  call.each([&](Pending& pending) { return grant(call, pending); });
  wait_and_commit(call, stop);
  std::map<std::string, PrepareAnswer> answers;
  for (Pending& pending : call.claims) {
    if (!pending.answer.error.empty()) pending.answer.devices.clear();
    log_change(pending);
    answers[pending.ref.uid] = std::move(pending.answer);
  }
  return answers;
}

void Claims::log_change(const Pending& pending) {
  constexpr std::size_t kMaxRemembered = 1024;
  const std::string& error = pending.answer.error;
  const std::string shown =
      printable_line(pending.ref.claim_namespace + "/" + pending.ref.name + " uid=" + pending.ref.uid, 640);
  const MutexLock lock(mutex_);
  if (error.empty()) {
    const bool had_failed = last_error_.erase(pending.ref.uid) > 0;
    if (!pending.before || had_failed) {
      spdlog::info("claim prepared claim={} devices={}", shown, pending.answer.devices.size());
    }
    return;
  }
  if (last_error_.size() >= kMaxRemembered) last_error_.clear();
  std::string& last = last_error_[pending.ref.uid];
  if (last == error) return;
  last = error;
  spdlog::warn("claim not prepared claim={}: {}", shown, error);
}

std::map<std::string, std::string> Claims::unprepare(const std::vector<ClaimRef>& claims) {
  std::map<std::string, std::string> answers;
  for (const ClaimRef& ref : claims) {
    std::string& answer = answers[ref.uid];
    if (!is_plain_uid(ref.uid)) continue;  // nothing was ever prepared for it
    if (const auto released = store_.release(ref.uid); !released) answer = released.error().message;
    const std::string shown = printable_line(ref.claim_namespace + "/" + ref.name + " uid=" + ref.uid, 640);
    const MutexLock lock(mutex_);
    last_error_.erase(ref.uid);
    if (answer.empty()) {
      spdlog::info("claim released claim={}", shown);
    } else {
      spdlog::warn("claim not released claim={}: {}", shown, answer);
    }
  }
  return answers;
}

std::string read_boot_id(const std::string& root) {
  constexpr std::size_t kMaxId = 64;
  std::ifstream file(root + "/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  id = std::string(trim(id));
  return id.size() <= kMaxId ? printable(id, kMaxId) : "";
}

}  // namespace neuron::plugin::dra
