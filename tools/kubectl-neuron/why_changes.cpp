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
constexpr std::size_t kMostGroups = 40;
constexpr std::size_t kMostNodes = 200;     // of a group
constexpr std::int64_t kMostNumbers = 128;  // one by one

class Finder {
 public:
  Finder(const Fleet& fleet, const Pod& pod, const std::vector<NodeState>& states, const std::vector<Verdict>& verdicts,
         Effort* effort)
      : fleet_(fleet), pod_(pod), states_(states), verdicts_(verdicts), trials_(fleet, pod, states, effort) {
    groups_ = grouped(states, verdicts);
    if (groups_.size() <= kMostGroups) return;
    trials_.leave_off();
    groups_.resize(kMostGroups);
  }

  Changes run() {
    for (const NodeGroup& group : groups_) try_rules(group);
    for (const NodeGroup& group : groups_) try_forms(group);
    std::ranges::move(changes_of_pods(fleet_, pod_, states_, verdicts_, trials_), std::back_inserter(found_));
    try_fewer();
    if (found_.size() > kMostChanges) found_.resize(kMostChanges);
    for (Change& one : found_) one.refused_on = trials_.refused_on(one, verdicts_);
    return {std::move(found_), trials_.all_tried(), trials_.tried()};
  }

 private:
  // Nodes of the group have the same obstacles now; the change is tried on each. After a few in vain it is given up.
  bool prove_each(Change& change, const NodeGroup& group) {
    constexpr std::size_t kInVain = 3;
    change.nodes = 0;
    Change one = change;
    for (std::size_t i = 0; i < std::min(group.nodes.size(), kMostNodes); ++i) {
      if (change.nodes == 0 && i >= kInVain) {
        trials_.leave_off();
        break;
      }
      one.node = group.nodes[i];
      if (!trials_.proves(one)) continue;
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
             one.kind == Obstacle::Kind::both_names || (one.kind == Obstacle::Kind::too_few && one.name == kNeuronCore);
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
    if (const std::int64_t devices = devices_in_claim(fleet_, pod_); devices > 0) asked["claim"] = {devices};
    for (const auto& [name, amounts] : asked) {
      if (amounts.size() == 1) try_fewer_of(name, amounts.front());
    }
  }

  // The largest number between `above` and `asked` with which it fits there; 0: none. Found by halving, since fewer
  // need less; but a container that asks by both names needs equal hardware, so each number is tried.
  std::int64_t most_that_fits(Change& one, std::int64_t above, std::int64_t asked) {
    const auto fits = [&](std::int64_t number) {
      one.value = std::to_string(number);
      return trials_.proves(one);
    };
    if (one.exactly) {
      for (std::int64_t number = asked - 1; number > above && asked - number <= kMostNumbers; --number) {
        if (fits(number)) return number;
      }
      return 0;
    }
    std::int64_t low = above + 1, high = asked - 1;
    if (low > high || !fits(low)) return 0;
    while (low < high) {
      const std::int64_t middle = low + (high - low + 1) / 2;
      if (fits(middle)) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return low;
  }

  // On the node where most fit.
  void try_fewer_of(const std::string& resource, std::int64_t asked) {
    Change best;
    std::int64_t most = 0;
    for (const NodeGroup& group : groups_) {
      Change one = change(Kind::fewer, group);
      one.resource = resource;
      one.exactly = std::ranges::any_of(group.obstacles, [](const Obstacle& each) {
        return each.kind == Obstacle::Kind::both_names && each.detail != "split";
      });
      const std::int64_t number = most_that_fits(one, most, asked);
      if (number == 0) continue;
      most = number;
      best = one;
      best.value = std::to_string(number);
      if (!prove_each(best, group)) best.nodes = 1;  // the effort has ended; it was proved for this one
    }
    if (most > 0) found_.push_back(best);
  }

  const Fleet& fleet_;
  const Pod& pod_;
  const std::vector<NodeState>& states_;
  const std::vector<Verdict>& verdicts_;
  Trials trials_;
  std::vector<NodeGroup> groups_;
  std::vector<Change> found_;
};

}  // namespace

Changes changes_for(const Fleet& fleet, const Pod& pod, const std::vector<NodeState>& states,
                    const std::vector<Verdict>& verdicts, Effort* effort) {
  return Finder(fleet, pod, states, verdicts, effort).run();
}

}  // namespace neuron::fleet
