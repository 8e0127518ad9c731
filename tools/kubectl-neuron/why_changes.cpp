#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "tools/kubectl-neuron/why.h"

// The smallest changes: candidates, each tried on copies of the nodes that it touches.
namespace neuron::fleet {
namespace {

using Kind = Change::Kind;

constexpr std::size_t kMostChanges = 10;
constexpr std::size_t kMostOfPods = 5;  // changes that end or move pods
constexpr std::size_t kMostGroups = 40;
constexpr std::size_t kMostNodes = 200;  // on which pods are tried
constexpr std::size_t kMostTargets = 100;
constexpr std::size_t kMostHolders = 64;  // of one node, of which sets are made
constexpr std::size_t kMostPairs = 300;   // of one node
constexpr std::size_t kMostTogether = 16;
constexpr int kMostTries = 5000;

// A pod that could end.
struct Candidate {
  const Pod* pod = nullptr;
  std::int64_t hardware = 0;   // units and claims; 0: it has none
  std::vector<double> shares;  // of each resource that lacks: what it has of that; 1: enough

  [[nodiscard]] double share() const { return shares.empty() ? 0 : *std::ranges::max_element(shares); }
};
using Set = std::vector<const Candidate*>;

// A node where pods hold what lacks.
struct Full {
  const NodeState* state = nullptr;
  bool lacks_hardware = false;
  std::vector<Candidate> pods;  // that hold some of it; those with the least hardware first, then with the least of it
};

std::int64_t hardware_of(const Pod& pod) {
  std::int64_t sum = static_cast<std::int64_t>(pod.claims.size());
  for (const auto& [resource, amount] : scheduled_amounts(pod)) sum += amount;
  return sum;
}

// How much has to become free of each resource. Hardware that has two names is not counted by one of them.
std::map<std::string, double> lacks_of(const NodeState& state, const Verdict& verdict) {
  std::map<std::string, double> all;
  for (const Obstacle& one : verdict.obstacles) {
    const bool is_counted =
        one.kind == Obstacle::Kind::too_few && one.detail.empty() && (one.name == kEfa || !offers_both_names(state));
    if (one.kind == Obstacle::Kind::too_little) {
      all[one.name] = static_cast<double>(one.asked) - static_cast<double>(state.general->free.at(one.name));
    } else if (is_counted) {
      all[one.name] = static_cast<double>(one.asked - one.free);
    }
  }
  return all;
}

// What a set frees is enough as far as it is counted; fit() decides.
bool may_be_enough(const Full& node, const Set& set) {
  constexpr double kAlmost = 1 - 1e-9;
  if (set.empty()) return false;
  for (std::size_t i = 0; i < set.front()->shares.size(); ++i) {
    double sum = 0;
    for (const Candidate* one : set) sum += one->shares[i];
    if (sum < kAlmost) return false;
  }
  return !node.lacks_hardware || std::ranges::any_of(set, [](const Candidate* one) { return one->hardware > 0; });
}

class Finder {
 public:
  Finder(const Fleet& fleet, const Pod& pod, const std::vector<NodeState>& states, const std::vector<Verdict>& verdicts,
         Effort* effort)
      : fleet_(fleet), pod_(pod), states_(states), verdicts_(verdicts), rules_(rules_for(fleet, pod)), effort_(effort) {
    groups_ = grouped(states, verdicts);
    all_tried_ = groups_.size() <= kMostGroups;
    if (!all_tried_) groups_.resize(kMostGroups);
  }

  Changes run() {
    for (const NodeGroup& group : groups_) try_rules(group);
    for (const NodeGroup& group : groups_) try_forms(group);
    try_pods();
    try_fewer();
    if (found_.size() > kMostChanges) found_.resize(kMostChanges);
    return {std::move(found_), all_tried_};
  }

 private:
  void leave_off() { all_tried_ = false; }
  [[nodiscard]] const NodeState* state(const std::string& node) const {
    const auto at = std::ranges::find(states_, node, [](const NodeState& one) { return one.node.name; });
    return at == states_.end() ? nullptr : &*at;
  }

  // Whether the pod fits on `change.node` after it.
  bool proves(const Change& change) { return outcome(change) == Answer::yes; }

  Answer outcome(const Change& change) {
    const Answer answer = ++tries_ > kMostTries || is_over(effort_) ? Answer::unknown : fit_after(change);
    all_tried_ &= answer != Answer::unknown;
    return answer;
  }

  Answer fit_after(const Change& change) {
    std::vector<NodeState> copies;
    for (const std::string& node : {change.node, change.to}) {
      const NodeState* one = node.empty() ? nullptr : state(node);
      if (one != nullptr) copies.push_back(*one);
    }
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

  // Nodes of the group have the same obstacles now; the change is tried on each. After a few in vain it is given up.
  bool prove_each(Change& change, const NodeGroup& group) {
    constexpr std::size_t kInVain = 3;
    change.nodes = 0;
    Change one = change;
    for (std::size_t i = 0; i < std::min(group.nodes.size(), kMostNodes); ++i) {
      if (change.nodes == 0 && i >= kInVain) {
        leave_off();
        break;
      }
      one.node = group.nodes[i];
      if (!proves(one)) continue;
      if (change.nodes++ == 0) change.node = one.node;
    }
    return change.nodes > 0;
  }

  bool add_if_proved(Change change, const NodeGroup& group) {
    const bool is_known = std::ranges::any_of(found_, [&](const Change& other) {
      return other.kind == change.kind && other.value == change.value && other.pods == change.pods &&
             (change.pods.empty() || other.node == change.node);
    });
    if (is_known || !prove_each(change, group)) return false;
    found_.push_back(std::move(change));
    return true;
  }

  static bool has(const NodeGroup& group, Obstacle::Kind kind) {
    return std::ranges::find(group.obstacles, kind, &Obstacle::kind) != group.obstacles.end();
  }

  Change change(Kind kind, const NodeGroup& group, std::string value = "") const {
    Change one;
    one.kind = kind;
    one.node = group.nodes.front();
    one.value = std::move(value);
    return one;
  }

  void try_rules(const NodeGroup& group) {
    if (has(group, Obstacle::Kind::gated)) add_if_proved(change(Kind::gate_removed, group), group);
    if (has(group, Obstacle::Kind::no_scheduler)) add_if_proved(change(Kind::default_scheduler, group), group);
    if (has(group, Obstacle::Kind::unschedulable)) add_if_proved(change(Kind::uncordon, group), group);
    for (const Obstacle& one : group.obstacles) {
      if (one.kind != Obstacle::Kind::taint || !may_be_tolerated(one.name)) continue;
      add_if_proved(change(Kind::tolerate, group, one.name), group);
    }
  }

  void try_forms(const NodeGroup& group) {
    const bool of_cores = std::ranges::any_of(group.obstacles, [](const Obstacle& one) {
      return one.kind == Obstacle::Kind::lnc || one.kind == Obstacle::Kind::capacity ||
             (one.kind == Obstacle::Kind::too_few && one.name == kNeuronCore);
    });
    if (of_cores) {
      for (const char* lnc : {"1", "2"}) {
        if (add_if_proved(change(Kind::other_lnc, group, lnc), group)) break;
      }
    }
    const bool by_count = has(group, Obstacle::Kind::other_mode) || has(group, Obstacle::Kind::claim_limit);
    if (by_count && pod_.claims.empty()) add_if_proved(change(Kind::claim_not_count, group), group);
    if (has(group, Obstacle::Kind::other_mode) && !pod_.claims.empty()) {
      add_if_proved(change(Kind::count_not_claim, group), group);
    }
  }

  // A smaller number of what one container asks for, or of the one claim.
  void try_fewer() {
    std::map<std::string, std::vector<std::int64_t>> asked;
    for (const Container& container : pod_.containers) {
      for (const auto& [name, amount] : container.requests) {
        if (amount > 0) asked[name].push_back(amount);
      }
    }
    if (pod_.claims.size() == 1) asked["claim"] = {kMostPerClaim + 1};
    for (const auto& [name, amounts] : asked) {
      if (amounts.size() == 1) try_fewer_of(name, amounts.front());
    }
  }

  // On the node where most fit.
  void try_fewer_of(const std::string& resource, std::int64_t asked) {
    Change best;
    best.kind = Kind::fewer;
    std::int64_t most = 0;
    for (const NodeGroup& group : groups_) {
      Change one = change(Kind::fewer, group);
      one.resource = resource;
      const auto fits = [&](std::int64_t number) {
        one.value = std::to_string(number);
        return proves(one);
      };
      if (!fits(most + 1)) continue;
      std::int64_t low = most + 1, high = asked - 1;
      while (low < high) {
        const std::int64_t middle = low + (high - low + 1) / 2;
        if (fits(middle)) {
          low = middle;
        } else {
          high = middle - 1;
        }
      }
      most = low;
      best = one;
      best.value = std::to_string(low);
      if (!prove_each(best, group)) best.nodes = 1;  // the effort has ended; it was proved for this one
    }
    if (most > 0 && most < asked) found_.push_back(best);
  }

  // Nodes whose only obstacles are what pods hold, and where it fits without them.
  [[nodiscard]] std::vector<Full> full_nodes() {
    std::vector<Full> all;
    for (std::size_t i = 0; i < states_.size(); ++i) {
      const bool held = verdicts_[i].answer == Answer::no && node_obstacles(pod_, states_[i].node).empty() &&
                        std::ranges::none_of(verdicts_[i].obstacles, [](const Obstacle& one) {
                          return is_of_pod(one.kind) || one.kind == Obstacle::Kind::other_mode ||
                                 one.kind == Obstacle::Kind::no_resource;
                        });
      if (held && all.size() == kMostNodes) leave_off();
      if (!held || all.size() == kMostNodes) continue;
      if (Full node = full_node(states_[i], verdicts_[i]); !node.pods.empty()) all.push_back(std::move(node));
    }
    return all;
  }

  // Without pods: nothing that ends there is enough.
  Full full_node(const NodeState& state, const Verdict& verdict) {
    Full node{&state, false, {}};
    const std::map<std::string, double> lacks = lacks_of(state, verdict);
    for (const Obstacle& one : verdict.obstacles) node.lacks_hardware |= one.kind != Obstacle::Kind::too_little;
    for (const Pod& pod : state.pods) {
      if (pod.stays || full_name(pod) == full_name(pod_)) continue;
      Candidate one{&pod, hardware_of(pod), {}};
      Amounts amounts = general_amounts(pod);
      amounts.merge(scheduled_amounts(pod));
      for (const auto& [name, lack] : lacks) one.shares.push_back(static_cast<double>(amounts[name]) / lack);
      if ((node.lacks_hardware && one.hardware > 0) || one.share() > 0) node.pods.push_back(std::move(one));
    }
    if (node.pods.empty() || outcome(ended(node, all_of(node))) == Answer::no) return {};
    // Those that hold most stay.
    std::ranges::stable_sort(node.pods, std::greater<>(), [&](const Candidate& one) {
      return std::pair(node.lacks_hardware ? one.hardware : 0, one.share());
    });
    if (node.pods.size() > kMostHolders) node.pods.resize(kMostHolders);
    std::ranges::stable_sort(node.pods, {}, rank_of);
    return node;
  }

  static std::pair<std::int64_t, double> rank_of(const Candidate& one) { return {one.hardware, one.share()}; }

  static Set all_of(const Full& node) {
    Set set;
    for (const Candidate& one : node.pods) set.push_back(&one);
    return set;
  }

  static Change ended(const Full& node, Set set) {
    Change one;
    one.kind = Kind::pods_ended;
    one.node = node.state->node.name;
    std::ranges::sort(set);  // as in node.pods
    for (const Candidate* each : set) one.pods.push_back(full_name(*each->pod));
    for (const Candidate* each : set) one.leaving.push_back(each->pod->deleting);
    return one;
  }

  bool is_enough(const Full& node, const Set& set) { return may_be_enough(node, set) && proves(ended(node, set)); }

  void try_pods() {
    const std::vector<Full> nodes = full_nodes();
    std::vector<std::pair<const Candidate*, Change>> singles;
    for (const Full& node : nodes) {
      const auto one = std::ranges::find_if(node.pods, [&](const Candidate& each) { return is_enough(node, {&each}); });
      if (one != node.pods.end()) singles.emplace_back(&*one, ended(node, {&*one}));
    }
    std::ranges::stable_sort(singles, {}, [](const auto& single) { return rank_of(*single.first); });
    if (singles.size() > kMostOfPods) singles.resize(kMostOfPods);
    for (const auto& [one, end] : singles) try_move(*one->pod, end);
    for (auto& [one, end] : singles) found_.push_back(std::move(end));
    if (singles.empty()) try_sets(nodes);
  }

  // Not where rules that are not counted could keep it off.
  void try_move(const Pod& pod, const Change& end) {
    if (!uncounted_rules(fleet_, pod).empty()) return;
    Change move = end;
    move.kind = Kind::pod_moved;
    std::size_t targets = 0;
    for (const NodeState& to : states_) {
      if (to.node.name == end.node || !may_take(to, pod) || ++targets > kMostTargets) continue;
      move.to = to.node.name;
      if (!proves(move)) continue;
      found_.push_back(move);
      return;
    }
  }

  // Two pods of any node, or where that is not enough some more.
  void try_sets(const std::vector<Full>& nodes) {
    std::vector<Change> sets;
    for (const Full& node : nodes) {
      all_tried_ &= tries_ <= kMostTries / 2;
      if (tries_ > kMostTries / 2 || sets.size() == kMostOfPods) break;
      if (const Set pair = pair_of(node); !pair.empty()) sets.push_back(ended(node, pair));
    }
    if (sets.empty()) {
      for (const Full& node : nodes) {
        if (const Set set = small_set(node); !set.empty()) sets.push_back(ended(node, set));
        if (tries_ > kMostTries) break;
      }
    }
    std::ranges::stable_sort(sets, {}, [](const Change& one) { return one.pods.size(); });
    if (sets.size() > kMostOfPods) sets.resize(kMostOfPods);
    std::ranges::move(sets, std::back_inserter(found_));
  }

  // All end, and as many as possible stay after all: none of the rest can be left out.
  Set small_set(const Full& node) {
    Set set = all_of(node);
    if (!is_enough(node, set)) {
      leave_off();
      return {};
    }
    std::ranges::stable_sort(set, {}, [&](const Candidate* one) {
      return std::pair(node.lacks_hardware ? one->hardware : -one->hardware, one->share());
    });
    for (const Candidate* one : Set(set)) {
      Set rest = set;
      std::erase(rest, one);
      if (is_enough(node, rest)) set = std::move(rest);
    }
    if (set.size() <= kMostTogether) return set;
    leave_off();
    return {};
  }

  Set pair_of(const Full& node) {
    std::size_t tried = 0;
    for (std::size_t i = 0; i < node.pods.size(); ++i) {
      for (std::size_t k = i + 1; k < node.pods.size(); ++k) {
        const Set pair = {&node.pods[i], &node.pods[k]};
        if (!may_be_enough(node, pair)) continue;
        if (++tried > kMostPairs) {
          leave_off();
          return {};
        }
        if (proves(ended(node, pair))) return pair;
      }
    }
    return {};
  }

  const Fleet& fleet_;
  const Pod& pod_;
  const std::vector<NodeState>& states_;
  const std::vector<Verdict>& verdicts_;
  Fleet rules_;
  std::vector<NodeGroup> groups_;
  Effort* effort_;
  std::vector<Change> found_;
  int tries_ = 0;
  bool all_tried_ = true;
};

}  // namespace

Changes changes_for(const Fleet& fleet, const Pod& pod, const std::vector<NodeState>& states,
                    const std::vector<Verdict>& verdicts, Effort* effort) {
  return Finder(fleet, pod, states, verdicts, effort).run();
}

}  // namespace neuron::fleet
