#include <algorithm>
#include <array>
#include <utility>

#include "agent/base/parse.h"
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
constexpr int kMostTries = 5000;

class Finder {
 public:
  Finder(const Fleet& fleet, const Pod& pod, const std::vector<NodeState>& states, const std::vector<Verdict>& verdicts,
         Effort* effort)
      : pod_(pod), states_(states), verdicts_(verdicts), rules_(rules_for(fleet, pod)), effort_(effort) {
    groups_ = grouped(states, verdicts);
    if (groups_.size() > kMostGroups) leave_off();
    if (groups_.size() > kMostGroups) groups_.resize(kMostGroups);
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
  bool proves(const Change& change) {
    if (++tries_ > kMostTries || is_over(effort_)) {
      leave_off();
      return false;
    }
    std::vector<NodeState> copies;
    for (const std::string& node : {change.node, change.to}) {
      const NodeState* one = node.empty() ? nullptr : state(node);
      if (one != nullptr) copies.push_back(*one);
    }
    if (copies.empty()) return false;
    Fleet changed;
    const bool keeps_rules = change.kind == Kind::pods_ended || change.kind == Kind::pod_moved ||
                             change.kind == Kind::uncordon || change.kind == Kind::tolerate;
    if (!keeps_rules) changed = rules_;
    Fleet& rules = keeps_rules ? rules_ : changed;
    Pod pod = pod_;
    return apply(change, rules, pod, copies, effort_) && fit(rules, pod, copies.front(), effort_).answer == Answer::yes;
  }

  // Nodes of the group have the same obstacles now; the change is tried on each. After a few in vain it is given up.
  bool prove_each(Change& change, const NodeGroup& group) {
    constexpr std::size_t kInVain = 3;
    change.nodes = 0;
    Change one = change;
    for (std::size_t i = 0; i < group.nodes.size(); ++i) {
      if (i >= kMostNodes) break;
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

  // A smaller number on the node where most fit.
  void try_fewer() {
    std::string resource = pod_.claims.size() == 1 ? "claim" : "";
    std::int64_t asked = kMostPerClaim + 1;
    for (const Container& container : pod_.containers) {
      for (const auto& [name, amount] : container.requests) {
        if (amount <= 0) continue;
        if (!resource.empty()) return;  // more than one
        resource = name;
        asked = amount;
      }
    }
    if (resource.empty()) return;
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

  // Nodes whose only obstacles are what pods hold.
  [[nodiscard]] std::vector<const NodeState*> full_nodes() {
    std::vector<const NodeState*> all;
    for (std::size_t i = 0; i < states_.size(); ++i) {
      const bool held = verdicts_[i].answer == Answer::no && node_obstacles(pod_, states_[i].node).empty() &&
                        std::ranges::none_of(verdicts_[i].obstacles, [](const Obstacle& one) {
                          return is_of_pod(one.kind) || one.kind == Obstacle::Kind::other_mode ||
                                 one.kind == Obstacle::Kind::no_resource;
                        });
      if (held) all.push_back(&states_[i]);
    }
    if (all.size() > kMostNodes) leave_off();
    if (all.size() > kMostNodes) all.resize(kMostNodes);
    return all;
  }

  static std::int64_t size_of(const Pod& pod) {
    std::int64_t sum = static_cast<std::int64_t>(pod.claims.size());
    for (const auto& [resource, amount] : scheduled_amounts(pod)) sum += amount;
    return sum;
  }

  [[nodiscard]] std::vector<const Pod*> holders_on(const NodeState& node) const {
    std::vector<const Pod*> all;
    for (const Pod& one : node.pods) {
      if (asks_for_hardware(one) && full_name(one) != full_name(pod_)) all.push_back(&one);
    }
    std::ranges::stable_sort(all, {}, [](const Pod* one) { return size_of(*one); });
    return all;
  }

  Change ended(const NodeState& node, std::vector<std::string> pods) const {
    Change one;
    one.kind = Kind::pods_ended;
    one.node = node.node.name;
    one.pods = std::move(pods);
    return one;
  }

  void try_pods() {
    const std::vector<const NodeState*> nodes = full_nodes();
    std::vector<std::pair<std::int64_t, Change>> singles;
    for (const NodeState* node : nodes) {
      for (const Pod* one : holders_on(*node)) {
        Change end = ended(*node, {full_name(*one)});
        if (!proves(end)) continue;
        singles.emplace_back(size_of(*one), end);
        break;  // the smallest of the node
      }
    }
    std::ranges::stable_sort(singles, {}, [](const auto& one) { return one.first; });
    if (singles.size() > kMostOfPods) singles.resize(kMostOfPods);
    for (const auto& [size, end] : singles) try_move(end);
    for (auto& [size, end] : singles) found_.push_back(std::move(end));
    if (singles.empty()) try_pairs(nodes);
  }

  void try_move(const Change& end) {
    Change move = end;
    move.kind = Kind::pod_moved;
    std::size_t targets = 0;
    for (const NodeState& to : states_) {
      const bool is_other = to.node.name != end.node && (!to.node.allocatable.empty() || !to.pools.empty());
      if (!is_other || ++targets > kMostTargets) continue;
      move.to = to.node.name;
      if (!proves(move)) continue;
      found_.push_back(move);
      return;
    }
  }

  void try_pairs(const std::vector<const NodeState*>& nodes) {
    std::size_t added = 0;
    for (const NodeState* node : nodes) {
      const std::vector<const Pod*> pods = holders_on(*node);
      const bool done = [&] {
        for (std::size_t i = 0; i < pods.size(); ++i) {
          for (std::size_t k = i + 1; k < pods.size(); ++k) {
            Change end = ended(*node, {full_name(*pods[i]), full_name(*pods[k])});
            if (!proves(end)) continue;
            found_.push_back(std::move(end));
            return true;
          }
        }
        return false;
      }();
      if (done && ++added == kMostOfPods) return;
    }
  }

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

std::string others(const Change& change) {
  return change.nodes > 1 ? " (or one of " + std::to_string(change.nodes - 1) + " more like it)" : "";
}

}  // namespace

Changes changes_for(const Fleet& fleet, const Pod& pod, const std::vector<NodeState>& states,
                    const std::vector<Verdict>& verdicts, Effort* effort) {
  return Finder(fleet, pod, states, verdicts, effort).run();
}

std::string_view to_string(Kind kind) {
  constexpr std::array kNames = {"pods_ended",        "pod_moved", "uncordon",        "tolerate",        "gate_removed",
                                 "default_scheduler", "other_lnc", "claim_not_count", "count_not_claim", "fewer"};
  return kNames.at(static_cast<std::size_t>(kind));
}

std::string words_of(const Change& change) {
  const std::string node = printable(change.node), value = printable(change.value);
  switch (change.kind) {
    case Kind::pods_ended:
      return some_of(change.pods) + (change.pods.size() == 1 ? " ends: it then fits on " : " end: it then fits on ") +
             node;
    case Kind::pod_moved:
      return some_of(change.pods) + " moves from " + node + " to " + printable(change.to) + ": it then fits on " + node;
    case Kind::uncordon:
      return "kubectl uncordon " + node + others(change);
    case Kind::tolerate:
      return "a toleration of " + value + ": it then fits on " + node + others(change);
    case Kind::gate_removed:
      return "its scheduling gates removed: it then fits on " + node + others(change);
    case Kind::default_scheduler:
      return "without schedulerName: it then fits on " + node + others(change);
    case Kind::other_lnc:
      return "LNC " + value + " on " + node + others(change);
    case Kind::claim_not_count:
      return "a claim instead of a count: it then fits on " + node + others(change);
    case Kind::count_not_claim:
      return "a count in its limits instead of the claim: it then fits on " + node + others(change);
    case Kind::fewer:
      break;
  }
  const std::string what = change.resource == "claim" ? "devices in its claim" : printable(change.resource);
  return "at most " + value + " " + what + ": it then fits on " + node + others(change);
}

}  // namespace neuron::fleet
