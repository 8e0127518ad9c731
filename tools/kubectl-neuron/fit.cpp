#include "tools/kubectl-neuron/fit.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "agent/base/parse.h"

namespace neuron::fleet {
namespace {

using Kind = Obstacle::Kind;

std::string text_of(const Taint& taint) {
  return taint.key + (taint.value.empty() ? "" : "=" + taint.value) + ":" + taint.effect;
}

std::string text_of(const LabelRule& rule) {
  std::string values;
  for (const std::string& value : rule.values) values += (values.empty() ? "" : ", ") + value;
  if (rule.op == "Exists") return rule.key;
  if (rule.op == "DoesNotExist") return "!" + rule.key;
  if (rule.op == "Gt" || rule.op == "Lt") return rule.key + (rule.op == "Gt" ? " > " : " < ") + values;
  return rule.key + (rule.op == "NotIn" ? " notin (" : " in (") + values + ")";
}

std::optional<std::string> value_of(const LabelRule& rule, const Node& node) {
  if (rule.is_field) return rule.key == "metadata.name" ? std::optional(node.name) : std::nullopt;
  const auto found = node.labels.find(rule.key);
  return found == node.labels.end() ? std::nullopt : std::optional(found->second);
}

bool is_met(const LabelRule& rule, const Node& node) {
  return fleet::is_met(rule, value_of(rule, node));
}

Obstacle unmet(const LabelRule& rule, const Node& node) {
  return obstacle(Kind::label, text_of(rule), value_of(rule, node).value_or(""));
}

void add_label_obstacles(const Pod& pod, const Node& node, std::vector<Obstacle>& all) {
  for (const auto& [key, value] : pod.node_selector) {
    const LabelRule rule{key, "In", {value}, false};
    if (!is_met(rule, node)) all.push_back(unmet(rule, node));
  }
  std::optional<Obstacle> first;
  for (const std::vector<LabelRule>& term : pod.node_affinity) {
    const auto bad = std::ranges::find_if(term, [&](const LabelRule& rule) { return !is_met(rule, node); });
    if (bad == term.end() && !term.empty()) return;
    if (!first && bad != term.end()) first = unmet(*bad, node);
  }
  if (!pod.node_affinity.empty()) all.push_back(first ? *first : obstacle(Kind::label, "an empty term"));
}

bool is_served(const Fleet& fleet, const Pod& pod) {
  if (pod.scheduler.empty() || pod.scheduler == "default-scheduler") return true;
  if (!pod.node.empty() || !pod.scheduled_reason.empty()) return true;
  return std::ranges::any_of(fleet.pods, [&](const Pod& other) {
    return other.scheduler == pod.scheduler && (!other.node.empty() || !other.scheduled_reason.empty());
  });
}

std::vector<Obstacle> pod_obstacles(const Fleet& fleet, const Pod& pod) {
  std::vector<Obstacle> all;
  for (const std::string& gate : pod.gates) all.push_back(obstacle(Kind::gated, gate));
  if (!is_served(fleet, pod)) all.push_back(obstacle(Kind::no_scheduler, pod.scheduler));
  return all;
}

Verdict verdict_of(std::vector<Obstacle> obstacles, std::vector<ClaimResult> devices) {
  Verdict verdict;
  const auto doubts = std::ranges::count_if(obstacles, [](const Obstacle& one) { return is_doubt(one.kind); });
  verdict.answer = obstacles.empty()                                         ? Answer::yes
                   : doubts == static_cast<std::ptrdiff_t>(obstacles.size()) ? Answer::unknown
                                                                             : Answer::no;
  if (verdict.answer == Answer::no) std::erase_if(obstacles, [](const Obstacle& one) { return is_doubt(one.kind); });
  if (verdict.answer == Answer::yes) verdict.devices = std::move(devices);
  verdict.obstacles = std::move(obstacles);
  return verdict;
}

// Where the scheduler may choose a node whose agent refuses the pod, it is not sure that it runs on another one.
void doubt_others(const std::vector<NodeState>& states, std::vector<Verdict>& verdicts) {
  const auto refusing = std::ranges::find_if(verdicts, is_refused);
  if (refusing == verdicts.end()) return;
  const std::string& node = states[static_cast<std::size_t>(refusing - verdicts.begin())].node.name;
  for (Verdict& verdict : verdicts) {
    if (verdict.answer != Answer::yes) continue;
    verdict.answer = Answer::unknown;
    verdict.devices.clear();
    verdict.obstacles = {obstacle(Kind::refused_there, node)};
  }
}

bool ends_scheduling(const Obstacle& one) {
  return one.kind == Kind::all_differ || one.kind == Kind::claim_limit;
}

template <typename T>
void append(std::vector<T>& all, std::vector<T> more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

}  // namespace

bool is_refusal(const Obstacle& one) {
  return one.kind == Kind::both_names || (one.kind == Kind::too_few && one.detail == "refused");
}

bool is_refused(const Verdict& verdict) {
  return verdict.answer == Answer::no && std::ranges::all_of(verdict.obstacles, is_refusal);
}

Obstacle obstacle(Kind kind, std::string name, std::string detail) {
  Obstacle one;
  one.kind = kind;
  one.name = std::move(name);
  one.detail = std::move(detail);
  return one;
}

bool is_met(const LabelRule& rule, const std::optional<std::string>& value) {
  const auto listed = [&] { return std::ranges::find(rule.values, *value) != rule.values.end(); };
  if (rule.op == "In") return value && listed();
  if (rule.op == "NotIn") return !value || !listed();
  if (rule.op == "Exists") return value.has_value();
  if (rule.op == "DoesNotExist") return !value;
  const auto have = parse_i64(value.value_or(""));
  const auto bound = rule.values.size() == 1 ? parse_i64(rule.values.front()) : std::nullopt;
  if (!have || !bound) return false;
  return rule.op == "Gt" ? *have > *bound : rule.op == "Lt" && *have < *bound;
}

bool is_doubt(Kind kind) {
  return kind >= Kind::selector;
}

bool is_of_pod(Kind kind) {
  return kind <= Kind::claim_limit;
}

std::string full_name(const Pod& pod) {
  return pod.pod_namespace + "/" + pod.name;
}

bool tolerates(const std::vector<Toleration>& tolerations, const Taint& taint) {
  return std::ranges::any_of(tolerations, [&](const Toleration& one) {
    if (!one.effect.empty() && one.effect != taint.effect) return false;
    if (one.op == "Exists") return one.key.empty() || one.key == taint.key;
    return (one.op.empty() || one.op == "Equal") && one.key == taint.key && one.value == taint.value;
  });
}

std::vector<Obstacle> node_obstacles(const Pod& pod, const Node& node) {
  constexpr const char* kCordon = "node.kubernetes.io/unschedulable";
  std::vector<Obstacle> all;
  const bool away = node.ready.has_value() && !*node.ready;
  const auto endures = [&](const std::string& key) { return tolerates(pod.tolerations, {key, "", "NoSchedule"}); };
  const bool waits = away && !(endures("node.kubernetes.io/not-ready") && endures("node.kubernetes.io/unreachable"));
  if (waits) all.push_back(obstacle(Kind::not_ready, ""));
  const bool cordoned = node.unschedulable && !endures(kCordon);
  if (cordoned) all.push_back(obstacle(Kind::unschedulable, ""));
  for (const Taint& taint : node.taints) {
    if (taint.effect == "PreferNoSchedule" || tolerates(pod.tolerations, taint)) continue;
    if (cordoned && taint.key == kCordon) continue;
    const bool says_away = taint.key == "node.kubernetes.io/not-ready" || taint.key == "node.kubernetes.io/unreachable";
    if (waits && says_away) continue;
    all.push_back(obstacle(Kind::taint, text_of(taint)));
  }
  add_label_obstacles(pod, node, all);
  return all;
}

namespace {

// Where others that could not be read may hold what it asks for.
void add_hidden(const Fleet& fleet, const Pod& pod, const NodeState& state, std::vector<Obstacle>& all) {
  bool by_claim = !pod.claims.empty(), by_count = false;
  for (const auto& [resource, amount] : scheduled_amounts(pod)) {
    if (amount <= 0) continue;
    (is_by_claim(fleet, state.node, resource) ? by_claim : by_count) = true;
  }
  if (by_count && state.pods_hidden) all.push_back(obstacle(Kind::unread, "pods", "holders"));
  if (by_claim && state.claims_hidden) all.push_back(obstacle(Kind::unread, "claims", "holders"));
  for (Obstacle& one : all) {
    const bool of_claims = one.kind >= Kind::too_few_devices && one.kind <= Kind::tainted;
    const bool of_pods = one.kind == Kind::too_few || one.kind == Kind::too_little;
    one.at_most = of_pods ? state.pods_hidden : of_claims && state.claims_hidden;
  }
}

}  // namespace

Verdict fit(const Fleet& fleet, const Pod& pod, const NodeState& state, Effort* effort) {
  if (is_over(effort)) return {Answer::unknown, {obstacle(Kind::not_tried, "")}, {}};
  std::vector<Obstacle> all = pod_obstacles(fleet, pod);
  append(all, node_obstacles(pod, state.node));
  append(all, count_obstacles(fleet, pod, state));
  append(all, general_obstacles(pod, state));
  std::vector<ClaimResult> devices;
  append(all, claim_obstacles(fleet, pod, state, devices, effort));
  add_hidden(fleet, pod, state, all);
  if (pod.amounts_unread) all.push_back(obstacle(Obstacle::Kind::unread, "a readable amount in its requests"));
  return verdict_of(std::move(all), std::move(devices));
}

std::vector<Verdict> fit_all(const Fleet& fleet, const Pod& pod, const std::vector<NodeState>& states, Effort* effort) {
  std::vector<Verdict> all;
  std::optional<Obstacle> limit;
  for (const NodeState& state : states) {
    const Verdict& verdict = all.emplace_back(fit(fleet, pod, state, effort));
    const auto end = std::ranges::find_if(verdict.obstacles, ends_scheduling);
    const bool counts = !limit && end != verdict.obstacles.end() && node_obstacles(pod, state.node).empty() &&
                        count_obstacles(fleet, pod, state).empty() && general_obstacles(pod, state).empty();
    if (counts) limit = *end;
  }
  if (!limit) {
    doubt_others(states, all);
    return all;
  }
  for (Verdict& verdict : all) {
    const bool has_it = std::ranges::any_of(verdict.obstacles, ends_scheduling);
    if (!has_it) verdict.obstacles.insert(verdict.obstacles.begin(), *limit);
    verdict.answer = Answer::no;
    verdict.devices.clear();
    std::erase_if(verdict.obstacles, [](const Obstacle& one) { return is_doubt(one.kind); });
  }
  return all;
}

namespace {

// Reports are large, and states are copied for each change that is tried.
Node without_report(const Node& node) {
  return {node.name,      node.created,       node.labels,   node.taints, node.unschedulable,
          node.ready,     node.allocatable,   node.capacity, node.mode,   node.instance_type,
          node.agent_pod, node.agent_version, std::nullopt,  ""};
}

// Pods that the agent names and the list of pods has not, with what they hold through device plugins.
void add_unlisted(const Fleet& fleet, NodeState& state) {
  std::map<std::pair<std::string, std::string>, Pod> found;
  for (const report::PodUse& use : *state.report->pods) {
    if (!use.claim.empty() || find_pod(fleet, use.pod_namespace, use.pod) != nullptr) continue;
    Pod& pod = found[{use.pod_namespace, use.pod}];
    pod.pod_namespace = use.pod_namespace;
    pod.name = use.pod;
    pod.node = state.node.name;
    pod.phase = "Running";
    const auto devices = static_cast<std::int64_t>(use.devices.size()),
               cores = static_cast<std::int64_t>(use.cores.size());
    const bool whole = cores == 0 || cores == devices * cores_per_device(state);
    Container& container = pod.containers.emplace_back();
    container.name = use.container;
    if (devices > 0) container.requests[whole ? kNeuron : kNeuronCore] = whole ? devices : cores;
    if (!use.efas.empty()) container.requests[kEfa] = static_cast<std::int64_t>(use.efas.size());
  }
  for (auto& [name, pod] : found) state.pods.push_back(std::move(pod));
}

}  // namespace

std::vector<NodeState> node_states(const Fleet& fleet) {
  std::vector<NodeState> states;
  std::map<std::string, std::size_t> by_name;
  std::map<std::pair<std::string, std::string>, std::size_t> by_pool;
  for (const Node& node : fleet.nodes) {
    by_name[node.name] = states.size();
    NodeState& state = states.emplace_back();
    state.node = without_report(node);
    state.report = node.report ? &*node.report : nullptr;
  }
  for (const Pod& pod : fleet.pods) {
    const auto at = by_name.find(pod.node);
    if (at != by_name.end() && !has_ended(pod)) states[at->second].pods.push_back(pod);
  }
  for (const Pool& pool : fleet.pools) {
    const auto at = by_name.find(pool.node);
    if (at == by_name.end()) continue;
    by_pool[{pool.driver, pool.name}] = at->second;
    states[at->second].pools.push_back(pool);
  }
  for (NodeState& state : states) {
    const bool is_told = state.report != nullptr && state.report->pods;
    state.pods_hidden = fleet.pods_partial && !is_told;
    state.claims_hidden = fleet.claims_partial;
    if (fleet.pods_partial && is_told) add_unlisted(fleet, state);
    std::ranges::stable_sort(state.pools, {}, &Pool::name);
  }
  for (const Claim& claim : fleet.claims) {
    for (const AllocatedDevice& device : claim.devices) {
      const auto at = by_pool.find({device.driver, device.pool});
      if (at == by_pool.end()) continue;
      states[at->second].claims.push_back(claim);
      break;
    }
  }
  return states;
}

}  // namespace neuron::fleet
