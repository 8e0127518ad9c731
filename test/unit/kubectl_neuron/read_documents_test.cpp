#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <semaphore>
#include <set>

#include "test/unit/kubectl_neuron/simulated_fleet.h"
#include "tools/kubectl-neuron/documents.h"

namespace neuron::fleet {
namespace {

using nlohmann::json;
using test::agent_object;
using test::node_object;
using test::pod_object;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// Answers in memory, by path; lists in pages of two.
class FakeCluster final : public ClusterReader {
 public:
  std::map<std::string, std::vector<json>> lists;
  std::map<std::string, kube::ApiReply> replies;
  std::set<std::string> late;       // do not answer
  std::atomic<int> late_calls = 0;  // of these
  std::atomic<int> calls = 0;
  std::string endless;  // empty pages, each with another token
  std::string held;     // answers once an agent was asked
  std::counting_semaphore<> asked{0};

  Result<kube::ApiReply> get(const kube::ApiCall& call, std::chrono::milliseconds /*deadline*/) override {
    ++calls;
    if (call.path.find("/proxy/") != std::string::npos) asked.release();
    const bool in_time = call.path != held || asked.try_acquire_for(std::chrono::minutes(1));
    EXPECT_TRUE(in_time);
    if (late.contains(call.path)) {
      ++late_calls;
      return fail(ErrorCode::deadline_exceeded, "late");
    }
    if (call.path == endless)
      return kube::ApiReply{200, json({{"metadata", {{"continue", std::to_string(calls)}}}}).dump()};
    if (const auto reply = replies.find(call.path); reply != replies.end()) return reply->second;
    const auto list = lists.find(call.path);
    if (list == lists.end()) return kube::ApiReply{404, R"({"message":"no such resource"})"};
    const auto at = call.query.find("continue=");
    const std::size_t begin = at == std::string::npos ? 0 : std::stoul(call.query.substr(at + 9));
    json page = {{"metadata", {{"resourceVersion", "1"}}}, {"items", json::array()}};
    for (std::size_t i = begin; i < std::min(begin + 2, list->second.size()); ++i) {
      page["items"].push_back(list->second[i]);
    }
    if (begin + 2 < list->second.size()) page["metadata"]["continue"] = std::to_string(begin + 2);
    return kube::ApiReply{200, page.dump()};
  }
  std::string context_namespace() override { return "team"; }
};

void fill(FakeCluster& cluster, int nodes) {
  for (const char* path : {"/api/v1/nodes", "/api/v1/pods", "/apis/resource.k8s.io/v1/resourceslices",
                           "/apis/resource.k8s.io/v1/resourceclaims", "/apis/resource.k8s.io/v1/deviceclasses"}) {
    cluster.lists[path];
  }
  for (int i = 0; i < nodes; ++i) {
    const std::string name = "n" + std::to_string(i);
    cluster.lists["/api/v1/nodes"].push_back(node_object(name, "trn1.32xlarge", {{"aws.amazon.com/neuron", 16}}));
    cluster.lists["/api/v1/pods"].push_back(agent_object(name));
  }
}

std::string agent_path(const std::string& node) {
  return "/api/v1/namespaces/kube-system/pods/http:agent-" + node + ":8000/proxy/node";
}

Documents read(FakeCluster& cluster, const std::string& own_namespace = "") {
  auto documents = read_documents(cluster, own_namespace, {}, {});
  EXPECT_TRUE(documents) << documents.error().message;
  return documents ? *std::move(documents) : Documents();
}

kube::ApiReply forbidden(const std::string& words) {
  return {403, json({{"message", words}, {"details", {{"kind", "pods"}}}}).dump()};
}

TEST(ReadDocuments, FollowsPagesAndAsksEveryAgent) {
  FakeCluster cluster;
  fill(cluster, 5);
  for (int i = 0; i < 5; ++i) cluster.replies[agent_path("n" + std::to_string(i))] = {200, "{}"};
  const Documents documents = read(cluster);
  EXPECT_EQ(documents.list(Kind::nodes).size(), 3U);
  EXPECT_EQ(make_fleet(documents).nodes.size(), 5U);
  EXPECT_EQ(documents.agents.size(), 5U);
  EXPECT_EQ(documents.agents.at("n4").body, "{}");
  EXPECT_THAT(documents.unknown, IsEmpty());
  EXPECT_THAT(documents.partial, IsEmpty());
  EXPECT_EQ(documents.default_namespace, "team");
}

TEST(ReadDocuments, AgentsAreAskedWhileOtherListsAreOnTheirWay) {
  FakeCluster cluster;
  fill(cluster, 1);
  cluster.replies[agent_path("n0")] = {200, "{}"};
  cluster.held = "/apis/resource.k8s.io/v1/resourceslices";
  EXPECT_THAT(read(cluster).unknown, IsEmpty());
}

TEST(ReadDocuments, ReportsAreParsedAsTheyCome) {
  FakeCluster cluster;
  fill(cluster, 2);
  const Documents made = test::three_nodes();
  cluster.replies[agent_path("n0")] = {200, made.agents.at("busy").body};
  cluster.replies[agent_path("n1")] = {200, "{}"};
  Documents documents = read_documents(cluster, "", {.reports = true}, {}).value();
  EXPECT_TRUE(documents.agents.at("n0").report);
  EXPECT_EQ(documents.agents.at("n0").body, "");
  EXPECT_THAT(documents.agents.at("n1").missing, HasSubstr("the agent's answer is not understood"));
  const Fleet fleet = make_fleet(std::move(documents));
  EXPECT_EQ(find_node(fleet, "n0")->report->host.devices.size(), 16U);
  EXPECT_FALSE(find_node(fleet, "n1")->report);
}

TEST(ReadDocuments, SlicesAreParsedAsTheyCome) {
  FakeCluster cluster;
  fill(cluster, 3);
  for (const std::string name : {"n0", "n1", "n2"}) {
    json device = {{"name", "neuron-device-0"}, {"attributes", {{"resourceType", {{"string", "neuron_device"}}}}}};
    cluster.lists["/apis/resource.k8s.io/v1/resourceslices"].push_back(
        {{"metadata", {{"name", "slice-" + name}}},
         {"spec",
          {{"driver", "neuron.aws.com"},
           {"nodeName", name},
           {"pool", {{"name", name}, {"resourceSliceCount", 1}}},
           {"devices", {device}}}}});
  }
  Documents documents = read_documents(cluster, "", {.reports = true}, {}).value();
  EXPECT_THAT(documents.list(Kind::slices), IsEmpty()) << "no text is kept";
  EXPECT_EQ(documents.parsed.slices.size(), 3U);
  EXPECT_THAT(documents.unknown, IsEmpty());
  const Fleet fleet = make_fleet(std::move(documents));
  ASSERT_EQ(fleet.pools.size(), 3U);
  EXPECT_EQ(fleet.nodes.at(2).mode, Mode::claims);
  EXPECT_EQ(&*fleet.pools[0].devices.at(0).attributes.begin(), &*fleet.pools[2].devices.at(0).attributes.begin())
      << "of two pages, once";
}

TEST(ReadDocuments, SlicesThatAreNotUnderstoodAreCountedAsTheyCome) {
  FakeCluster cluster;
  fill(cluster, 1);
  cluster.lists["/apis/resource.k8s.io/v1/resourceslices"] = {
      {{"metadata", {{"name", "good"}}}, {"spec", json::object()}},
      {{"metadata", {{"name", "odd"}}}, {"spec", 7}},
      {{"metadata", {{"name", 8}}}, {"spec", json::object()}}};
  const std::string said = "2 of 3 resourceslices were not understood, wholly or in part: odd and number 3";
  Documents whole = read(cluster);
  EXPECT_THAT(make_fleet(std::move(whole)).unknown, ElementsAre(said));
  Documents documents = read_documents(cluster, "", {.reports = true}, {}).value();
  EXPECT_THAT(documents.list(Kind::slices), IsEmpty());
  EXPECT_THAT(make_fleet(std::move(documents)).unknown, ElementsAre(said));
}

TEST(ReadDocuments, RulesOfPodsAreKeptWithoutNames) {
  constexpr const char* kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
  FakeCluster cluster;
  fill(cluster, 0);
  json pod = pod_object("team", "p", "", {{"aws.amazon.com/neuron", 1}});
  const json term = {{"labelSelector", {{"matchLabels", {{"app", "q"}}}}},
                     {"namespaceSelector", {{"matchLabels", {{"x", "secret"}}}}}};
  pod["metadata"]["labels"] = {{"app", "p"}};
  pod["metadata"]["ownerReferences"] = {{{"kind", "DaemonSet"}, {"name", "d"}}};
  pod["spec"]["affinity"] = {
      {"podAffinity", {{kRequired, {{{"labelSelector", {{"matchLabels", {{"x", "secret"}}}}}}}}}},
      {"podAntiAffinity", {{kRequired, {term}}}}};
  pod["spec"]["topologySpreadConstraints"] = {
      {{"whenUnsatisfiable", "DoNotSchedule"}, {"labelSelector", {{"matchLabels", {{"x", "secret"}}}}}}};
  pod["spec"]["volumes"] = {{{"name", "secret"}, {"persistentVolumeClaim", {{"claimName", "secret"}}}}};
  pod["spec"]["schedulingGroup"] = {{"podGroupName", "secret"}};
  pod["spec"]["containers"][0]["ports"] = {{{"name", "secret"}, {"hostPort", 80}}, {{"name", "secret"}}};
  json placed = pod;
  placed["metadata"]["name"] = "placed";
  placed["metadata"]["labels"]["app"] = "q";
  placed["spec"]["nodeName"] = "n0";
  cluster.lists["/api/v1/pods"] = {pod, placed};
  const Documents documents = read(cluster);
  EXPECT_THAT(documents.list(Kind::pods).at(0), Not(HasSubstr("secret")));
  const Fleet fleet = make_fleet(documents);
  ASSERT_EQ(fleet.pods.size(), 2U);
  EXPECT_THAT(fleet.pods[0].rules, ElementsAre("gang scheduling", "host ports", "persistent volumes", "pod affinity",
                                               "pod anti-affinity", "topology spread"));
  EXPECT_EQ(*fleet.pods[0].labels, (Labels{{"app", "p"}}));
  EXPECT_TRUE(fleet.pods[0].stays);
  EXPECT_EQ(*fleet.pods[1].labels, (Labels{{"app", "q"}}));
  ASSERT_EQ(fleet.pods[1].keeps_away.size(), 1U);
  EXPECT_TRUE(fleet.pods[1].keeps_away[0].any_namespace);
  EXPECT_EQ(fleet.pods[1].keeps_away[0].rules.at(0).key, "app");
}

TEST(ReadDocuments, OldServersAreAskedForOlderVersions) {
  FakeCluster cluster;
  fill(cluster, 1);
  const auto slices = cluster.lists.extract("/apis/resource.k8s.io/v1/resourceslices");
  cluster.lists["/apis/resource.k8s.io/v1beta1/resourceslices"] = {{{"metadata", {{"name", "s"}}}}};
  EXPECT_EQ(read(cluster).list(Kind::slices).size(), 1U);
}

TEST(ReadDocuments, AServerWithoutClaimsIsSaidOnce) {
  FakeCluster cluster;
  fill(cluster, 1);
  for (const char* kind : {"resourceslices", "resourceclaims", "deviceclasses"}) {
    cluster.lists.erase(std::string("/apis/resource.k8s.io/v1/") + kind);
  }
  EXPECT_THAT(read(cluster).unknown, ElementsAre(HasSubstr("does not serve resource.k8s.io")));
}

TEST(ReadDocuments, OneNamespaceIsReadWhereAllMayNotBe) {
  FakeCluster cluster;
  fill(cluster, 1);
  cluster.replies["/api/v1/pods"] = forbidden("pods is forbidden: User \"eve\" cannot list");
  cluster.lists["/api/v1/namespaces/mine/pods"] = {pod_object("mine", "p", "n0", {{"aws.amazon.com/neuron", 1}})};
  cluster.lists["/api/v1/namespaces/kube-system/pods"] = {agent_object("n0")};
  cluster.replies[agent_path("n0")] = {200, "{}"};
  const Documents documents = read(cluster, "mine");
  EXPECT_EQ(documents.agents.at("n0").body, "{}");
  EXPECT_NE(find_pod(make_fleet(documents), "mine", "p"), nullptr);
  EXPECT_TRUE(documents.partial.contains("pods"));
  EXPECT_THAT(documents.unknown,
              ElementsAre(testing::AllOf(HasSubstr("pods of other namespaces than mine"), HasSubstr("cannot list"))));
}

TEST(ReadDocuments, MissingRightsOfOneKindLeaveTheRest) {
  FakeCluster cluster;
  fill(cluster, 1);
  cluster.replies["/api/v1/nodes"] = forbidden("nodes is forbidden");
  cluster.replies[agent_path("n0")] = forbidden("pods/proxy is forbidden");
  const Documents documents = read(cluster);
  EXPECT_THAT(documents.unknown, ElementsAre(HasSubstr("nodes are not known")));
  EXPECT_THAT(documents.agents.at("n0").missing, HasSubstr("pods/proxy is forbidden"));
}

TEST(ReadDocuments, NothingAtAllIsAnError) {
  FakeCluster cluster;
  cluster.late = {"/api/v1/nodes", "/api/v1/pods"};
  const auto documents = read_documents(cluster, "", {}, {});
  ASSERT_FALSE(documents);
  EXPECT_EQ(documents.error().message, "late");
}

TEST(ReadDocuments, AgentsThatCannotBeReachedAreNotAskedOneByOne) {
  FakeCluster cluster;
  fill(cluster, 200);
  for (int i = 0; i < 200; ++i) cluster.late.insert(agent_path("n" + std::to_string(i)));
  ReadLimits limits;
  limits.agent = std::chrono::milliseconds(0);
  limits.at_once = 4;
  const auto documents = read_documents(cluster, "", {}, {}, limits);
  ASSERT_TRUE(documents);
  EXPECT_LT(cluster.late_calls, 200);
  EXPECT_EQ(documents->agents.size(), 200U);
}

TEST(ReadDocuments, ABrokenPageIsSaid) {
  FakeCluster cluster;
  fill(cluster, 1);
  cluster.replies["/api/v1/pods"] = {200, R"({"items":[{"metadata":)"};
  EXPECT_THAT(read(cluster).unknown, Contains(HasSubstr("the list of pods is not a JSON object")));
}

TEST(ReadDocuments, SecretsOfPodsAreNotKept) {
  FakeCluster cluster;
  fill(cluster, 0);
  json pod = pod_object("team", "p", "", {{"aws.amazon.com/neuron", 1}});
  pod["metadata"]["annotations"] = {{"a", "annotation-secret"}};
  pod["metadata"]["managedFields"] = {{{"manager", "m"}}};
  pod["spec"]["containers"][0]["env"] = {{{"name", "PASSWORD"}, {"value", "env-secret"}}};
  pod["spec"]["containers"][0]["args"] = {"--password=arg-secret"};
  pod["spec"]["volumes"] = {{{"name", "volume-secret"}}};
  cluster.lists["/api/v1/pods"] = {pod};
  const std::string page = read(cluster).list(Kind::pods).at(0);
  EXPECT_THAT(page, Not(HasSubstr("secret")));
  EXPECT_THAT(page, Not(HasSubstr("managedFields")));
  EXPECT_THAT(page, HasSubstr("aws.amazon.com/neuron"));
}

TEST(ReadDocuments, WhatContainersWaitForIsKept) {
  FakeCluster cluster;
  fill(cluster, 0);
  json pod = pod_object("team", "p", "n0", {{"aws.amazon.com/neuron", 1}});
  pod["status"]["containerStatuses"] = {
      {{"name", "main"}, {"state", {{"waiting", {{"reason", "ErrImagePull"}, {"message", "no such image"}}}}}},
      {{"name", "side"}, {"state", {{"running", {{"startedAt", "2026-01-31T10:00:00Z"}}}}}}};
  cluster.lists["/api/v1/pods"] = {pod};
  const Fleet fleet = make_fleet(read(cluster));
  ASSERT_EQ(fleet.pods.size(), 1U);
  ASSERT_EQ(fleet.pods[0].waits.size(), 1U);
  EXPECT_EQ(fleet.pods[0].waits[0].container, "main");
  EXPECT_EQ(fleet.pods[0].waits[0].reason, "ErrImagePull");
  EXPECT_EQ(fleet.pods[0].waits[0].message, "no such image");
}

TEST(ReadDocuments, PagesThatNeverEndAreLeftOff) {
  FakeCluster cluster;
  fill(cluster, 1);
  cluster.replies["/api/v1/pods"] = {200, R"({"metadata":{"continue":"again"},"items":[]})"};
  EXPECT_THAT(read(cluster).unknown, ElementsAre(HasSubstr("the server names the same page again")));
  EXPECT_LT(cluster.calls, 20);
  cluster.replies.clear();
  cluster.endless = "/api/v1/pods";
  EXPECT_THAT(read(cluster).unknown, ElementsAre("only the first 0 pods, in 1000 pages, are shown"));
}

TEST(ReadDocuments, ProgressCountsUpToTheEnd) {
  FakeCluster cluster;
  fill(cluster, 3);
  std::size_t last = 0, all = 0;
  const auto progress = [&](std::size_t done, std::size_t expected) {
    EXPECT_EQ(done, last + 1);
    last = done;
    all = expected;
  };
  ASSERT_TRUE(read_documents(cluster, "", {}, progress));
  EXPECT_EQ(last, all);
}

}  // namespace
}  // namespace neuron::fleet
