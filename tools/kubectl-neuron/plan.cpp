#include "tools/kubectl-neuron/plan.h"

#include <algorithm>
#include <utility>

#include "agent/base/parse.h"
#include "tools/kubectl-neuron/why.h"

namespace neuron::fleet {
namespace {

// Nodes that are filled. The verdict of a node changes only when a pod is placed there.
class Filling {
 public:
  Filling(const Fleet& rules, std::vector<NodeState> states) : rules_(rules), states_(std::move(states)) {
    counts_.resize(states_.size());
  }

  // Another template: earlier verdicts are not about it.
  void begin(const Pod& pod) {
    pod_ = pod;
    number_ = 0;
    placed_.assign(states_.size(), 0);
    verdicts_ = fit_all(rules_, pod_, states_);
  }

  bool place_one() {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < states_.size(); ++i) {
      if (verdicts_[i].answer == Answer::yes && (!best || counts_[i] > counts_[*best])) best = i;
    }
    if (!best) return false;
    Pod one = pod_;
    one.name += "-" + std::to_string(number_++);
    place(rules_, one, verdicts_[*best], states_[*best]);
    ++counts_[*best];
    ++placed_[*best];
    verdicts_[*best] = fit(rules_, pod_, states_[*best]);
    return true;
  }

  int place_up_to(int most) {
    int count = 0;
    while (count < most && place_one()) ++count;
    return count;
  }

  [[nodiscard]] std::vector<NodeCount> where() const {
    std::vector<NodeCount> all;
    for (std::size_t i = 0; i < states_.size(); ++i) {
      if (placed_[i] > 0) all.push_back({states_[i].node.name, placed_[i]});
    }
    return all;
  }

  [[nodiscard]] bool has_doubt() const {
    return std::ranges::find(verdicts_, Answer::unknown, &Verdict::answer) != verdicts_.end();
  }
  [[nodiscard]] const std::vector<NodeState>& states() const { return states_; }
  [[nodiscard]] const std::vector<Verdict>& verdicts() const { return verdicts_; }

 private:
  const Fleet& rules_;
  std::vector<NodeState> states_;
  std::vector<int> counts_;  // pods of the plan, all groups
  std::vector<int> placed_;  // of this group
  std::vector<Verdict> verdicts_;
  Pod pod_;
  int number_ = 0;
};

// Without pods and claims. Unhealthy hardware stays so.
NodeState emptied(NodeState state) {
  const std::vector<Pod> pods = state.pods;
  for (const Pod& pod : pods) {
    if (release(pod, state)) continue;
    // Which devices its cores were on is not known: as if all were healthy.
    for (const auto& [resource, units] : state.node.capacity) state.node.allocatable[resource] = units;
  }
  state.pods.clear();
  state.claims.clear();
  state.pods_hidden = state.claims_hidden = false;
  for (Pool& pool : state.pools) {
    for (SliceDevice& device : pool.devices) {
      std::erase_if(device.taints, [](const Taint& taint) { return taint.key.ends_with("/held"); });
    }
  }
  return state;
}

Fleet with_manifest(const Fleet& fleet, const Manifest& manifest) {
  Fleet rules = rules_for(fleet, Pod{});
  for (const auto& [name, requests] : manifest.added.claim_templates) rules.claim_templates[name] = requests;
  for (const auto& [name, list] : manifest.added.template_constraints) rules.template_constraints[name] = list;
  for (const Claim& claim : manifest.added.claims) {
    if (find_claim(rules, claim.claim_namespace, claim.name) != nullptr) continue;
    rules.claims.push_back(claim);
    std::ranges::sort(rules.claims, {}, [](const Claim& one) { return std::tie(one.claim_namespace, one.name); });
  }
  return rules;
}

// The resource of which the pod asks for most.
std::string main_resource(const Pod& pod) {
  std::string name;
  std::int64_t most = 0;
  for (const auto& [resource, amount] : scheduled_amounts(pod)) {
    if (amount <= most) continue;
    most = amount;
    name = resource;
  }
  return name;
}

void add_stranded(const Fleet& rules, const Pod& pod, const Filling& filling, std::vector<Stranded>& all) {
  const std::string resource = main_resource(pod);
  for (const NodeGroup& group : grouped(filling.states(), filling.verdicts())) {
    if (group.answer != Answer::no || group.obstacles.empty()) continue;
    Stranded one;
    one.why = words_of(group.obstacles.front());
    for (const NodeState& state : filling.states()) {
      if (std::ranges::find(group.nodes, state.node.name) == group.nodes.end()) continue;
      const bool by_claim = !pod.claims.empty() || is_by_claim(rules, state.node, resource);
      const std::int64_t free = by_claim ? free_devices(rules, pod, state) : free_units(state, resource);
      one.unit = by_claim ? "devices by claim" : resource;
      one.free += free;
      if (free > 0) one.nodes.push_back(state.node.name);
    }
    if (one.free > 0) all.push_back(std::move(one));
  }
}

bool is_odd_scheduler(const Pod& pod) {
  return !pod.scheduler.empty() && pod.scheduler != "default-scheduler";
}

void add_notes(const std::vector<PodGroup>& groups, std::vector<std::string>& notes) {
  for (const PodGroup& group : groups) {
    if (!asks_for_hardware(group.pod))
      notes.push_back(printable(full_name(group.pod), 400) + " asks for no Neuron device and no interface");
    if (is_odd_scheduler(group.pod)) {
      notes.push_back(printable(full_name(group.pod), 400) + " has schedulerName " + printable(group.pod.scheduler) +
                      ", which may place it otherwise");
    }
  }
}

}  // namespace

Plan plan(const Fleet& fleet, const Manifest& manifest, int replicas) {
  Plan result;
  std::vector<PodGroup> groups = manifest.groups;
  if (replicas > 0) groups.front().replicas = replicas;
  for (PodGroup& group : groups) group.pod.scheduler.clear();
  const Fleet rules = with_manifest(fleet, manifest);
  const std::vector<NodeState> states = node_states(fleet);
  Filling filling(rules, states);
  bool doubt = states.empty();
  for (const PodGroup& group : groups) {
    GroupPlan& own = result.groups.emplace_back();
    own.pod = full_name(group.pod);
    own.asked = group.replicas;
    filling.begin(group.pod);
    own.placed = filling.place_up_to(own.asked);
    own.nodes = filling.where();
    if (own.placed < own.asked) {
      own.obstacles = grouped(filling.states(), filling.verdicts());
      doubt |= filling.has_doubt();
    }
    result.asked += own.asked;
    result.placed += own.placed;
  }
  std::vector<NodeState> empty;
  for (const NodeState& state : states) empty.push_back(emptied(state));
  for (std::size_t i = 0; i < groups.size(); ++i) {
    Filling alone(rules, empty);
    alone.begin(groups[i].pod);
    result.groups[i].empty_fleet = alone.place_up_to(kMostCounted);
  }
  filling.begin(groups.front().pod);
  result.more = asks_for_hardware(groups.front().pod) ? filling.place_up_to(kMostCounted) : 0;
  if (asks_for_hardware(groups.front().pod)) add_stranded(rules, groups.front().pod, filling, result.stranded);
  result.types = counts_by_type(rules, groups.front().pod);
  add_notes(manifest.groups, result.notes);
  result.answer = result.placed >= result.asked ? Answer::yes : doubt ? Answer::unknown : Answer::no;
  return result;
}

int exit_status(const Plan& plan) {
  return plan.answer == Answer::yes ? 0 : plan.answer == Answer::no ? 1 : 2;
}

}  // namespace neuron::fleet
