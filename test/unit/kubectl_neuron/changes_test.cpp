// Changes of `why` in random fleets: each lets the pod in, and where none is named no end of up to three pods does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "test/unit/kubectl_neuron/questions.h"
#include "tools/kubectl-neuron/why.h"

namespace neuron::fleet::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr std::int64_t kGiB = (std::int64_t{1} << 30U) * kWholeUnit;
constexpr const char* kCard = "acme.example/card";

// As changes_for() is asked by `why`.
struct Asked {
  std::vector<NodeState> states;
  std::vector<Verdict> verdicts;
  Changes changes;
};

Asked ask(const Fleet& fleet, const Pod& pod) {
  Asked asked;
  asked.states = node_states(fleet);
  count_general(fleet, asked.states);
  asked.verdicts = fit_all(fleet, pod, asked.states);
  asked.changes = changes_for(fleet, pod, asked.states, asked.verdicts);
  return asked;
}

bool lets_in(const Change& change, const Fleet& fleet, Pod pod, std::vector<NodeState> states) {
  Fleet rules = rules_for(fleet, pod);
  if (!apply(change, rules, pod, states)) return false;
  const auto at = std::ranges::find(states, change.node, [](const NodeState& state) { return state.node.name; });
  return at != states.end() && fit(rules, pod, *at).answer == Answer::yes;
}

Change end_of(const std::string& node, std::vector<std::string> pods) {
  Change change;
  change.node = node;
  change.pods = std::move(pods);
  return change;
}

// The fewest pods of one node, at most three, whose end lets it in; 0: there are none.
std::size_t fewest_by_force(const Fleet& fleet, const Pod& pod, const std::vector<NodeState>& states) {
  std::size_t fewest = 0;
  for (const NodeState& state : states) {
    std::vector<std::string> names;
    for (const Pod& one : state.pods) {
      if (!one.stays) names.push_back(full_name(one));
    }
    for (unsigned set = 1; set < 1U << names.size(); ++set) {
      std::vector<std::string> ended;
      for (std::size_t i = 0; i < names.size(); ++i) {
        if ((set >> i & 1U) != 0) ended.push_back(names[i]);
      }
      const bool is_better = ended.size() <= 3 && (fewest == 0 || ended.size() < fewest);
      if (is_better && lets_in(end_of(state.node.name, ended), fleet, pod, {state})) fewest = ended.size();
    }
  }
  return fewest;
}

std::vector<Change> ends(const Changes& changes) {
  std::vector<Change> all = changes.found;
  std::erase_if(all, [](const Change& one) { return one.kind != Change::Kind::pods_ended; });
  return all;
}

// ---- Fleets drawn at random

class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}

  std::int64_t up_to(std::int64_t most) { return std::uniform_int_distribution<std::int64_t>(0, most)(random_); }
  bool one_in(std::int64_t times) { return up_to(times - 1) == 0; }

  Amounts general(std::int64_t scale) {
    Amounts amounts;
    if (!one_in(4)) amounts["cpu"] = (1 + up_to(scale)) * 500;
    if (!one_in(4)) amounts["memory"] = (1 + up_to(scale)) * kGiB;
    if (one_in(4)) amounts["ephemeral-storage"] = (1 + up_to(scale)) * kGiB;
    if (one_in(6)) amounts["hugepages-2Mi"] = (1 + up_to(2)) * kGiB;
    if (one_in(6)) amounts[kCard] = (1 + up_to(1)) * kWholeUnit;
    return amounts;
  }

  Amounts hardware(std::int64_t most) {
    if (one_in(5)) return {{kNeuronCore, 1 + up_to(most)}};
    return {{kNeuron, 1 + up_to(most)}};
  }

  Fleet fleet() {
    Fleet fleet;
    const std::int64_t nodes = 1 + up_to(2);
    for (std::int64_t i = 0; i < nodes; ++i) {
      const std::string name(1, static_cast<char>('a' + i));
      add_node(fleet, name, one_in(3) ? "inf2.48xlarge" : "trn1.32xlarge");
      Node& node = fleet.nodes.back();
      node.general = {{"cpu", 16'000}, {"memory", 32 * kGiB}, {"pods", (3 + up_to(5)) * kWholeUnit}};
      if (!one_in(4)) node.general["ephemeral-storage"] = 20 * kGiB;
      if (!one_in(4)) node.general["hugepages-2Mi"] = 3 * kGiB;
      if (!one_in(4)) node.general[kCard] = 2 * kWholeUnit;
      add_pods(fleet, name);
    }
    return fleet;
  }

  Pod pod() {
    Pod pod = pod_of("asked", hardware(11));
    pod.general = general(24);
    return pod;
  }

 private:
  // Some more than fit: nodes shrink.
  void add_pods(Fleet& fleet, const std::string& node) {
    const std::int64_t most = up_to(7);
    for (std::int64_t i = 0; i < most; ++i) {
      Pod pod = pod_of("q" + std::to_string(i) + node, one_in(2) ? Amounts{} : hardware(4));
      pod.general = general(8);
      if (!one_in(8)) {
        std::vector<NodeState> states = node_states(fleet);
        count_general(fleet, states);
        if (fit(fleet, pod, states.back()).answer != Answer::yes) continue;
      }
      pod.node = node;
      pod.phase = "Running";
      pod.stays = one_in(6);
      fleet.pods.push_back(pod);
      std::ranges::sort(fleet.pods, {}, &Pod::name);
    }
  }

  std::mt19937 random_;
};

TEST(RandomChanges, EachLetsThePodInAndNoneIsOverlooked) {
  int named = 0, none = 0, sets = 0, plain = 0;
  for (unsigned seed = 0; seed < 1000; ++seed) {
    Draw draw(seed);
    const Fleet fleet = draw.fleet();
    const Pod pod = draw.pod();
    const Asked asked = ask(fleet, pod);
    const bool fits = std::ranges::find(asked.verdicts, Answer::yes, &Verdict::answer) != asked.verdicts.end();
    const bool in_doubt = std::ranges::find(asked.verdicts, Answer::unknown, &Verdict::answer) != asked.verdicts.end();
    if (fits || in_doubt) continue;
    for (const Change& change : asked.changes.found) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ": " + words_of(change));
      EXPECT_TRUE(lets_in(change, fleet, pod, asked.states));
      for (const std::string& name : change.pods) {
        const auto held = std::ranges::find(fleet.pods, name, full_name);
        ASSERT_NE(held, fleet.pods.end());
        EXPECT_FALSE(held->stays) << name;
        plain += asks_for_hardware(*held) ? 0 : 1;
      }
      if (change.kind != Change::Kind::pods_ended) continue;
      for (std::size_t i = 0; i < change.pods.size(); ++i) {
        Change fewer = change;
        fewer.pods.erase(fewer.pods.begin() + static_cast<std::ptrdiff_t>(i));
        EXPECT_FALSE(!fewer.pods.empty() && lets_in(fewer, fleet, pod, asked.states)) << "without " << change.pods[i];
      }
    }
    const std::vector<Change> found = ends(asked.changes);
    const std::size_t fewest = fewest_by_force(fleet, pod, asked.states);
    if (!asked.changes.all_tried) continue;
    SCOPED_TRACE("seed " + std::to_string(seed));
    if (found.empty()) {
      EXPECT_EQ(fewest, 0U) << "not found";
      ++none;
      continue;
    }
    ++named;
    std::size_t least = 99;
    for (const Change& one : found) least = std::min(least, one.pods.size());
    sets += least > 2 ? 1 : 0;
    if (least <= 2 || (fewest > 0 && fewest <= 2)) {
      EXPECT_EQ(least, fewest);
    }
  }
  EXPECT_GT(named, 150);
  EXPECT_GT(none, 60);
  EXPECT_GT(sets, 5);
  EXPECT_GT(plain, 60);
}

// ---- Pods without devices

Fleet node_with(const Amounts& general) {
  Fleet fleet;
  add_node(fleet, "a", "trn1.32xlarge");
  fleet.nodes[0].general = general;
  return fleet;
}

void add_plain(Fleet& fleet, const std::string& name, const Amounts& general, const std::string& node = "a") {
  add_pod(fleet, name, node, {});
  std::ranges::find(fleet.pods, name, &Pod::name)->general = general;
}

std::vector<std::string> sentences(const Fleet& fleet, const Amounts& hardware, const Amounts& general) {
  Pod pod = pod_of("p", hardware);
  pod.general = general;
  std::vector<std::string> all;
  for (const Change& change : ask(fleet, pod).changes.found) all.push_back(words_of(change));
  return all;
}

TEST(PlainPods, TheSmallestThatHoldsEnoughOfWhatLacksEndsOrMoves) {
  Fleet fleet = node_with({{"cpu", 16'000}, {"memory", 64 * kGiB}});
  add_plain(fleet, "web", {{"cpu", 8'000}});
  add_plain(fleet, "db", {{"cpu", 6'000}});
  add_plain(fleet, "cache", {{"memory", 40 * kGiB}});
  EXPECT_THAT(sentences(fleet, {{kNeuron, 4}}, {{"cpu", 8'000}}), ElementsAre("default/db ends: it then fits on a"));
  add_node(fleet, "b", "");  // a node without hardware
  fleet.nodes[1].general = {{"cpu", 8'000}, {"pods", 9'000}};
  EXPECT_THAT(sentences(fleet, {{kNeuron, 4}}, {{"cpu", 8'000}}),
              ElementsAre("default/db moves from a to b: it then fits on a", "default/db ends: it then fits on a"));
  fleet.nodes[1].general.erase("pods");
  EXPECT_THAT(sentences(fleet, {{kNeuron, 4}}, {{"cpu", 8'000}}), ElementsAre("default/db ends: it then fits on a"))
      << "whether b takes another pod is not known";
}

TEST(PlainPods, MoveWhereAntiAffinityOfOthersIsNotAboutThem) {
  Fleet fleet = node_with({{"cpu", 16'000}});
  add_plain(fleet, "db", {{"cpu", 9'000}});
  add_node(fleet, "b", "");
  fleet.nodes[1].general = {{"cpu", 16'000}, {"pods", 9'000}};
  add_pod(fleet, "agent", "b", {});
  std::ranges::find(fleet.pods, "agent", &Pod::name)->keeps_away = {{{}, true, {{"name", "In", {"rival"}}}}};
  const auto of_db = [&](Labels labels) {
    std::ranges::find(fleet.pods, "db", &Pod::name)->labels = std::make_shared<const Labels>(std::move(labels));
    return sentences(fleet, {{kNeuron, 4}}, {{"cpu", 8'000}});
  };
  EXPECT_THAT(of_db({{"name", "db"}}), Contains("default/db moves from a to b: it then fits on a"));
  EXPECT_THAT(of_db({{"name", "rival"}}), Not(Contains(HasSubstr("moves"))));
}

TEST(PlainPods, PlacesAndResourcesOfOthers) {
  Fleet crowded = node_with({{"pods", 1'000}});
  add_plain(crowded, "web", {});
  EXPECT_THAT(sentences(crowded, {{kNeuron, 4}}, {}), ElementsAre("default/web ends: it then fits on a"));
  Fleet cards = node_with({{kCard, 1'000}, {"hugepages-2Mi", kGiB}});
  add_plain(cards, "drawing", {{kCard, 1'000}});
  add_plain(cards, "pages", {{"hugepages-2Mi", kGiB}});
  EXPECT_THAT(sentences(cards, {{kNeuron, 4}}, {{kCard, 1'000}}),
              ElementsAre("default/drawing ends: it then fits on a"));
  EXPECT_THAT(sentences(cards, {{kNeuron, 4}}, {{kCard, 1'000}, {"hugepages-2Mi", kGiB}}),
              ElementsAre("default/drawing and default/pages end: it then fits on a"));
}

TEST(PlainPods, OnesThatComeBackAreNotNamed) {
  Fleet fleet = node_with({{"cpu", 8'000}});
  add_plain(fleet, "proxy", {{"cpu", 4'000}});
  fleet.pods[0].stays = true;
  EXPECT_THAT(sentences(fleet, {{kNeuron, 4}}, {{"cpu", 8'000}}), testing::IsEmpty());
  Fleet hardware = node_with({});
  add_pod(hardware, "each-node", "a", {{kNeuron, 16}});
  EXPECT_THAT(sentences(hardware, {{kNeuron, 4}}, {}), Contains("default/each-node ends: it then fits on a"));
  hardware.pods[0].stays = true;
  EXPECT_THAT(sentences(hardware, {{kNeuron, 4}}, {}), testing::IsEmpty());
}

// ---- Sets of more than two

TEST(Sets, AsManyPodsAsItTakes) {
  Fleet fleet = node_with({{"cpu", 8'000}});
  for (const char* name : {"q", "r", "s"}) add_pod(fleet, name, "a", {{kNeuron, 4}});
  add_pod(fleet, "t", "a", {{kNeuron, 1}});
  EXPECT_THAT(sentences(fleet, {{kNeuron, 14}}, {}),
              Contains("end these 3 pods on a: default/q, default/r and default/s"));
  EXPECT_THAT(sentences(fleet, {{kNeuron, 16}}, {}),
              Contains("end these 4 pods on a: default/t, default/q, default/r and default/s"));
}

TEST(Sets, AtMostSixteenPods) {
  Fleet fleet = node_with({{"cpu", 32'000}});
  for (int i = 10; i < 42; ++i) add_plain(fleet, "q" + std::to_string(i), {{"cpu", 1'000}});
  const auto all = [&](std::int64_t cpu) {
    Pod pod = pod_of("p", {{kNeuron, 4}});
    pod.general = {{"cpu", cpu}};
    return ask(fleet, pod).changes;
  };
  EXPECT_EQ(ends(all(16'000)).at(0).pods.size(), 16U);
  const Changes more = all(17'000);
  EXPECT_TRUE(ends(more).empty());
  EXPECT_FALSE(more.all_tried) << "it is not said that there is none";
}

TEST(Sets, TwoPodsOfTheLastNodeBeforeThreeOfTheOthers) {
  Fleet fleet;
  for (int i = 10; i < 33; ++i) {
    const std::string node = "n" + std::to_string(i);
    add_node(fleet, node, "trn1.32xlarge");
    for (int pod = 0; pod < 4; ++pod) add_pod(fleet, node + "-" + std::to_string(pod), node, {{kNeuron, 4}});
  }
  add_node(fleet, "n33", "trn1.32xlarge");
  for (const char* name : {"y", "z"}) add_pod(fleet, name, "n33", {{kNeuron, 8}});
  EXPECT_THAT(sentences(fleet, {{kNeuron, 12}}, {}), Contains("default/y and default/z end: it then fits on n33"));
}

// ---- Smaller numbers

TEST(Fewer, OfOneOfTwoResources) {
  Fleet fleet;
  add_node(fleet, "a", "trn1.32xlarge");
  EXPECT_THAT(sentences(fleet, {{kNeuron, 17}, {kEfa, 8}}, {}),
              Contains("at most 16 aws.amazon.com/neuron: it then fits on a"));
}

}  // namespace
}  // namespace neuron::fleet::test
