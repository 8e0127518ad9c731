#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "agent/base/parse.h"
#include "agent/core/catalogue.h"
#include "agent/kube/answers.h"
#include "tools/kubectl-neuron/why.h"

// Changes carried out on copies.
namespace neuron::fleet {
namespace {

using Kind = Change::Kind;

constexpr const char* kMadeTemplate = "made-for-the-question";

NodeState* state_named(std::vector<NodeState>& states, const std::string& node) {
  const auto found = std::ranges::find(states, node, [](const NodeState& state) { return state.node.name; });
  return found == states.end() ? nullptr : &*found;
}

const Pod* pod_named(const NodeState& state, const std::string& name) {
  const auto found = std::ranges::find(state.pods, name, full_name);
  return found == state.pods.end() ? nullptr : &*found;
}

bool end_pods(const Change& change, NodeState& state) {
  return std::ranges::all_of(change.pods, [&](const std::string& name) {
    const Pod* pod = pod_named(state, name);
    if (pod == nullptr) return false;
    const Pod gone = *pod;
    take_general(gone, -1, state);
    return release(gone, state);
  });
}

bool move_pod(const Change& change, const Fleet& rules, NodeState& from, NodeState& to, Effort* effort) {
  const Pod* pod = change.pods.size() == 1 ? pod_named(from, change.pods.front()) : nullptr;
  if (pod == nullptr) return false;
  const Pod other = made_again(*pod);
  const Pod gone = *pod;
  if (!release(gone, from)) return false;
  take_general(gone, -1, from);
  const Verdict verdict = fit(rules, other, to, effort);
  if (verdict.answer != Answer::yes) return false;
  place(rules, other, verdict, to);
  return true;
}

void uncordon(NodeState& state) {
  state.node.unschedulable = false;
  std::erase_if(state.node.taints, [](const Taint& taint) { return taint.key == "node.kubernetes.io/unschedulable"; });
}

// "key=value:effect", as fit() writes it.
bool tolerate(const std::string& text, const NodeState& state, Pod& pod) {
  for (const Taint& taint : state.node.taints) {
    const std::string own = taint.key + (taint.value.empty() ? "" : "=" + taint.value) + ":" + taint.effect;
    if (own != text) continue;
    pod.tolerations.push_back({taint.key, "Equal", taint.value, taint.effect});
    return true;
  }
  return false;
}

void scale(Labels& quantities, const std::string& name, int from, int to) {
  const auto found = quantities.find(name);
  const auto value = found == quantities.end() ? std::nullopt : kube::parse_quantity(found->second);
  if (value) found->second = kube::quantity_text(*value * from / to);
}

// The node with another LNC, which takes effect once nothing is held.
bool set_lnc(int to, NodeState& state) {
  const core::InstanceType* type = core::find_instance_type(state.node.instance_type);
  const bool has_choice = type != nullptr && type->family &&
                          (*type->family == model::Family::trainium2 || *type->family == model::Family::trainium3);
  if (!has_choice || !state.claims.empty() || std::ranges::any_of(state.pods, asks_for_hardware)) return false;
  const std::int64_t per_device = cores_per_device(state);
  const int from = per_device == type->physical_cores_per_device ? 1 : 2;
  if (from == to) return false;
  for (Amounts* amounts : {&state.node.capacity, &state.node.allocatable}) {
    const auto cores = amounts->find(kNeuronCore);
    if (cores != amounts->end()) cores->second = cores->second * from / to;
  }
  state.node.labels["neuron-agent/lnc"] = std::to_string(to);
  state.report = nullptr;  // it has the former numbers
  for (Pool& pool : state.pools) {
    for (SliceDevice& device : pool.devices) {
      const auto type_of = device.attributes.find("resourceType");
      if (type_of != device.attributes.end() && type_of->second.text == "neuron_core") return false;
      const auto lnc = device.attributes.find("lnc");
      if (lnc != device.attributes.end()) lnc->second.number = to;
      scale(device.capacity, "cores", from, to);
      for (auto& [set, uses] : device.consumes) {
        for (const auto& [counter, value] : Labels(uses)) scale(uses, counter, from, to);
      }
    }
    for (auto& [set, counters] : pool.counters) {
      for (const auto& [counter, value] : Labels(counters)) scale(counters, counter, from, to);
    }
  }
  return true;
}

struct Served {
  const char* resource;
  const char* device_class;
};
constexpr std::array kServed = {Served{kNeuron, kDeviceClass}, Served{kNeuronDevice, kDeviceClass},
                                Served{kNeuronCore, kCoreClass}, Served{kEfa, kEfaClass}};

// One claim with a request for each resource of each container.
bool use_claim(Fleet& rules, Pod& pod) {
  std::vector<ClaimRequest> requests;
  for (Container& container : pod.containers) {
    for (const Served& served : kServed) {
      const auto asked = container.requests.find(served.resource);
      if (asked == container.requests.end() || asked->second <= 0) continue;
      ClaimRequest request;
      request.name = "r" + std::to_string(requests.size());
      request.device_class = served.device_class;
      request.count = asked->second;
      requests.push_back(request);
      container.requests.erase(asked);
    }
  }
  if (requests.empty()) return false;
  rules.claim_templates[pod.pod_namespace + "/" + kMadeTemplate] = requests;
  pod.claims.push_back({"devices", "", kMadeTemplate});
  return true;
}

const std::vector<ClaimRequest>* requests_of(const Fleet& rules, const Pod& pod, const PodClaim& own) {
  if (!own.claim.empty()) {
    const Claim* claim = find_claim(rules, pod.pod_namespace, own.claim);
    return claim == nullptr ? nullptr : &claim->requests;
  }
  const auto found = rules.claim_templates.find(pod.pod_namespace + "/" + own.claim_template);
  return found == rules.claim_templates.end() ? nullptr : &found->second;
}

// Resources in place of claims, where these ask for plain numbers of devices of the project's classes.
bool use_counts(const Fleet& rules, Pod& pod) {
  Amounts counts;
  for (const PodClaim& own : pod.claims) {
    const std::vector<ClaimRequest>* requests = requests_of(rules, pod, own);
    if (requests == nullptr) return false;
    for (const ClaimRequest& one : *requests) {
      const auto served =
          std::ranges::find_if(kServed, [&](const Served& it) { return it.device_class == one.device_class; });
      const bool plain =
          one.selectors.empty() && one.capacity.empty() && one.first_available.empty() && !one.all && !one.admin_access;
      if (served == kServed.end() || !plain) return false;
      counts[served->resource] += one.count;
    }
  }
  if (counts.empty() || pod.containers.empty()) return false;
  pod.claims.clear();
  for (const auto& [resource, amount] : counts) pod.containers.front().requests[resource] += amount;
  return true;
}

// The one request for a number of devices of the one claim; nullptr: it has another form, or the claim is allocated.
const ClaimRequest* plain_request_of(const Fleet& rules, const Pod& pod) {
  if (pod.claims.size() != 1) return nullptr;
  const PodClaim& own = pod.claims.front();
  const Claim* claim = own.claim_template.empty() ? find_claim(rules, pod.pod_namespace, own.claim) : nullptr;
  const std::vector<ClaimRequest>* known = requests_of(rules, pod, own);
  const bool is_plain = known != nullptr && known->size() == 1 && (claim == nullptr || !claim->allocated) &&
                        !known->front().all && known->front().first_available.empty();
  return is_plain ? &known->front() : nullptr;
}

// The one container that asks for the resource, or the one request of the one claim, with another number.
bool ask_for(std::int64_t number, const std::string& resource, Fleet& rules, Pod& pod) {
  if (resource != "claim") {
    for (Container& container : pod.containers) {
      const auto asked = container.requests.find(resource);
      if (asked == container.requests.end() || asked->second <= 0) continue;
      asked->second = number;
      return true;
    }
    return false;
  }
  const ClaimRequest* known = plain_request_of(rules, pod);
  if (known == nullptr) return false;
  std::vector<ClaimRequest> requests = {*known};
  requests.front().count = number;
  const std::string of = pod.pod_namespace + "/" + pod.claims.front().claim_template;
  const auto constraints = rules.template_constraints.find(of);
  const std::string made = pod.pod_namespace + "/" + kMadeTemplate;
  if (constraints != rules.template_constraints.end()) rules.template_constraints[made] = constraints->second;
  if (const Claim* claim = find_claim(rules, pod.pod_namespace, pod.claims.front().claim)) {
    rules.template_constraints[made] = claim->constraints;
  }
  rules.claim_templates[made] = std::move(requests);
  pod.claims.front() = {pod.claims.front().name, "", kMadeTemplate};
  return true;
}

}  // namespace

std::int64_t devices_in_claim(const Fleet& rules, const Pod& pod) {
  const ClaimRequest* request = plain_request_of(rules, pod);
  return request == nullptr ? 0 : request->count;
}

bool may_take(const NodeState& to, const Pod& pod) {
  const bool by_hardware = asks_for_hardware(pod);
  const Amounts asked = by_hardware ? pod.general : general_amounts(pod);
  const bool is_listed = std::ranges::all_of(
      asked, [&](const auto& entry) { return to.general && to.general->allocatable.contains(entry.first); });
  return is_listed && (!by_hardware || !to.node.allocatable.empty() || !to.pools.empty());
}

Fleet rules_for(const Fleet& fleet, const Pod& pod) {
  Fleet rules;
  rules.classes = fleet.classes;
  rules.claims = fleet.claims;
  rules.claim_templates = fleet.claim_templates;
  rules.template_constraints = fleet.template_constraints;
  rules.unknown = fleet.unknown;
  const bool is_named = !pod.scheduler.empty() && pod.scheduler != "default-scheduler";
  for (const Pod& other : fleet.pods) {
    if (is_named && other.scheduler == pod.scheduler) rules.pods.push_back(other);
  }
  return rules;
}

bool apply(const Change& change, Fleet& rules, Pod& pod, std::vector<NodeState>& states, Effort* effort) {
  NodeState* state = state_named(states, change.node);
  if (state == nullptr) return false;
  switch (change.kind) {
    case Kind::pods_ended:
      return end_pods(change, *state);
    case Kind::pod_moved: {
      NodeState* to = state_named(states, change.to);
      return to != nullptr && to != state && move_pod(change, rules, *state, *to, effort);
    }
    case Kind::uncordon:
      uncordon(*state);
      return true;
    case Kind::tolerate:
      return tolerate(change.value, *state, pod);
    case Kind::gate_removed:
      pod.gates.clear();
      return true;
    case Kind::default_scheduler:
      pod.scheduler.clear();
      return true;
    case Kind::other_lnc:
      return set_lnc(parse_int(change.value, 1, 2).value_or(1), *state);
    case Kind::claim_not_count:
      return use_claim(rules, pod);
    case Kind::count_not_claim:
      return use_counts(rules, pod);
    case Kind::fewer:
      return ask_for(parse_i64(change.value).value_or(0), change.resource, rules, pod);
  }
  return false;
}

Trials::Trials(const Fleet& fleet, const Pod& pod, const std::vector<NodeState>& states, Effort* effort)
    : pod_(pod), states_(states), rules_(rules_for(fleet, pod)), effort_(effort) {}

Answer Trials::outcome(const Change& change) {
  const Answer answer = --left_ < 0 || is_over(effort_) ? Answer::unknown : fit_after(change);
  tried_.insert(change.kind);
  all_tried_ &= answer != Answer::unknown;
  return answer;
}

std::vector<NodeState> Trials::copies_for(const Change& change) const {
  std::vector<NodeState> copies;
  for (const std::string& node : {change.node, change.to}) {
    const auto at = std::ranges::find(states_, node, [](const NodeState& one) { return one.node.name; });
    if (!node.empty() && at != states_.end()) copies.push_back(*at);
  }
  return copies;
}

std::string Trials::refused_on(const Change& change, const std::vector<Verdict>& verdicts) {
  Fleet rules = rules_;
  Pod pod = pod_;
  std::vector<NodeState> copies = copies_for(change);
  if (copies.empty() || !apply(change, rules, pod, copies, effort_)) return "";
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const std::string& node = states_[i].node.name;
    if (node == change.node || std::ranges::none_of(verdicts[i].obstacles, is_refusal)) continue;
    if (--left_ < 0 || is_over(effort_)) return "";
    if (is_refused(fit(rules, pod, states_[i], effort_))) return node;
  }
  return "";
}

Answer Trials::fit_after(const Change& change) {
  std::vector<NodeState> copies = copies_for(change);
  if (copies.empty()) return Answer::no;
  Fleet changed;
  const bool keeps_rules = change.kind == Kind::pods_ended || change.kind == Kind::pod_moved ||
                           change.kind == Kind::uncordon || change.kind == Kind::tolerate;
  if (!keeps_rules) changed = rules_;
  Fleet& rules = keeps_rules ? rules_ : changed;
  Pod pod = pod_;
  // Of some pods it is not known what they free.
  if (!apply(change, rules, pod, copies, effort_))
    return change.kind == Kind::pods_ended ? Answer::unknown : Answer::no;
  return fit(rules, pod, copies.front(), effort_).answer;
}

}  // namespace neuron::fleet
