#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "tools/kubectl-neuron/why.h"

// The fewest and smallest pods of a node whose end or move lets another pod in.
namespace neuron::fleet {
namespace {

using Kind = Change::Kind;

constexpr std::size_t kMostOfPods = 5;   // changes
constexpr std::size_t kMostNodes = 200;  // on which pods are tried
constexpr std::size_t kMostTargets = 100;
constexpr std::size_t kMostHolders = 64;  // of one node, of which sets are made
constexpr std::size_t kMostPairs = 300;   // of one node
constexpr std::size_t kMostTogether = 16;

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
class PodFinder {
 public:
  PodFinder(const Fleet& fleet, const Pod& pod, const std::vector<NodeState>& states,
            const std::vector<Verdict>& verdicts, Trials& trials)
      : fleet_(fleet), pod_(pod), states_(states), verdicts_(verdicts), trials_(trials) {}

  std::vector<Change> run() {
    try_pods();
    return std::move(found_);
  }

 private:
  // Nodes whose only obstacles are what pods hold, and where it fits without them.
  [[nodiscard]] std::vector<Full> full_nodes() {
    std::vector<Full> all;
    for (std::size_t i = 0; i < states_.size(); ++i) {
      const bool held = verdicts_[i].answer == Answer::no && node_obstacles(pod_, states_[i].node).empty() &&
                        std::ranges::none_of(verdicts_[i].obstacles, [](const Obstacle& one) {
                          return is_of_pod(one.kind) || one.kind == Obstacle::Kind::other_mode ||
                                 one.kind == Obstacle::Kind::no_resource;
                        });
      if (held && all.size() == kMostNodes) trials_.leave_off();
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
      if (pod.stays || pod.critical || full_name(pod) == full_name(pod_)) continue;
      Candidate one{&pod, hardware_of(pod), {}};
      Amounts amounts = general_amounts(pod);
      amounts.merge(scheduled_amounts(pod));
      for (const auto& [name, lack] : lacks) one.shares.push_back(static_cast<double>(amounts[name]) / lack);
      if ((node.lacks_hardware && one.hardware > 0) || one.share() > 0) node.pods.push_back(std::move(one));
    }
    if (node.pods.empty() || trials_.outcome(ended(node, all_of(node))) == Answer::no) return {};
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

  bool is_enough(const Full& node, const Set& set) {
    return may_be_enough(node, set) && trials_.proves(ended(node, set));
  }

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

  // Not where rules that are not counted could keep it off, nor one that is on its way out.
  void try_move(const Pod& pod, const Change& end) {
    if (pod.deleting || !uncounted_rules(fleet_, pod).empty()) return;
    Change move = end;
    move.kind = Kind::pod_moved;
    std::size_t targets = 0;
    for (const NodeState& to : states_) {
      if (to.node.name == end.node || !may_take(to, pod) || ++targets > kMostTargets) continue;
      move.to = to.node.name;
      if (!trials_.proves(move)) continue;
      found_.push_back(move);
      return;
    }
  }

  // Two pods of any node, or where that is not enough some more.
  void try_sets(const std::vector<Full>& nodes) {
    std::vector<Change> sets;
    for (const Full& node : nodes) {
      if (trials_.left() < Trials::kMost / 2) trials_.leave_off();
      if (trials_.left() < Trials::kMost / 2 || sets.size() == kMostOfPods) break;
      if (const Set pair = pair_of(node); !pair.empty()) sets.push_back(ended(node, pair));
    }
    if (sets.empty()) {
      for (const Full& node : nodes) {
        if (const Set set = small_set(node); !set.empty()) sets.push_back(ended(node, set));
        if (trials_.left() < 0) break;
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
      trials_.leave_off();
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
    trials_.leave_off();
    return {};
  }

  Set pair_of(const Full& node) {
    std::size_t tried = 0;
    for (std::size_t i = 0; i < node.pods.size(); ++i) {
      for (std::size_t k = i + 1; k < node.pods.size(); ++k) {
        const Set pair = {&node.pods[i], &node.pods[k]};
        if (!may_be_enough(node, pair)) continue;
        if (++tried > kMostPairs) {
          trials_.leave_off();
          return {};
        }
        if (trials_.proves(ended(node, pair))) return pair;
      }
    }
    return {};
  }
  const Fleet& fleet_;
  const Pod& pod_;
  const std::vector<NodeState>& states_;
  const std::vector<Verdict>& verdicts_;
  Trials& trials_;
  std::vector<Change> found_;
};

}  // namespace

std::vector<Change> changes_of_pods(const Fleet& fleet, const Pod& pod, const std::vector<NodeState>& states,
                                    const std::vector<Verdict>& verdicts, Trials& trials) {
  return PodFinder(fleet, pod, states, verdicts, trials).run();
}

}  // namespace neuron::fleet
