// What commands say where not everything was read or understood, or a pod lacks more than devices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/kubectl_neuron/simulated_fleet.h"
#include "test/unit/render/json_schema.h"
#include "tools/kubectl-neuron/commands.h"
#include "tools/kubectl-neuron/dump.h"
#include "tools/kubectl-neuron/map.h"
#include "tools/kubectl-neuron/plan.h"
#include "tools/kubectl-neuron/top_screen.h"
#include "tools/kubectl-neuron/why.h"

namespace neuron::fleet::test {
namespace {

using neuron::test::agent_object;
using neuron::test::node_object;
using neuron::test::page_of;
using neuron::test::pod_object;
using nlohmann::json;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

json node_of(const std::string& name, int cpu = 96) {
  json node = node_object(name, "trn1.32xlarge", {{kNeuron, 16}});
  node["status"]["allocatable"].update({{"cpu", std::to_string(cpu)}, {"memory", "64Gi"}, {"pods", "10"}});
  return node;
}

json pod_of(const std::string& name, const std::string& node, int devices, const json& more = json::object()) {
  json pod = pod_object("team", name, node, {{kNeuron, devices}});
  pod["spec"]["containers"][0]["resources"]["limits"].update(more);
  return pod;
}

void say(json& pod, const std::string& message) {
  pod["status"]["conditions"] = {
      {{"type", "PodScheduled"}, {"status", "False"}, {"reason", "Unschedulable"}, {"message", message}}};
}

Fleet fleet_of(const std::vector<json>& nodes, const std::vector<json>& pods) {
  Documents documents;
  documents.list(Kind::nodes) = {page_of(nodes)};
  documents.list(Kind::pods) = {page_of(pods)};
  return make_fleet(documents);
}

Why why_of(const Fleet& fleet, const std::string& pod = "w") {
  const Pod* found = find_pod(fleet, "team", pod);
  EXPECT_NE(found, nullptr);
  Why answer = why(fleet, *found);
  EXPECT_EQ(neuron::test::schema_file_violation("kubectl-neuron-why-1", why_json(answer)), "");
  return answer;
}

std::vector<std::string> changes_of(const Why& answer) {
  std::vector<std::string> all;
  for (const Change& change : answer.changes) all.push_back(words_of(change));
  return all;
}

constexpr const char* kSmallerDevices = "at most 2 aws.amazon.com/neuron: it then fits on a";

TEST(OtherResources, NoChangeIsNamedThatLeavesTheProcessorTooSmall) {
  json pod = pod_of("w", "", 4, {{"cpu", "100"}});
  const Fleet fleet = fleet_of({node_of("a")}, {pod, pod_of("h", "a", 14)});
  const Why answer = why_of(fleet);
  EXPECT_THAT(changes_of(answer), IsEmpty());
  EXPECT_EQ(exit_status(answer), 1);
  EXPECT_THAT(why_text(answer), AllOf(HasSubstr("asks for 100 cpu"), HasSubstr("none of these would let it in")));
  EXPECT_THAT(changes_of(why_of(fleet_of({node_of("a")}, {pod_of("w", "", 4, {{"cpu", "96"}}), pod_of("h", "a", 14)}))),
              Contains(kSmallerDevices));
}

TEST(OtherResources, WhatThePodThatEndsHoldsIsCounted) {
  const auto ask = [](const char* cpu) {
    return changes_of(
        why_of(fleet_of({node_of("a")}, {pod_of("w", "", 4, {{"cpu", "50500m"}}), pod_of("h", "a", 14, {{"cpu", cpu}}),
                                         pod_object("team", "web", "a", {{"cpu", 20}})})));
  };
  EXPECT_THAT(ask("30"), Contains("team/h ends: it then fits on a"));
  EXPECT_THAT(ask("30"), Not(Contains(kSmallerDevices))) << "76 less 30";
  EXPECT_THAT(ask("25"), Contains(kSmallerDevices)) << "76 less 25";
}

TEST(OtherResources, OfAnotherDriverAndPlacesForPods) {
  const Why card = why_of(fleet_of({node_of("a")}, {pod_of("w", "", 4, {{"acme.example/card", "1"}})}));
  EXPECT_EQ(exit_status(card), 1);
  EXPECT_THAT(why_text(card), HasSubstr("the node does not list acme.example/card"));
  json full = node_of("a");
  full["status"]["allocatable"]["pods"] = "1";
  full["spec"]["taints"] = {{{"key", "team"}, {"value", "red"}, {"effect", "NoSchedule"}}};
  const Why crowded = why_of(fleet_of({full}, {pod_of("w", "", 4), pod_object("team", "web", "a", {})}));
  EXPECT_THAT(changes_of(crowded), IsEmpty()) << "a toleration is not enough";
  EXPECT_THAT(why_text(crowded), HasSubstr("as many pods as it"));
  full["status"]["allocatable"]["pods"] = "2";
  const Why roomy = why_of(fleet_of({full}, {pod_of("w", "", 4), pod_object("team", "web", "a", {})}));
  EXPECT_THAT(changes_of(roomy), Contains(HasSubstr("a toleration of team=red:NoSchedule")));
}

TEST(OtherResources, AGateIsNotAllThatKeepsItOff) {
  json pod = pod_of("w", "", 4, {{"acme.example/card", "1"}});
  pod["spec"]["schedulingGates"] = {{{"name", "queue"}}};
  EXPECT_THAT(changes_of(why_of(fleet_of({node_of("a")}, {pod}))), IsEmpty());
  json unread = pod_of("w", "", 4);
  unread["status"]["conditions"] = {{{"type", "PodScheduled"}, {"status", "False"}, {"reason", "SchedulingGated"}}};
  const Why gated = why_of(fleet_of({node_of("a")}, {unread, pod_of("h", "a", 14)}));
  EXPECT_EQ(exit_status(gated), 1);
  EXPECT_THAT(changes_of(gated), IsEmpty()) << "the gate stays";
}

TEST(OtherResources, WithoutItsGateItIsPlainlyLetIn) {
  json pod = pod_of("w", "", 4, {{"cpu", "1"}});
  pod["spec"]["schedulingGates"] = {{{"name", "queue"}}};
  pod["status"]["conditions"] = {{{"type", "PodScheduled"},
                                  {"status", "False"},
                                  {"reason", "SchedulingGated"},
                                  {"message", "Scheduling is blocked due to non-empty scheduling gates"}}};
  const Why gated = why_of(fleet_of({node_of("a")}, {pod}));
  EXPECT_THAT(changes_of(gated), ElementsAre("its scheduling gates removed: it then fits on a"));
  EXPECT_THAT(why_text(gated), AllOf(HasSubstr("\neach of these would let it in\n"), Not(HasSubstr("as far as"))));
  pod["spec"]["volumes"] = {{{"persistentVolumeClaim", {{"claimName", "data"}}}}};
  EXPECT_THAT(why_text(why_of(fleet_of({node_of("a")}, {pod}))),
              HasSubstr("\nas far as counted, each of these would let it in\n"));
}

// ---- Rules that are not counted

constexpr const char* kRequired = "requiredDuringSchedulingIgnoredDuringExecution";

json term_of(const json& selector) {
  return {{"labelSelector", selector}, {"topologyKey", "kubernetes.io/hostname"}};
}

void expect_doubt(const json& pod, const std::string& what, const std::vector<json>& others = {}) {
  std::vector<json> pods = others;
  pods.push_back(pod);
  const Why answer = why_of(fleet_of({node_of("a")}, pods));
  EXPECT_EQ(exit_status(answer), what.empty() ? 0 : 2) << why_text(answer);
  EXPECT_EQ(answer.summary, what.empty() ? "it fits now on a" : "as far as counted it fits now on a");
  if (!what.empty()) {
    EXPECT_THAT(why_text(answer), HasSubstr("\nnot counted: " + what + "\n"));
    EXPECT_EQ(json::parse(why_json(answer))["not_counted"], json::array({what}));
  }
}

TEST(Rules, OfThePodThatAreNotCountedLeaveItInDoubt) {
  const json plain = pod_of("w", "", 4);
  expect_doubt(plain, "");
  json pod = plain;
  pod["spec"]["affinity"]["podAntiAffinity"][kRequired] = {term_of({{"matchLabels", {{"app", "w"}}}})};
  expect_doubt(pod, "pod anti-affinity");
  pod = plain;
  pod["spec"]["affinity"]["podAffinity"][kRequired] = {term_of({{"matchLabels", {{"app", "db"}}}})};
  expect_doubt(pod, "pod affinity");
  pod = plain;
  pod["spec"]["topologySpreadConstraints"] = {{{"maxSkew", 1}, {"whenUnsatisfiable", "DoNotSchedule"}}};
  expect_doubt(pod, "topology spread");
  pod["spec"]["topologySpreadConstraints"][0]["whenUnsatisfiable"] = "ScheduleAnyway";
  expect_doubt(pod, "");
  pod = plain;
  pod["spec"]["volumes"] = {{{"name", "v"}, {"persistentVolumeClaim", {{"claimName", "data-0"}}}}};
  expect_doubt(pod, "persistent volumes");
  pod["spec"]["volumes"] = {{{"name", "v"}, {"emptyDir", json::object()}}};
  expect_doubt(pod, "");
  pod = plain;
  pod["spec"]["containers"][0]["ports"] = {{{"containerPort", 80}, {"hostPort", 80}}};
  expect_doubt(pod, "host ports");
  pod = plain;
  pod["spec"].update({{"priority", 1000}, {"runtimeClassName", "kata"}});
  expect_doubt(pod, "");  // neither keeps it off
}

TEST(Rules, OfOtherPodsThatKeepItAwayLeaveItInDoubt) {
  json pod = pod_of("w", "", 4), other = pod_of("other", "a", 1);
  pod["metadata"]["labels"] = {{"app", "w"}};
  const auto keep_away = [&](json term) {
    other["spec"]["affinity"]["podAntiAffinity"][kRequired] = {std::move(term)};
  };
  const auto expect = [&](bool doubt) { expect_doubt(pod, doubt ? "anti-affinity of pod team/other" : "", {other}); };
  keep_away(term_of({{"matchLabels", {{"app", "w"}}}}));
  expect(true);
  keep_away(term_of(json::object()));
  expect(true);
  keep_away(term_of({{"matchExpressions", {{{"key", "app"}, {"operator", "In"}, {"values", {"v", "w"}}}}}}));
  expect(true);
  keep_away(term_of({{"matchLabels", {{"app", "v"}}}}));
  expect(false);
  keep_away(term_of({{"matchExpressions", {{{"key", "app"}, {"operator", "DoesNotExist"}}}}}));
  expect(false);
  keep_away({{"topologyKey", "zone"}});
  expect(false);
  json term = term_of(json::object());
  term["namespaces"] = {"red"};
  keep_away(term);
  expect(false);
  term["namespaces"] = {"red", "team"};
  keep_away(term);
  expect(true);
  term["namespaces"] = {"red"};
  term["namespaceSelector"] = {{"matchLabels", {{"squad", "team"}}}};
  keep_away(term);
  expect(true);
  other["status"]["phase"] = "Succeeded";
  expect(false);
}

TEST(Rules, AnAnonymisedDumpHasThemToo) {
  json pod = pod_of("w", "", 4), other = pod_of("other", "a", 1);
  pod["metadata"]["labels"] = {{"squad", "rocket"}};
  pod["spec"]["volumes"] = {{{"name", "rocket"}, {"persistentVolumeClaim", {{"claimName", "rocket"}}}}};
  json term = term_of({{"matchLabels", {{"squad", "rocket"}}},
                       {"matchExpressions", {{{"key", "squad"}, {"operator", "In"}, {"values", {"rocket"}}}}}});
  term["namespaces"] = {"team"};
  other["spec"]["affinity"]["podAntiAffinity"][kRequired] = {term};
  Documents documents;
  documents.list(Kind::nodes) = {page_of({node_of("a")})};
  documents.list(Kind::pods) = {page_of({pod, other})};
  anonymise(documents);
  EXPECT_THAT(documents.list(Kind::pods).at(0), Not(testing::AnyOf(HasSubstr("rocket"), HasSubstr("squad"))));
  const Fleet fleet = make_fleet(documents);
  const auto waiting = std::ranges::find(fleet.pods, "", &Pod::node);
  ASSERT_NE(waiting, fleet.pods.end());
  EXPECT_THAT(why(fleet, *waiting).not_counted,
              ElementsAre("persistent volumes", HasSubstr("anti-affinity of pod namespace-1/pod-")));
}

TEST(Rules, APodWithSuchRulesIsNotSaidToMove) {
  json holder = pod_of("h", "a", 14);
  const auto ask = [&] {
    return changes_of(
        why_of(fleet_of({node_of("a"), node_of("b")}, {pod_of("w", "", 16), holder, pod_of("i", "b", 2)})));
  };
  EXPECT_THAT(ask(), Contains("team/h moves from a to b: it then fits on a"));
  holder["spec"]["volumes"] = {{{"persistentVolumeClaim", {{"claimName", "data"}}}}};
  EXPECT_THAT(ask(), AllOf(Contains("team/h ends: it then fits on a"), Not(Contains(HasSubstr("team/h moves")))));
}

TEST(OtherResources, WhatTheSchedulerSaysBesideIsNotPromised) {
  json pod = pod_of("w", "", 4);
  say(pod, "0/1 nodes are available: 1 Insufficient aws.amazon.com/neuron.");
  const Why plain = why_of(fleet_of({node_of("a")}, {pod, pod_of("h", "a", 14)}));
  EXPECT_THAT(why_text(plain), HasSubstr("\neach of these would let it in\n"));
  say(pod,
      "0/2 nodes are available: 1 Insufficient aws.amazon.com/neuron, 1 node(s) didn't match pod anti-affinity "
      "rules.");
  const Why apart = why_of(fleet_of({node_of("a")}, {pod, pod_of("h", "a", 14)}));
  EXPECT_THAT(why_text(apart),
              AllOf(HasSubstr("\nas far as counted, each of these would let it in\n"),
                    HasSubstr("the scheduler also says node(s) didn't match pod anti-affinity rules")));
  const json object = json::parse(why_json(apart));
  EXPECT_THAT(object["changes"][0]["sentence"].get<std::string>(), HasSubstr(", as far as counted"));
  // Found here too, and so no doubt about the changes that are left.
  pod = pod_of("w", "", 4, {{"cpu", "90"}});
  say(pod, "0/1 nodes are available: 1 Insufficient aws.amazon.com/neuron, 1 Insufficient cpu.");
  const Why cpu = why_of(fleet_of({node_of("a")}, {pod, pod_of("h", "a", 14, {{"cpu", "20"}})}));
  EXPECT_THAT(changes_of(cpu), ElementsAre("team/h ends: it then fits on a"));
  EXPECT_THAT(why_text(cpu), HasSubstr("\neach of these would let it in\n"));
}

TEST(OtherResources, WhatTheSchedulerSaidOfThemBeforeIsPast) {
  const auto why_after = [](const std::string& message) {
    json pod = pod_of("w", "", 8, {{"cpu", "10"}});
    say(pod, "0/2 nodes are available: " + message);
    return why_of(fleet_of({node_of("a")}, {pod}));
  };
  const Why now = why_after("1 Insufficient cpu, 1 Too many pods. preemption: 0/2 nodes are available.");
  EXPECT_EQ(exit_status(now), 0);
  EXPECT_THAT(why_text(now), AllOf(HasSubstr("it fits now on a"),
                                   HasSubstr("is older than this: it says Insufficient cpu and Too many pods, which")));
  EXPECT_EQ(exit_status(why_after("1 Insufficient memory.")), 2) << "the pod asks for none";
  EXPECT_EQ(exit_status(why_after("1 Insufficient cpu, 1 node(s) didn't match pod anti-affinity rules.")), 2);
}

TEST(OtherResources, NodesThatDifferInMemoryShareALine) {
  std::vector<json> pods = {pod_of("w", "", 4, {{"memory", "100Gi"}})}, nodes;
  for (int i = 0; i < 3; ++i) {
    const std::string name(1, static_cast<char>('a' + i));
    nodes.push_back(node_of(name));
    pods.push_back(pod_object("team", "web-" + name, name, {{"memory", i << 29}}));
  }
  const Why answer = why_of(fleet_of(nodes, pods));
  ASSERT_EQ(answer.nodes.size(), 1U);
  EXPECT_THAT(why_text(answer), AllOf(HasSubstr("3 nodes (a, b and c): does not fit"),
                                      HasSubstr("asks for 100Gi memory, at most 64Gi of 64Gi are free")));
}

TEST(OtherResources, WhereTheyCouldNotBeCountedItIsSaid) {
  json node = node_of("a");
  node["status"]["allocatable"] = {{kNeuron, "16"}};
  const Why answer = why_of(fleet_of({node}, {pod_of("w", "", 4, {{"cpu", "1"}}), pod_of("h", "a", 14)}));
  EXPECT_THAT(why_text(answer),
              AllOf(HasSubstr("as far as counted, each of these would let it in"), HasSubstr("\nnot counted: cpu\n")));
}

// ---- Nodes and pods that could not be read

Documents without_nodes() {
  Documents documents = neuron::test::three_nodes();
  documents.list(Kind::nodes).clear();
  documents.partial = {"nodes"};
  documents.unknown = {"nodes are not known: nodes is forbidden"};
  return documents;
}

TEST(Unread, WithoutNodesNothingIsSaidOfWhatTheyOffer) {
  const Fleet fleet = make_fleet(without_nodes());
  const Why answer = why_of(fleet, "waiting");
  EXPECT_EQ(exit_status(answer), 2);
  EXPECT_THAT(why_text(answer),
              AllOf(HasSubstr("nodes are not known: nodes is forbidden; what those offer is not known"),
                    Not(HasSubstr("no node lists"))));
  EXPECT_THAT(nodes_listing(fleet, Output::table),
              AllOf(HasSubstr("cannot tell"), HasSubstr("nodes is forbidden"), Not(HasSubstr("no node has"))));
  const Top top = make_top(fleet, {});
  EXPECT_THAT(
      print_top(top, {}, render::Charset::ascii, 120).to_text(),
      AllOf(HasSubstr("cannot tell which nodes"), HasSubstr("n/a of n/a devices held"), Not(HasSubstr("no node has"))));
  EXPECT_THAT(draw_map(fleet, MapFormat::svg), AllOf(HasSubstr("Neuron nodes unknown"), Not(HasSubstr("no problem"))));
}

TEST(Unread, WithSomeNodesAnAnswerOfNoIsUnknown) {
  Documents documents;
  documents.list(Kind::nodes) = {page_of({node_of("a")})};
  documents.list(Kind::pods) = {page_of({pod_of("w", "", 20)})};
  EXPECT_EQ(exit_status(why_of(make_fleet(documents))), 1);
  documents.partial = {"nodes"};
  documents.unknown = {"nodes after the first 1 are not known: late"};
  const Fleet fleet = make_fleet(documents);
  const Why answer = why_of(fleet);
  EXPECT_EQ(exit_status(answer), 2);
  EXPECT_EQ(answer.summary, "it fits on none of the nodes that could be read");
  EXPECT_THAT(why_text(answer), Not(HasSubstr("even when empty")));
  EXPECT_THAT(nodes_listing(fleet, Output::table), HasSubstr("of the nodes that could be read: nodes after the first"));
}

TEST(Unread, WithoutAllPodsFreeUnitsAreAtMostSoMany) {
  Documents documents;
  documents.list(Kind::nodes) = {page_of({node_of("a")})};
  documents.list(Kind::pods) = {page_of({pod_of("w", "", 14), pod_of("h", "a", 4)})};
  EXPECT_THAT(why_text(why_of(make_fleet(documents))), HasSubstr(", 12 of 16 are free; held by"));
  documents.partial = {"pods"};
  documents.unknown = {"pods of other namespaces than team are not shown: forbidden"};
  const Fleet fleet = make_fleet(documents);
  EXPECT_THAT(why_text(why_of(fleet)), HasSubstr(", at most 12 of 16 are free (not all pods could be read); held by"));
  EXPECT_THAT(pods_listing(fleet, {}, Output::table, ""), HasSubstr("2 pods of those that could be read"));
  EXPECT_THAT(pods_listing(fleet, {}, Output::table, "team"), HasSubstr("\n2 pods, 1 waiting"));
  EXPECT_THAT(pods_listing(fleet, {}, Output::table, "red"), HasSubstr("cannot tell which pods of namespace red"));
  EXPECT_THAT(nodes_listing(fleet, Output::table), HasSubstr("1 node whose units are not known, and in no sum"));
  EXPECT_EQ(fleet.nodes[0].report_missing, "no agent's pod was found on this node, and not all pods could be read");
}

TEST(Unread, WithoutAnAgentsAnswerNothingIsHeldAsFarAsIsKnown) {
  Documents documents = neuron::test::three_nodes();
  for (auto& [node, answer] : documents.agents) answer = {answer.pod, "", "late"};
  const Top top = make_top(make_fleet(documents), {});
  EXPECT_THAT(print_top(top, {}, render::Charset::ascii, 120).to_text(),
              AllOf(HasSubstr("n/a of n/a devices held, n/a of n/a cores, n/a of them idle; n/a pods"),
                    Not(HasSubstr("0 of 0"))));
  const std::string text = top_json(top, TopSort::name, "", 5);
  EXPECT_EQ(neuron::test::schema_file_violation("kubectl-neuron-top-1", text), "");
  for (const char* key : {"devices", "cores", "all_devices", "all_cores", "pods", "unhealthy"})
    EXPECT_EQ(json::parse(text)["sum"][key], nullptr) << key;
  EXPECT_THAT(draw_map(make_fleet(documents), MapFormat::svg),
              AllOf(HasSubstr("devices unknown"), HasSubstr("holders unknown"), Not(HasSubstr("0 devices"))));
}

TEST(Unread, WhatIsNotUnderstoodIsCounted) {
  Documents documents;
  json odd = pod_of("odd", "", 1);
  odd["spec"]["containers"] = {{"a", 1}};
  documents.list(Kind::nodes) = {page_of({node_of("a"), {{"metadata", {{"name", 5}}}}})};
  documents.list(Kind::pods) = {page_of({odd, pod_of("w", "", 1)})};
  documents.list(Kind::claims) = {R"({"items":{"a":1}})"};
  documents.agents["ghost"] = {"kube-system/agent-x", neuron::test::node_document("inf2.48xlarge", {}), ""};
  documents.agents["mute"] = {"kube-system/agent-y", "", "late"};
  const Fleet fleet = make_fleet(documents);
  EXPECT_THAT(fleet.unknown,
              testing::UnorderedElementsAre("1 of 2 pods were not understood, wholly or in part: odd",
                                            "1 of 2 nodes were not understood, wholly or in part: number 2",
                                            "1 page of the list of resourceclaims cannot be parsed"));
  EXPECT_TRUE(fleet.pods_partial);
  EXPECT_TRUE(fleet.claims_partial);
  EXPECT_FALSE(fleet.nodes_unread.empty());
  EXPECT_EQ(exit_status(why_of(fleet)), 2) << "the other pod may hold what it asks for";
  documents.list(Kind::nodes) = {page_of({node_of("a")})};
  EXPECT_THAT(make_fleet(documents).unknown, Contains("1 agent answered for nodes that are not listed: ghost"));
}

}  // namespace
}  // namespace neuron::fleet::test
