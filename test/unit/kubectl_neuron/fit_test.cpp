// A pod on a node: rules about nodes, and what the device plugin counts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/kubectl_neuron/questions.h"
#include "tools/kubectl-neuron/fit.h"

namespace neuron::fleet::test {
namespace {

using testing::ElementsAre;
using Kind = Obstacle::Kind;

Fleet one_node() {
  Fleet fleet;
  add_node(fleet, "a", "trn1.32xlarge");
  return fleet;
}

TEST(Fit, EveryRuleAboutNodesIsAnObstacle) {
  const Pod pod = pod_of("p", {{kNeuron, 4}});
  EXPECT_EQ(fit_on(one_node(), pod, "a").answer, Answer::yes);

  Fleet fleet = one_node();
  fleet.nodes[0].ready = false;
  EXPECT_THAT(kinds_of(fit_on(fleet, pod, "a")), ElementsAre(Kind::not_ready));
  fleet = one_node();
  fleet.nodes[0].unschedulable = true;
  fleet.nodes[0].taints = {{"node.kubernetes.io/unschedulable", "", "NoSchedule"}};
  EXPECT_THAT(kinds_of(fit_on(fleet, pod, "a")), ElementsAre(Kind::unschedulable));
  fleet = one_node();
  fleet.nodes[0].taints = {{"aws.amazon.com/neuron", "true", "NoSchedule"}, {"soft", "", "PreferNoSchedule"}};
  const Verdict tainted = fit_on(fleet, pod, "a");
  EXPECT_THAT(kinds_of(tainted), ElementsAre(Kind::taint));
  EXPECT_EQ(words_of(tainted.obstacles[0]), "taint aws.amazon.com/neuron=true:NoSchedule is not tolerated");
  Pod tolerant = pod;
  tolerant.tolerations = {{"aws.amazon.com/neuron", "Exists", "", ""}};
  EXPECT_EQ(fit_on(fleet, tolerant, "a").answer, Answer::yes);
}

TEST(Fit, LabelsAndAffinityDecide) {
  Fleet fleet = one_node();
  fleet.nodes[0].labels["zone"] = "b";
  fleet.nodes[0].labels["size"] = "8";
  const auto with = [](std::vector<std::vector<LabelRule>> terms) {
    Pod pod = pod_of("p", {{kNeuron, 1}});
    pod.node_affinity = std::move(terms);
    return pod;
  };
  Pod selected = pod_of("p", {{kNeuron, 1}});
  selected.node_selector = {{"zone", "a"}};
  const Verdict verdict = fit_on(fleet, selected, "a");
  ASSERT_THAT(kinds_of(verdict), ElementsAre(Kind::label));
  EXPECT_EQ(verdict.obstacles[0].detail, "b");
  const LabelRule in{"zone", "In", {"a", "b"}, false}, not_in{"zone", "NotIn", {"b"}, false};
  const LabelRule exists{"none", "Exists", {}, false}, more{"size", "Gt", {"7"}, false};
  const LabelRule field{"metadata.name", "In", {"a"}, true};
  EXPECT_EQ(fit_on(fleet, with({{in, more}}), "a").answer, Answer::yes);
  EXPECT_EQ(fit_on(fleet, with({{not_in}}), "a").answer, Answer::no);
  EXPECT_EQ(fit_on(fleet, with({{exists}, {field}}), "a").answer, Answer::yes) << "one term is enough";
  EXPECT_EQ(fit_on(fleet, with({{exists, in}}), "a").answer, Answer::no);
}

TEST(Fit, CountsWhatPodsHold) {
  Fleet fleet = one_node();
  add_pod(fleet, "q", "a", {{kNeuron, 14}});
  const Verdict verdict = fit_on(fleet, pod_of("p", {{kNeuron, 4}}), "a");
  ASSERT_THAT(kinds_of(verdict), ElementsAre(Kind::too_few));
  EXPECT_EQ(words_of(verdict.obstacles[0]),
            "asks for 4 aws.amazon.com/neuron, 2 of 16 are free; held by default/q (14)");
  EXPECT_EQ(fit_on(fleet, pod_of("p", {{kNeuron, 2}}), "a").answer, Answer::yes);
  EXPECT_EQ(fit_on(fleet, pod_of("p", {{kEfa, 8}}), "a").answer, Answer::yes);
}

TEST(Fit, ATemplateIsNotThePodOfItsName) {
  Fleet fleet = one_node();
  add_pod(fleet, "p", "a", {{kNeuron, 14}});
  fleet.pods[0].created = "2026-11-26T00:00:00Z";
  EXPECT_EQ(fit_on(fleet, pod_of("p", {{kNeuron, 4}}), "a").answer, Answer::no);
  EXPECT_EQ(fit_on(fleet, made_again(fleet.pods[0]), "a").answer, Answer::yes);
  fleet.pods[0].uid = "1";
  Pod later = made_again(fleet.pods[0]);
  later.uid = "2";
  EXPECT_EQ(fit_on(fleet, later, "a").answer, Answer::no);
  // What was placed of one template is not another one of its name.
  NodeState state = node_states(one_node())[0];
  const Pod first = pod_of("p-0", {{kNeuron, 14}});
  place(fleet, first, fit(fleet, first, state), state);
  EXPECT_EQ(fit(fleet, pod_of("p-0", {{kNeuron, 4}}), state).answer, Answer::no);
}

TEST(Fit, TheOtherNameHoldsTheSameHardware) {
  Fleet fleet = one_node();
  add_pod(fleet, "q", "a", {{kNeuron, 14}});
  // The node's status may lag: it still lists 32 cores, of which 28 are held.
  EXPECT_EQ(fit_on(fleet, pod_of("p", {{kNeuronCore, 4}}), "a").answer, Answer::yes);
  const Verdict verdict = fit_on(fleet, pod_of("p", {{kNeuronCore, 5}}), "a");
  ASSERT_THAT(kinds_of(verdict), ElementsAre(Kind::too_few, Kind::other_name));
  EXPECT_EQ(verdict.obstacles[1].asked, 28);
  EXPECT_EQ(verdict.obstacles[1].holders.front().pod, "default/q");
}

TEST(Fit, UnhealthyUnitsAreNamed) {
  Fleet fleet = one_node();
  fleet.nodes[0].allocatable[kNeuron] = 15;
  const Verdict verdict = fit_on(fleet, pod_of("p", {{kNeuron, 16}}), "a");
  ASSERT_THAT(kinds_of(verdict), ElementsAre(Kind::too_few, Kind::unhealthy));
  EXPECT_EQ(verdict.obstacles[1].asked, 1);
}

TEST(Fit, WithoutAnAgentNothingIsSaidToBeUnhealthy) {
  Fleet fleet;
  add_node(fleet, "a", "trn1.32xlarge");
  fleet.nodes[0].allocatable[kNeuron] = 0;
  const auto words = [&] { return words_of(fit_on(fleet, pod_of("p", {{kNeuron, 1}}), "a").obstacles.back()); };
  EXPECT_EQ(words(), "aws.amazon.com/neuron is not offered: no plugin serves it, or all of it is unhealthy");
  fleet.nodes[0].agent_pod = "kube-system/agent";
  EXPECT_EQ(words(), "16 aws.amazon.com/neuron unhealthy");
}

TEST(Fit, TheAgentKnowsOfUnhealthyDevicesBeforeTheNodesStatus) {
  Fleet fleet = one_node();
  report::NodeReport report;
  for (int i = 0; i < 16; ++i) report.host.devices.emplace_back().index = i;
  report.host.devices[3].health.state = model::HealthState::unhealthy;
  fleet.nodes[0].report = report;
  EXPECT_EQ(fit_on(fleet, pod_of("p", {{kNeuron, 15}}), "a").answer, Answer::yes);
  EXPECT_THAT(kinds_of(fit_on(fleet, pod_of("p", {{kNeuron, 16}}), "a")), ElementsAre(Kind::too_few, Kind::unhealthy));
}

TEST(Fit, ANodeMayNotListTheResource) {
  Fleet fleet = one_node();
  EXPECT_THAT(kinds_of(fit_on(fleet, pod_of("p", {{kNeuronDevice, 1}}), "a")), ElementsAre(Kind::no_resource));
  Fleet claims;
  add_node(claims, "a", "trn1.32xlarge", Mode::claims);
  EXPECT_THAT(kinds_of(fit_on(claims, pod_of("p", {{kNeuron, 1}}), "a")), ElementsAre(Kind::other_mode));
}

TEST(Fit, BothNamesHaveToBeTheSameHardware) {
  const Fleet fleet = one_node();
  EXPECT_EQ(fit_on(fleet, pod_of("p", {{kNeuron, 2}, {kNeuronCore, 4}}), "a").answer, Answer::yes);
  EXPECT_THAT(kinds_of(fit_on(fleet, pod_of("p", {{kNeuron, 2}, {kNeuronCore, 2}}), "a")),
              ElementsAre(Kind::both_names));
  Pod two = pod_of("p", {{kNeuron, 16}});
  two.containers.push_back({"other", false, false, {{kNeuronCore, 2}}, {}});
  EXPECT_THAT(kinds_of(fit_on(fleet, two, "a")), ElementsAre(Kind::too_few));
  two.containers[0].requests[kNeuron] = 15;
  EXPECT_EQ(fit_on(fleet, two, "a").answer, Answer::yes);
  Fleet split = fleet;
  split.nodes[0].capacity = split.nodes[0].allocatable = {{kNeuron, 12}, {kNeuronCore, 8}};
  const Pod both = pod_of("p", {{kNeuron, 2}, {kNeuronCore, 4}});
  EXPECT_THAT(kinds_of(fit_on(split, both, "a")), ElementsAre(Kind::both_names));
  // The scheduler counts names apart, and may choose the node that refuses it.
  add_node(split, "b", "trn1.32xlarge");
  const std::vector<Verdict> all = fit_all(split, both, node_states(split));
  EXPECT_EQ(all[1].answer, Answer::unknown);
  EXPECT_THAT(kinds_of(all[1]), ElementsAre(Kind::refused_there));
}

// Half of the devices as cores alone: only their number distinguishes it from a smaller node with both names.
Fleet split_in_halves() {
  Fleet fleet = one_node();
  fleet.nodes[0].capacity = fleet.nodes[0].allocatable = {{kNeuron, 8}, {kNeuronCore, 16}};
  add_pod(fleet, "q", "a", {{kNeuronCore, 4}});
  return fleet;
}

TEST(Fit, ASplitInHalvesIsNotBothNames) {
  const Pod devices = pod_of("p", {{kNeuron, 8}}), both = pod_of("p", {{kNeuron, 2}, {kNeuronCore, 4}});
  Fleet by_type = split_in_halves(), by_report = split_in_halves();
  by_report.nodes[0].instance_type.clear();
  report::NodeReport report;
  for (int i = 0; i < 16; ++i) {
    report.host.devices.emplace_back().index = i;
    report.core_ids.push_back({2 * i, 2 * i + 1});
  }
  by_report.nodes[0].report = report;
  for (const Fleet* fleet : {&by_type, &by_report}) {
    EXPECT_EQ(fit_on(*fleet, devices, "a").answer, Answer::yes);
    EXPECT_THAT(kinds_of(fit_on(*fleet, both, "a")), ElementsAre(Kind::both_names));
    EXPECT_FALSE(offers_both_names(node_states(*fleet)[0]));
  }
}

TEST(Fit, WithoutTheNumberOfDevicesASplitInHalvesIsInDoubt) {
  Fleet fleet = split_in_halves();
  fleet.nodes[0].instance_type.clear();
  const auto verdict = [&](const Amounts& asked) { return fit_on(fleet, pod_of("p", asked), "a"); };
  for (const Amounts& asked : {Amounts{{kNeuron, 8}}, Amounts{{kNeuron, 2}, {kNeuronCore, 4}}}) {
    EXPECT_EQ(verdict(asked).answer, Answer::unknown);
    EXPECT_EQ(words_of(verdict(asked).obstacles.at(0)),
              "cannot tell: it is not known how many devices the node has, so some may be offered as cores alone");
  }
  // Either way.
  EXPECT_EQ(verdict({{kNeuron, 6}}).answer, Answer::yes);
  EXPECT_EQ(verdict({{kNeuron, 9}}).answer, Answer::no);
  EXPECT_EQ(verdict({{kNeuron, 2}, {kNeuronCore, 3}}).answer, Answer::no);
  NodeState state = node_states(fleet)[0];
  state.node.allocatable[kNeuron] = 6;
  EXPECT_FALSE(release(state.pods[0], state)) << "withheld, or unhealthy";
  fleet.nodes[0].capacity[kNeuron] = fleet.nodes[0].allocatable[kNeuron] = 12;  // no whole number of cores each
  EXPECT_THAT(kinds_of(verdict({{kNeuron, 2}, {kNeuronCore, 4}})), ElementsAre(Kind::both_names));
}

TEST(Fit, AnUnhealthyDeviceMayBeOneOfTheCores) {
  Fleet fleet = one_node();
  fleet.nodes[0].capacity = {{kNeuron, 12}, {kNeuronCore, 8}};
  fleet.nodes[0].allocatable = {{kNeuron, 12}, {kNeuronCore, 6}};
  report::NodeReport report;
  for (int i = 0; i < 16; ++i) report.host.devices.emplace_back().index = i;
  report.host.devices[0].health.state = model::HealthState::unhealthy;
  fleet.nodes[0].report = report;
  EXPECT_EQ(fit_on(fleet, pod_of("p", {{kNeuron, 12}}), "a").answer, Answer::yes);
  EXPECT_THAT(kinds_of(fit_on(fleet, pod_of("p", {{kNeuronCore, 8}}), "a")),
              ElementsAre(Kind::too_few, Kind::unhealthy));
}

TEST(Fit, TheOrderOfTwoNamesMayDecide) {
  Fleet fleet = one_node();
  // Two devices have a core each that another pod holds: one whole device and two single cores are left of 13 devices.
  add_pod(fleet, "q", "a", {{kNeuron, 13}});
  add_pod(fleet, "r", "a", {{kNeuronCore, 1}});
  add_pod(fleet, "s", "a", {{kNeuronCore, 1}});
  fleet.nodes[0].allocatable = {{kNeuron, 14}, {kNeuronCore, 6}, {kEfa, 8}};
  Pod two = pod_of("p", {{kNeuron, 1}});
  two.containers.push_back({"other", false, false, {{kNeuronCore, 2}}, {}});
  const Verdict verdict = fit_on(fleet, two, "a");
  EXPECT_EQ(verdict.answer, Answer::unknown);
  EXPECT_THAT(kinds_of(verdict), ElementsAre(Kind::name_order));
}

TEST(Fit, GatesAndSchedulers) {
  Fleet fleet = one_node();
  Pod pod = pod_of("p", {{kNeuron, 1}});
  pod.gates = {"queue.example/wait"};
  EXPECT_THAT(kinds_of(fit_on(fleet, pod, "a")), ElementsAre(Kind::gated));
  pod.gates.clear();
  pod.scheduler = "my-scheduler";
  EXPECT_THAT(kinds_of(fit_on(fleet, pod, "a")), ElementsAre(Kind::no_scheduler));
  Pod served = pod_of("q", {}, "a");
  served.scheduler = "my-scheduler";
  fleet.pods = {served};
  EXPECT_EQ(fit_on(fleet, pod, "a").answer, Answer::yes);
}

TEST(Fit, PlacedThenReleasedIsAsBefore) {
  Fleet fleet = one_node();
  NodeState state = node_states(fleet)[0];
  const Pod pod = pod_of("p", {{kNeuron, 10}});
  place(fleet, pod, fit(fleet, pod, state), state);
  EXPECT_EQ(fit(fleet, pod_of("q", {{kNeuron, 10}}), state).answer, Answer::no);
  EXPECT_TRUE(release(pod, state));
  EXPECT_EQ(fit(fleet, pod_of("q", {{kNeuron, 10}}), state).answer, Answer::yes);
}

TEST(Fit, ADeviceOfSeveralPodsIsFreeOnceAllHaveGone) {
  Fleet fleet = one_node();
  add_pod(fleet, "q", "a", {{kNeuronCore, 1}});
  add_pod(fleet, "r", "a", {{kNeuronCore, 1}});
  fleet.nodes[0].allocatable[kNeuron] = 15;
  report::NodeReport report;
  for (int i = 0; i < 16; ++i) {
    report.host.devices.emplace_back().index = i;
    report.core_ids.push_back({2 * i, 2 * i + 1});
  }
  report.pods = {{{"default", "q", "main", {0}, {0}, {}}, {"default", "r", "main", {0}, {1}, {}}}};
  fleet.nodes[0].report = report;
  NodeState state = node_states(fleet)[0];
  EXPECT_TRUE(release(fleet.pods[0], state));
  EXPECT_EQ(free_units(state, kNeuron), 15);
  EXPECT_TRUE(release(fleet.pods[1], state));
  EXPECT_EQ(free_units(state, kNeuron), 16);
  EXPECT_EQ(free_units(emptied(node_states(fleet)[0]), kNeuron), 16);
  fleet.nodes[0].report->pods->push_back({"", "", "", {0}, {}, {}});  // a holder that is not named
  state = node_states(fleet)[0];
  for (const Pod& pod : fleet.pods) EXPECT_TRUE(release(pod, state));
  EXPECT_EQ(free_units(state, kNeuron), 15);
}

TEST(Fit, DevicesHaveTwoNamesOfTheirOwn) {
  Fleet fleet = one_node();
  fleet.nodes[0].capacity = fleet.nodes[0].allocatable = {{kNeuron, 16}, {kNeuronDevice, 16}};
  add_pod(fleet, "q", "a", {{kNeuronDevice, 8}});
  const Pod pod = pod_of("p", {{kNeuron, 9}});
  // Before and after the node's status shows it.
  for (const std::int64_t shown : {16, 8}) {
    fleet.nodes[0].allocatable[kNeuron] = shown;
    const Verdict verdict = fit_on(fleet, pod, "a");
    ASSERT_THAT(kinds_of(verdict), ElementsAre(Kind::too_few, Kind::other_name));
    EXPECT_EQ(words_of(verdict.obstacles[1]),
              "8 aws.amazon.com/neuron are withheld, since pods hold the hardware by aws.amazon.com/neurondevice; held "
              "by default/q (8)");
    EXPECT_EQ(fit_on(fleet, pod_of("p", {{kNeuron, 8}}), "a").answer, Answer::yes);
    EXPECT_EQ(fit_on(fleet, pod_of("p", {{kNeuronDevice, 8}}), "a").answer, Answer::yes);
  }
  EXPECT_TRUE(offers_both_names(node_states(fleet)[0]));
  NodeState state = node_states(fleet)[0];
  EXPECT_TRUE(release(fleet.pods[0], state));
  EXPECT_EQ(free_units(state, kNeuron), 16);
}

TEST(Fit, DevicesThatWereNotWithheldDoNotReturn) {
  Fleet fleet = one_node();
  add_pod(fleet, "q", "a", {{kNeuron, 1}});
  fleet.pods[0].containers.push_back({"other", false, false, {{kNeuronCore, 1}}, {}});
  fleet.nodes[0].allocatable[kNeuron] = 14;  // one through the core, one unhealthy
  report::NodeReport report;
  for (int i = 0; i < 16; ++i) {
    report.host.devices.emplace_back().index = i;
    report.core_ids.push_back({2 * i, 2 * i + 1});
  }
  report.pods = {{{"default", "q", "main", {0}, {0, 1}, {}}, {"default", "q", "other", {1}, {2}, {}}}};
  fleet.nodes[0].report = report;
  NodeState state = node_states(fleet)[0];
  EXPECT_TRUE(release(fleet.pods[0], state));
  EXPECT_EQ(free_units(state, kNeuron), 15);
}

TEST(Fit, NodesWithEqualObstaclesAreOneLine) {
  Fleet fleet;
  for (const char* name : {"a", "b", "c"}) add_node(fleet, name, "trn1.32xlarge");
  add_pod(fleet, "q", "a", {{kNeuron, 14}});
  add_pod(fleet, "r", "b", {{kNeuron, 14}});
  const std::vector<NodeState> states = node_states(fleet);
  const std::vector<NodeGroup> groups = grouped(states, fit_all(fleet, pod_of("p", {{kNeuron, 4}}), states));
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_THAT(groups[0].nodes, ElementsAre("c"));
  EXPECT_THAT(groups[1].nodes, ElementsAre("a", "b"));
  EXPECT_EQ(holders_of(groups[1].obstacles[0].holders), "default/q (14) and default/r (14)");
}

TEST(Fit, HostileNamesAreMadePrintable) {
  Obstacle one;
  one.kind = Kind::taint;
  one.name = "a\x1b[2Jb\nc";
  EXPECT_EQ(words_of(one).find('\x1b'), std::string::npos);
  EXPECT_EQ(words_of(one).find('\n'), std::string::npos);
}

TEST(Fit, AmountsAreWrittenAsQuantities) {
  EXPECT_EQ(amount_text(4), "4");
  EXPECT_EQ(amount_text(kMostUnits), "2147483647 or more");
  EXPECT_EQ(amount_text("cpu", 500), "500m");
  EXPECT_EQ(amount_text("cpu", 1'500), "1500m");
  EXPECT_EQ(amount_text("cpu", 96'000), "96");
  constexpr std::int64_t kGiB = (std::int64_t{1} << 30U) * kWholeUnit;
  EXPECT_EQ(amount_text("memory", 64 * kGiB), "64Gi");
  EXPECT_EQ(amount_text("hugepages-2Mi", kGiB / 2), "512Mi");
  EXPECT_EQ(amount_text("ephemeral-storage", 3 * kGiB / 2), "1.5Gi");
  EXPECT_EQ(amount_text("memory", 0), "0");
  Obstacle little = obstacle(Obstacle::Kind::too_little, "memory");
  little.asked = 8 * kGiB + 1024 * kWholeUnit;
  little.free = 8 * kGiB;
  little.total = 64 * kGiB;
  EXPECT_EQ(words_of(little), "asks for 8388609Ki memory, 8Gi of 64Gi are free") << "rounded, they are alike";
}

}  // namespace
}  // namespace neuron::fleet::test
