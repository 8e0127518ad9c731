#include "tools/kubectl-neuron/plan.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "agent/base/parse.h"
#include "tools/kubectl-neuron/why.h"

namespace neuron::fleet {
namespace {

// Nodes that are filled. The verdict of a node changes only when a pod is placed there.
class Filling {
 public:
  Filling(Fleet rules, std::vector<NodeState> states, Effort* effort)
      : rules_(std::move(rules)), states_(std::move(states)), effort_(effort) {
    counts_.resize(states_.size());
  }

  // Another template: earlier verdicts are not about it.
  void begin(const Pod& pod) {
    pod_ = pod;
    number_ = 0;
    placed_.assign(states_.size(), 0);
    verdicts_ = fit_all(rules_, pod_, states_, effort_);
  }

  // Nodes on which a DaemonSet has a pod.
  [[nodiscard]] std::optional<int> targets(const Pod& pod) const {
    if (!are_all_nodes()) return std::nullopt;
    return static_cast<int>(
        std::ranges::count_if(states_, [&](const NodeState& state) { return is_target(pod, state.node); }));
  }

  // A pod on each node that its rules about taints and labels allow, each for itself.
  void place_on_each(GroupPlan& own) {
    std::vector<NodeState> left;
    std::vector<Verdict> why;
    int asked = 0, placed = 0;
    for (std::size_t i = 0; i < states_.size(); ++i) {
      if (!is_target(pod_, states_[i].node)) continue;
      ++asked;
      const Verdict verdict = fit(rules_, pod_, states_[i], effort_);
      if (verdict.answer == Answer::yes) {
        place_at(i, verdict);
        ++placed;
      } else {
        left.push_back(states_[i]);
        why.push_back(verdict);
      }
    }
    own.asked = are_all_nodes() ? std::optional(asked) : std::nullopt;
    own.placed = known(placed, why);
    own.obstacles = asked > 0 ? grouped(left, why) : grouped(states_, verdicts_);
  }

  bool place_one() {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < states_.size(); ++i) {
      if (verdicts_[i].answer == Answer::yes && (!best || counts_[i] > counts_[*best])) best = i;
    }
    if (!best) return false;
    const bool binds = allocates_shared(verdicts_[*best]);
    place_at(*best, verdicts_[*best]);
    verdicts_[*best] = fit(rules_, pod_, states_[*best], effort_);
    if (binds) verdicts_ = fit_all(rules_, pod_, states_, effort_);
    return true;
  }

  // `least` says that there may be more of those `most`.
  Count place_up_to(int most) {
    int count = 0;
    if (!asks_for_hardware(pod_)) count = place_plain(most);
    while (asks_for_hardware(pod_) && count < most && !is_over(effort_) && place_one()) ++count;
    return count < most ? known(count, verdicts_) : Count{count, false};
  }
  Count count_up_to(int most) {
    Count count = place_up_to(most);
    if (count.pods >= most) count.least = true;
    return count;
  }

  [[nodiscard]] std::vector<NodeCount> where() const {
    std::vector<NodeCount> all;
    for (std::size_t i = 0; i < states_.size(); ++i) {
      if (placed_[i] > 0) all.push_back({states_[i].node.name, placed_[i]});
    }
    return all;
  }

  [[nodiscard]] const std::vector<NodeState>& states() const { return states_; }
  [[nodiscard]] const std::vector<Verdict>& verdicts() const { return verdicts_; }

 private:
  static bool is_target(const Pod& pod, const Node& node) {
    return std::ranges::none_of(node_obstacles(pod, node), [](const Obstacle& one) {
      return one.kind == Obstacle::Kind::label || one.kind == Obstacle::Kind::taint;
    });
  }

  // A claim by name is allocated with the first pod, and binds the others to its node.
  [[nodiscard]] bool allocates_shared(const Verdict& verdict) const {
    return std::ranges::any_of(pod_.claims, [&](const PodClaim& own) {
      return !own.claim.empty() && own.claim_template.empty() &&
             std::ranges::find(verdict.devices, own.name, &ClaimResult::claim) != verdict.devices.end();
    });
  }

  void place_at(std::size_t node, const Verdict& verdict) {
    Pod one = pod_;
    one.name += "-" + std::to_string(number_++);
    place(rules_, one, verdict, states_[node]);
    share_claims(one, verdict, states_[node], rules_);
    ++counts_[node];
    ++placed_[node];
  }

  [[nodiscard]] bool are_all_nodes() const { return !states_.empty() && rules_.nodes_unread.empty(); }

  // Where a node is in doubt, or was not read, there may be more, and it is not known that there are none.
  [[nodiscard]] Count known(int count, const std::vector<Verdict>& verdicts) const {
    const bool is_doubtful = std::ranges::find(verdicts, Answer::unknown, &Verdict::answer) != verdicts.end();
    const bool least = is_doubtful || is_cut(effort_) || !are_all_nodes();
    return {count == 0 && least ? std::nullopt : std::optional(count), least};
  }

  // Pods without hardware: on nodes without first. Where the general resources are not counted, one may have all.
  int place_plain(int most) {
    int left = most;
    for (const bool has_hardware : {false, true}) {
      for (std::size_t i = 0; i < states_.size(); ++i) {
        NodeState& state = states_[i];
        if (verdicts_[i].answer != Answer::yes || (state.node.mode != Mode::none) != has_hardware) continue;
        const auto room = general_room(pod_, state);
        const int here = static_cast<int>(std::min<std::int64_t>(room.value_or(left), left));
        take_general(pod_, here, state);
        left -= here;
      }
    }
    if (left > 0) verdicts_ = fit_all(rules_, pod_, states_, effort_);
    return most - left;
  }

  Fleet rules_;  // with the claims that were allocated
  std::vector<NodeState> states_;
  Effort* effort_;
  std::vector<int> counts_;  // pods of the plan, all groups
  std::vector<int> placed_;  // of this group
  std::vector<Verdict> verdicts_;
  Pod pod_;
  int number_ = 0;
};

Fleet with_manifest(const Fleet& fleet, const Manifest& manifest) {
  Fleet rules = rules_for(fleet, Pod{});
  rules.nodes_unread = fleet.nodes_unread;
  for (const auto& [name, requests] : manifest.added.claim_templates) rules.claim_templates[name] = requests;
  for (const auto& [name, list] : manifest.added.template_constraints) rules.template_constraints[name] = list;
  const auto name_of = [](const Claim& one) { return std::tie(one.claim_namespace, one.name); };
  std::vector<Claim> more;
  for (const Claim& claim : manifest.added.claims) {
    if (find_claim(rules, claim.claim_namespace, claim.name) == nullptr) more.push_back(claim);
  }
  rules.claims.insert(rules.claims.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  std::ranges::stable_sort(rules.claims, {}, name_of);
  const auto is_same = [&](const Claim& one, const Claim& other) { return name_of(one) == name_of(other); };
  rules.claims.erase(std::unique(rules.claims.begin(), rules.claims.end(), is_same), rules.claims.end());
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

// Hardware on nodes with the same obstacles; nullopt: the effort has ended.
std::optional<Stranded> stranded_on(const NodeGroup& group, const Fleet& rules, const Pod& pod,
                                    const std::vector<NodeState>& states, Effort* effort) {
  const std::string resource = main_resource(pod);
  const std::set<std::string_view> names(group.nodes.begin(), group.nodes.end());
  Stranded one;
  one.why = words_of(group.obstacles.front());
  for (const NodeState& state : states) {
    if (!names.contains(state.node.name)) continue;
    if (is_over(effort)) return std::nullopt;
    const bool by_claim = !pod.claims.empty() || is_by_claim(rules, state.node, resource);
    const auto claimed = by_claim ? free_by_claim(rules, pod, state, effort) : FreeByClaim{};
    if (!claimed) return std::nullopt;
    const std::int64_t free = by_claim ? claimed->units : free_units(state, resource);
    one.unit = !by_claim ? resource : claimed->is_cores ? "cores by claim" : "devices by claim";
    one.free += free;
    if (free > 0) one.nodes.push_back(state.node.name);
  }
  return one;
}

std::optional<std::vector<Stranded>> all_stranded(const Fleet& rules, const Pod& pod, const Filling& filling,
                                                  Effort* effort) {
  std::vector<Stranded> all;
  if (is_over(effort)) return std::nullopt;
  for (const NodeGroup& group : grouped(filling.states(), filling.verdicts())) {
    if (group.answer != Answer::no || group.obstacles.empty()) continue;
    auto one = stranded_on(group, rules, pod, filling.states(), effort);
    if (!one) return std::nullopt;
    if (one->free > 0) all.push_back(*std::move(one));
  }
  return all;
}

// The group that `replicas` and the numbers for one template are about; nullptr: none.
PodGroup* first_group(std::vector<PodGroup>& groups) {
  const auto found = std::ranges::find_if(
      groups, [](const PodGroup& group) { return asks_for_hardware(group.pod) && !group.per_node; });
  return found == groups.end() ? nullptr : &*found;
}

// Places the group as far as it goes.
void place_group(const PodGroup& group, Filling& filling, GroupPlan& own, Effort* effort) {
  if (!group.per_node) own.asked = group.replicas;
  if (is_over(effort)) {
    if (group.per_node) own.asked = filling.targets(group.pod);
    own.placed = {std::nullopt, true};
    return;
  }
  filling.begin(group.pod);
  if (group.per_node) {
    filling.place_on_each(own);
  } else {
    own.placed = filling.place_up_to(group.replicas);
    if (own.placed.pods.value_or(0) < group.replicas) own.obstacles = grouped(filling.states(), filling.verdicts());
    std::erase_if(own.obstacles, [](const NodeGroup& one) { return one.answer == Answer::yes; });  // cut short
  }
  own.nodes = filling.where();
}

// Pods that fit now fit without others too, whatever the search found there.
void raise_to(Count& empty, int now) {
  if (now > 0 && empty.pods.value_or(0) < now) empty = {now, true};
}

Count count_alone(const Fleet& rules, const PodGroup& group, const std::vector<NodeState>& empty, int most,
                  Effort* effort) {
  if (is_over(effort)) return {std::nullopt, true};
  Filling alone(rules, empty, effort);
  alone.begin(group.pod);
  if (!group.per_node) return alone.count_up_to(group.replicas + most);
  GroupPlan each;
  alone.place_on_each(each);
  return each.placed;
}

constexpr Count kUnknown = {std::nullopt, true}, kNoCount = {std::nullopt, false};

// Nothing to place: only what is asked for.
Plan without_hardware(const std::vector<PodGroup>& groups) {
  Plan result;
  result.placed = result.more = kNoCount;
  for (const PodGroup& group : groups) {
    GroupPlan& own = result.groups.emplace_back();
    own.pod = full_name(group.pod);
    own.has_hardware = false;
    own.placed = own.empty_fleet = kNoCount;
    own.asked = group.per_node ? std::nullopt : std::optional(group.replicas);
    if (result.asked) result.asked = own.asked ? std::optional(*result.asked + *own.asked) : std::nullopt;
  }
  result.notes = manifest_notes(groups);
  return result;
}

void add_not_counted(const Fleet& fleet, const std::vector<PodGroup>& groups, Plan& result) {
  std::set<std::string> names;
  for (const PodGroup& group : groups) {
    for (const std::string& one : uncounted_resources(fleet, group.pod)) names.insert(one);
    names.insert(group.not_counted.begin(), group.not_counted.end());
    if (fleet.nodes.empty() || !fleet.nodes_unread.empty()) continue;
    const std::vector<std::string> unlisted = unlisted_resources(fleet, group.pod);
    if (unlisted.empty()) continue;
    result.no_such_resource = true;
    result.notes.push_back("no node has " + some_of(unlisted) + ", which " + printable(full_name(group.pod), 400) +
                           " asks for");
  }
  result.not_counted.assign(names.begin(), names.end());
}

// Beyond what is asked for.
void add_more(const Fleet& rules, const PodGroup& group, Filling& filling, int most, Effort* effort, Plan& result) {
  const Pod& pod = group.pod;
  result.more_of = full_name(pod);
  for (const auto& [name, amount] : pod.general) result.aside.push_back(name);
  result.more = kUnknown;
  if (!is_over(effort)) {
    filling.begin(pod);
    result.more = filling.count_up_to(most);
  }
  const bool is_any_known = !filling.states().empty() || rules.nodes_unread.empty();
  if (is_any_known) result.stranded = all_stranded(rules, pod, filling, effort);
}

void add_sums(Plan& result) {
  bool is_unknown = false;
  result.placed.pods = 0;
  for (const GroupPlan& own : result.groups) {
    result.asked = result.asked && own.asked ? std::optional(*result.asked + *own.asked) : std::nullopt;
    *result.placed.pods += own.placed.pods.value_or(0);
    result.placed.least |= own.placed.least;
    is_unknown |= !own.placed.pods;
  }
  if (is_unknown && result.placed == 0) result.placed = kUnknown;
}

Answer answer_of(const std::vector<GroupPlan>& groups) {
  Answer answer = Answer::yes;
  for (const GroupPlan& own : groups) {
    if (own.asked && own.placed == own.asked && (own.asked > 0 || own.obstacles.empty() || !own.has_hardware)) continue;
    if (!own.placed.least) return Answer::no;  // also a DaemonSet's whose rules no node meets
    answer = Answer::unknown;
  }
  return answer;
}

}  // namespace

Plan plan(const Fleet& fleet, const Manifest& manifest, int replicas, Effort* effort, int most) {
  std::vector<PodGroup> groups = manifest.groups;
  if (std::ranges::none_of(groups, asks_for_hardware, &PodGroup::pod)) return without_hardware(groups);
  Plan result;
  result.more = kNoCount;
  PodGroup* const first = first_group(groups);
  if (replicas > 0 && first != nullptr) first->replicas = replicas;
  for (PodGroup& group : groups) {
    group.pod.scheduler.clear();
    group.pod.gates.clear();
  }
  const Fleet rules = with_manifest(fleet, manifest);
  std::vector<NodeState> states = node_states(fleet);
  count_general(fleet, states);
  add_not_counted(fleet, groups, result);
  if (states.empty()) result.no_nodes = fleet.nodes_unread.empty() ? "no node is listed" : "no node could be read";
  std::vector<NodeState> empty;
  for (const NodeState& state : states) empty.push_back(emptied(state));
  std::optional<Filling> filling(std::in_place, rules, std::move(states), effort);
  for (const PodGroup& group : groups) {
    GroupPlan& own = result.groups.emplace_back();
    own.pod = full_name(group.pod);
    own.has_hardware = asks_for_hardware(group.pod);
    place_group(group, *filling, own, effort);
  }
  add_sums(result);
  result.answer = answer_of(result.groups);
  if (first != nullptr) add_more(rules, *first, *filling, most, effort, result);
  filling.reset();  // its pods take more memory than all else
  for (std::size_t i = 0; i < groups.size(); ++i) {
    GroupPlan& own = result.groups[i];
    own.empty_fleet = own.has_hardware ? count_alone(rules, groups[i], empty, most, effort) : kNoCount;
    const int now = own.placed.pods.value_or(0) + (&groups[i] == first ? result.more.pods.value_or(0) : 0);
    if (own.has_hardware) raise_to(own.empty_fleet, now);
  }
  if (first != nullptr) {
    result.types = counts_by_type(rules, first->pod, first->replicas + most, effort);
  } else if (replicas > 0) {
    result.notes.emplace_back("--replicas is of no use: a DaemonSet has a pod on each node");
  }
  for (std::string& note : manifest_notes(manifest.groups)) result.notes.push_back(std::move(note));
  if (!fleet.nodes_unread.empty()) {
    result.notes.push_back(printable(fleet.nodes_unread, 400) + "; what those take is not known");
  }
  result.was_cut = is_cut(effort);
  if (result.was_cut) {
    result.notes.push_back("the search ended after " + std::to_string(effort->limit().count()) +
                           " s: the numbers are the least, and more may fit");
  }
  return result;
}

int exit_status(const Plan& plan) {
  return plan.answer == Answer::yes ? 0 : plan.answer == Answer::no && !plan.no_such_resource ? 1 : 2;
}

}  // namespace neuron::fleet
