// `why`: changes that it may not propose, and what it says of pods that do not run as they should.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/kubectl_neuron/questions.h"
#include "test/unit/kubectl_neuron/simulated_fleet.h"
#include "test/unit/render/json_schema.h"
#include "tools/kubectl-neuron/commands.h"
#include "tools/kubectl-neuron/dump.h"
#include "tools/kubectl-neuron/why.h"

namespace neuron::fleet::test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kTime = "2026-01-31T10:00:00Z";

Why asked(const Fleet& fleet, const Pod& pod) {
  Why answer = why(fleet, pod);
  EXPECT_EQ(neuron::test::schema_file_violation("kubectl-neuron-why-1", why_json(answer)), "");
  return answer;
}

std::string text_of(const Fleet& fleet, const Pod& pod) {
  return why_text(asked(fleet, pod));
}

Fleet nodes_of(const std::vector<std::string>& names, const std::string& type = "trn1.32xlarge",
               Mode mode = Mode::device_plugin) {
  Fleet fleet;
  for (const std::string& name : names) add_node(fleet, name, type, mode);
  return fleet;
}

Pod waiting(const Amounts& requests, const std::string& message = "1 Insufficient aws.amazon.com/neuron") {
  Pod pod = pod_of("p", requests);
  pod.scheduled_reason = "Unschedulable";
  pod.scheduled_message = "0/1 nodes are available: " + message + ".";
  return pod;
}

// ---- Smaller numbers

TEST(FewerOfAClaim, LessThanItsRequestAsksFor) {
  Fleet fleet = nodes_of({"a"}, "trn1.32xlarge", Mode::claims);
  add_classes(fleet);
  add_template(fleet, "t", {request_of("neuron.aws.com", 4)});
  Pod pod = pod_with_claim("p", "t");
  pod.node_selector = {{"team", "red"}};
  fleet.nodes[0].unschedulable = true;
  EXPECT_THAT(text_of(fleet, pod), Not(HasSubstr("devices in its claim"))) << "the number keeps it off nowhere";
  fleet = nodes_of({"a"}, "trn1.2xlarge", Mode::claims);
  add_classes(fleet);
  add_template(fleet, "t", {request_of("neuron.aws.com", 4)});
  EXPECT_THAT(text_of(fleet, pod_with_claim("p", "t")), HasSubstr("at most 1 devices in its claim"));
}

TEST(FewerOfAClaim, NoneOfAnAllocatedClaim) {
  Fleet fleet = nodes_of({"a", "b"}, "trn1.32xlarge", Mode::claims);
  add_classes(fleet);
  add_holder(fleet, "q", "a", {"neuron-device-0", "neuron-device-1", "neuron-device-2", "neuron-device-3"});
  fleet.claims.at(0).requests = {request_of("neuron.aws.com", 4)};
  Pod pod = pod_of("p", {});
  pod.claims = {{"devices", fleet.claims[0].name, ""}};
  pod.node_selector = {{"kubernetes.io/hostname", "b"}};
  const std::string text = text_of(fleet, pod);
  EXPECT_THAT(text, AllOf(HasSubstr("is allocated on a"), Not(HasSubstr("devices in its claim"))));
}

Pod of_both_names(std::int64_t devices, std::int64_t cores) {
  return pod_of("p", {{kNeuron, devices}, {kNeuronCore, cores}});
}

TEST(BothNames, AnotherLncOrTheNumberThatIsTheSameHardware) {
  const Fleet fleet = nodes_of({"a"}, "trn2.48xlarge");
  EXPECT_THAT(text_of(fleet, of_both_names(2, 16)),
              AllOf(HasSubstr("LNC 1 on a"), HasSubstr("exactly 8 aws.amazon.com/neuroncore: it then fits on a")));
  EXPECT_THAT(text_of(fleet, of_both_names(4, 8)),
              AllOf(HasSubstr("exactly 2 aws.amazon.com/neuron: it then fits on a"), Not(HasSubstr("at most"))));
}

// The scheduler counts each name for itself, and so may choose a node with each device under one name.
TEST(BothNames, ANodeThatRefusesThePodIsNamedBesideTheChange) {
  Fleet fleet = nodes_of({"a", "b"});
  fleet.nodes[1].capacity = fleet.nodes[1].allocatable = {{kNeuron, 12}, {kNeuronCore, 8}};
  Pod pod = of_both_names(2, 4);
  fleet.nodes[0].unschedulable = true;
  const std::string text = text_of(fleet, pod);
  EXPECT_THAT(text, HasSubstr("kubectl uncordon a; the scheduler may choose b instead, where the agent refuses it\n"));
  EXPECT_THAT(why_json(asked(fleet, pod)), HasSubstr("\"refused_on\": \"b\""));
  pod.node_selector = {{"kubernetes.io/hostname", "a"}};
  EXPECT_THAT(text_of(fleet, pod), HasSubstr("kubectl uncordon a\n"));
}

TEST(TriedChanges, KindsThatWereNotTriedAreNotNamed) {
  const Fleet fleet = nodes_of({"a"});
  Pod two = waiting({{kNeuron, 10}});
  two.containers.push_back(two.containers[0]);
  EXPECT_THAT(text_of(fleet, two), Not(HasSubstr("a smaller number")));
  Fleet away = nodes_of({"a"});
  away.nodes[0].unschedulable = true;
  Pod choosy = waiting({{kNeuron, 4}});
  choosy.node_selector = {{"team", "red"}};
  EXPECT_THAT(text_of(away, choosy),
              AllOf(HasSubstr("\nnone of these would let it in: an uncordoned node and a smaller number\n")));
  Pod gated = pod_of("p", {{kNeuron, 4}});
  gated.scheduled_reason = "SchedulingGated";
  EXPECT_THAT(text_of(fleet, gated), Not(HasSubstr("no change")));
}

// ---- Pods that are not proposed

using neuron::test::node_object;
using neuron::test::page_of;
using neuron::test::pod_object;

Documents crowded(const std::string& in, const nlohmann::json& more) {
  Documents documents;
  nlohmann::json node = node_object("a", "trn1.32xlarge", {{kNeuron, 16}});
  node["status"]["allocatable"].update({{"cpu", "8"}, {"memory", "64Gi"}, {"pods", "10"}});
  nlohmann::json holder = pod_object(in, "holder", "a", {});
  holder["spec"]["containers"][0]["resources"]["requests"] = {{"cpu", "6"}};
  holder["spec"].update(more);
  nlohmann::json pod = pod_object("team", "p", "", {{kNeuron, 4}});
  pod["spec"]["containers"][0]["resources"]["limits"]["cpu"] = "4";
  documents.list(Kind::nodes) = {page_of({node})};
  for (const nlohmann::json& one : {holder, pod}) {
    documents.list(Kind::pods).push_back(kept_page(Kind::pods, page_of({one})).value().text);
  }
  return documents;
}

std::vector<Change> changes_in(const Documents& documents) {
  const Fleet fleet = make_fleet(documents);
  const auto pod = std::ranges::find(fleet.pods, std::string(), &Pod::node);
  EXPECT_NE(pod, fleet.pods.end());
  return pod == fleet.pods.end() ? std::vector<Change>{} : why(fleet, *pod).changes;
}

TEST(CriticalPods, NeitherEndNorMove) {
  struct Row {
    const char* in;
    nlohmann::json spec;
    bool ends;
  };
  const std::vector<Row> rows = {{"team", {{"priority", 1000}, {"priorityClassName", "high"}}, true},
                                 {"kube-system", nlohmann::json::object(), false},
                                 {"team", {{"priority", 2000001000}}, false},
                                 {"team", {{"priorityClassName", "system-cluster-critical"}}, false}};
  for (const Row& row : rows) {
    Documents documents = crowded(row.in, row.spec);
    EXPECT_EQ(!changes_in(documents).empty(), row.ends) << row.in << row.spec;
    if (row.spec.contains("priorityClassName") && !row.ends) continue;  // never without its priority
    anonymise(documents);
    EXPECT_EQ(!changes_in(documents).empty(), row.ends) << "anonymised " << row.in << row.spec;
  }
}

TEST(LeavingPods, DoNotMove) {
  Fleet fleet = nodes_of({"a", "b"});
  add_pod(fleet, "q", "a", {{kNeuron, 10}});
  add_pod(fleet, "r", "b", {{kNeuron, 5}});
  fleet.pods[0].deleting = true;
  const std::string text = text_of(fleet, waiting({{kNeuron, 12}}));
  EXPECT_THAT(text, AllOf(HasSubstr("default/q (being deleted) ends"), Not(HasSubstr("(being deleted) moves"))));
}

TEST(StartupTaints, AreNotToBeTolerated) {
  for (const char* key :
       {"karpenter.sh/unregistered", "ebs.csi.aws.com/agent-not-ready", "node.cilium.io/agent-not-ready",
        "node.cloudprovider.kubernetes.io/uninitialized", "node.example.com/uninitialized", "neuron-agent/starting"}) {
    for (const char* value : {"", "true"}) {
      Fleet fleet = nodes_of({"a"});
      fleet.nodes[0].taints = {{key, value, "NoExecute"}};
      EXPECT_THAT(text_of(fleet, waiting({{kNeuron, 4}})), Not(HasSubstr("a toleration of"))) << key;
    }
    const auto parts = explain_scheduler(std::string("0/1 nodes are available: 1 node(s) had untolerated taint {") +
                                         key + ": }. preemption: 0/1 nodes are available");
    EXPECT_EQ(parts.at(0).advice, "") << key;
  }
  EXPECT_TRUE(may_be_tolerated("team/not-unregistered-yet=agent-not-ready:NoSchedule"));
}

// ---- Pods on a node

Pod placed(const std::string& phase, const std::vector<ContainerWait>& waits = {}, const std::string& node = "a") {
  Pod pod = pod_of("p", {{kNeuron, 1}}, node);
  pod.phase = phase;
  pod.waits = waits;
  return pod;
}

TEST(PlacedPods, WhatAContainerWaitsForIsSaidAsItCame) {
  const Fleet fleet = nodes_of({"a"});
  const std::vector<ContainerWait> waits = {{"main", "RunContainerError", "permission denied"}};
  const Why runs = asked(fleet, placed("Running", waits));
  EXPECT_EQ(runs.summary, "it is on a, and not all of it runs: container main: RunContainerError: permission denied");
  EXPECT_EQ(exit_status(runs), 1);
  EXPECT_THAT(why_text(runs), Not(HasSubstr("not checked")));
  const Why starts = asked(fleet, placed("Pending", waits));
  EXPECT_EQ(starts.summary, "it is on a and not running yet: container main: RunContainerError: permission denied");
  EXPECT_EQ(exit_status(starts), 1);
  EXPECT_EQ(starts.messages.size(), 1U);
  const Why begins = asked(fleet, placed("Running", {{"main", "ContainerCreating", ""}}));
  EXPECT_EQ(begins.summary, "it is on a, and not all of it runs: container main: ContainerCreating");
  EXPECT_EQ(exit_status(begins), 2);
  Pod busy = placed("Pending");
  busy.reason = "NodeBusy";
  EXPECT_EQ(asked(fleet, busy).summary, "it is on a and not running yet: NodeBusy");
}

TEST(PlacedPods, TheNewestEventAboutAFailureIsSaidAsItCame) {
  Fleet fleet = nodes_of({"a"});
  fleet.events = {{"Pod", "default", "p", "Failed", "Error: configmap \"x\" not found", kTime, 1}};
  EXPECT_THAT(asked(fleet, placed("Pending")).summary, HasSubstr("Failed: Error: configmap \"x\" not found"));
}

TEST(PlacedPods, OfANodeThatIsNotReadyTheStateMayBeOld) {
  Fleet fleet = nodes_of({"a"});
  fleet.nodes[0].ready = false;
  const Why answer = asked(fleet, placed("Running"));
  EXPECT_EQ(answer.summary, "it ran on a when the node last reported: the node is not ready, so this may be old");
  EXPECT_EQ(exit_status(answer), 2);
  fleet.nodes[0].ready.reset();
  EXPECT_EQ(exit_status(asked(fleet, placed("Running"))), 0);
  fleet.nodes[0].taints = {{"node.kubernetes.io/unreachable", "", "NoExecute"}};
  EXPECT_EQ(exit_status(asked(fleet, placed("Running"))), 2);
  EXPECT_THAT(text_of(fleet, placed("Pending", {{"main", "CrashLoopBackOff", "x"}})),
              HasSubstr("\nnode a is not ready, so the pod's state may be old\n"));
}

TEST(PlacedPods, ANodeThatDoesNotExistIsSaidNotTo) {
  Fleet fleet = nodes_of({"a"});
  const Why answer = asked(fleet, placed("Running", {}, "n9"));
  EXPECT_EQ(answer.summary, "it was placed on n9, and there is no node n9");
  EXPECT_EQ(exit_status(answer), 2);
  EXPECT_THAT(why_text(answer), Not(HasSubstr("could not be read")));
  EXPECT_EQ(exit_status(asked(fleet, placed("Pending", {}, "n9"))), 1);
  fleet.nodes_unread = "nodes are not known";
  EXPECT_THAT(text_of(fleet, placed("Running", {}, "n9")), HasSubstr("node n9 could not be read"));
}

TEST(PlacedPods, AdviceNamesThePodAndTheContainer) {
  const Fleet fleet = nodes_of({"a"});
  EXPECT_THAT(text_of(fleet, placed("Running", {{"side", "CrashLoopBackOff", "back-off 5m0s"}})),
              HasSubstr("do: kubectl logs -n default p -c side --previous\n"));
  Fleet with_event = fleet;
  with_event.events = {
      {"Pod", "default", "p", "BackOff", "Back-off restarting failed container main in pod p_default(1)", kTime, 1}};
  EXPECT_THAT(text_of(with_event, placed("Pending")), HasSubstr("do: kubectl logs -n default p -c main --previous\n"));
}

TEST(RefusedPods, AnEmptyMessageLeavesNoColon) {
  Pod pod = placed("Failed");
  pod.reason = "UnexpectedAdmissionError";
  EXPECT_THAT(text_of(nodes_of({"a"}), pod), HasSubstr("  UnexpectedAdmissionError\n      the kubelet rejected it"));
}

// ---- What the scheduler said

TEST(OldMessages, WhatTheSchedulerFoundTooLittleOfMayBeFreeNow) {
  Fleet fleet = nodes_of({"a", "b"});
  for (Node& node : fleet.nodes) node.general = {{"cpu", 96'000}, {"pods", 10'000}};
  for (const char* node : {"a", "b"}) add_pod(fleet, std::string("h-") + node, node, {{kNeuron, 16}});
  Pod pod = waiting({{kNeuron, 4}}, "2 Insufficient aws.amazon.com/neuron, 2 Insufficient cpu");
  pod.general = {{"cpu", 8'000}};
  const Why free_now = asked(fleet, pod);
  EXPECT_THAT(free_now.notes, ElementsAre("the scheduler's message is older than this: it says Insufficient cpu, "
                                          "which is no longer so"));
  EXPECT_FALSE(free_now.as_counted);
  fleet.nodes[0].general["cpu"] = 4'000;
  EXPECT_THAT(asked(fleet, pod).notes, Contains("the scheduler's message is older than this: it says Insufficient "
                                                "cpu of 2 nodes, and 1 node has too little now"));
  fleet.nodes_unread = "nodes are not known";
  EXPECT_THAT(asked(fleet, pod).notes, Not(Contains(HasSubstr("older"))));
}

TEST(Messages, OfPodsThatKeepOthersAway) {
  const auto parts = explain_scheduler(
      "0/1 nodes are available: 1 node(s) didn't satisfy existing pods anti-affinity rules. preemption: x");
  EXPECT_EQ(parts.at(0).meaning, "a pod there keeps this one away by its anti-affinity");
  EXPECT_FALSE(parts.at(0).of_hardware);
}

TEST(NoNodes, AreSaidToBeNone) {
  EXPECT_EQ(asked(Fleet{}, waiting({{kNeuron, 4}})).summary, "no node is listed");
  Fleet unread;
  unread.nodes_unread = "nodes are not known";
  EXPECT_EQ(asked(unread, waiting({{kNeuron, 4}})).summary, "no node could be read");
}

TEST(Words, OfHoldersAndOtherNodes) {
  const std::vector<Holder> holders = {{"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}, {"e", 1}, {"f", 1}};
  EXPECT_EQ(holders_of(holders), "a (1), b (1), c (1), d (1) and 2 more pods");
  Change change;
  change.kind = Change::Kind::other_lnc;
  change.node = "a";
  change.value = "1";
  EXPECT_EQ(words_of(change), "LNC 1 on a: it then fits there");
  change.nodes = 3;
  EXPECT_EQ(words_of(change), "LNC 1 on a or one of 2 more like it: it then fits there");
  change.kind = Change::Kind::uncordon;
  EXPECT_EQ(words_of(change), "kubectl uncordon a, or one of 2 more like it");
  change.kind = Change::Kind::tolerate;
  change.value = "t";
  change.nodes = 2;
  EXPECT_EQ(words_of(change), "a toleration of t: it then fits on a or on 1 more like it");
}

}  // namespace
}  // namespace neuron::fleet::test
