#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/kubectl_neuron/simulated_fleet.h"
#include "tools/kubectl-neuron/counts.h"

namespace neuron::fleet {
namespace {

using nlohmann::json;
using test::agent_object;
using test::node_object;
using test::page_of;
using test::pod_object;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

TEST(MakeFleet, PutsNodesPodsAndAgentsTogether) {
  const Fleet fleet = make_fleet(test::three_nodes());
  ASSERT_EQ(fleet.nodes.size(), 4U);
  const Node* busy = find_node(fleet, "busy");
  ASSERT_NE(busy, nullptr);
  EXPECT_EQ(busy->instance_type, "trn1.32xlarge");
  EXPECT_EQ(busy->mode, Mode::device_plugin);
  EXPECT_EQ(busy->ready, true);
  EXPECT_EQ(busy->agent_pod, "kube-system/agent-busy");
  EXPECT_EQ(busy->agent_version, "0.1.0");
  ASSERT_TRUE(busy->report) << busy->report_missing;
  EXPECT_EQ(busy->report->host.devices.size(), 16U);
  EXPECT_EQ(find_node(fleet, "silent")->report_missing, "the agent did not answer within 2000 ms");
  EXPECT_EQ(find_node(fleet, "web")->mode, Mode::none);
  EXPECT_EQ(find_node(fleet, "nowhere"), nullptr);
  const Pod* waiting = find_pod(fleet, "team", "waiting");
  ASSERT_NE(waiting, nullptr);
  EXPECT_EQ(waiting->scheduled_reason, "Unschedulable");
  EXPECT_TRUE(asks_for_hardware(*waiting));
  EXPECT_FALSE(asks_for_hardware(*find_pod(fleet, "team", "web")));
  EXPECT_THAT(fleet.unknown, IsEmpty());
}

TEST(MakeFleet, CountsByTheAgentsDocumentAndElseByTheNode) {
  const Fleet fleet = make_fleet(test::three_nodes());
  const Asked asked = asked_by_node(fleet);
  const NodeCounts busy = count_node(*find_node(fleet, "busy"), asked);
  EXPECT_TRUE(busy.is_exact);
  EXPECT_EQ(busy.devices, (Units{16, 6, 1}));
  EXPECT_EQ(busy.cores, (Units{32, 12, 2}));
  EXPECT_EQ(busy.efas, (Units{8, 2, 0}));
  EXPECT_EQ(busy.unhealthy, 1);
  EXPECT_EQ(busy.largest_group, 4);  // 12 to 15
  const NodeCounts silent = count_node(*find_node(fleet, "silent"), asked);
  EXPECT_FALSE(silent.is_exact);
  EXPECT_EQ(silent.devices, (Units{16, 8, 0}));
  EXPECT_EQ(silent.largest_group, std::nullopt);
}

TEST(MakeFleet, AddsContainersSidecarsAndInitContainersAsTheSchedulerDoes) {
  const auto container = [](const char* name, bool init, bool sidecar, std::int64_t amount) {
    Container one;
    one.name = name;
    one.init = init || sidecar;
    one.sidecar = sidecar;
    if (amount > 0) one.requests["aws.amazon.com/neuron"] = amount;
    return one;
  };
  Pod pod;
  pod.containers = {container("first", true, false, 5), container("side", false, true, 2),
                    container("second", true, false, 4), container("a", false, false, 1),
                    container("b", false, false, 2)};
  EXPECT_THAT(scheduled_amounts(pod), ElementsAre(Pair("aws.amazon.com/neuron", 6)));  // second beside side
  pod.containers.pop_back();
  pod.containers[2].requests.clear();
  EXPECT_THAT(scheduled_amounts(pod), ElementsAre(Pair("aws.amazon.com/neuron", 5)));  // first alone
  pod.phase = "Failed";
  EXPECT_THAT(scheduled_amounts(pod), IsEmpty());
}

Documents with_slices(const std::vector<json>& slices) {
  Documents documents;
  documents.list(Kind::nodes) = {page_of({node_object("n1", "trn1.32xlarge")})};
  documents.list(Kind::slices) = {page_of(slices)};
  return documents;
}

json slice_object(const std::string& name, int generation, int count, const std::vector<std::string>& devices) {
  json spec = {{"driver", "neuron.aws.com"},
               {"nodeName", "n1"},
               {"pool", {{"name", "n1"}, {"generation", generation}, {"resourceSliceCount", count}}},
               {"devices", json::array()}};
  for (const std::string& device : devices) {
    spec["devices"].push_back({{"name", device},
                               {"attributes",
                                {{"resourceType", {{"string", "neuron_device"}}},
                                 {"neuron.aws.com/deviceId", {{"int", 3}}},
                                 {"resource.aws.com/devicegroup4_id", {{"string", "abc"}}}}},
                               {"capacity", {{"cores", {{"value", "2"}}}}},
                               {"allowMultipleAllocations", true}});
  }
  return {{"metadata", {{"name", name}}}, {"spec", std::move(spec)}};
}

TEST(MakeFleet, CountsTheGeneralResourcesOfPodsAndNodes) {
  Documents documents;
  documents.list(Kind::nodes) = {
      R"({"items":[{"metadata":{"name":"n"},"status":{"allocatable":{"cpu":"3920m","memory":"8Gi",
      "pods":"110","nvidia.com/gpu":"2","aws.amazon.com/neuron":"16"}}}]})"};
  const std::string containers =
      R"("containers":[{"name":"a","resources":{"limits":{"cpu":"2"},"requests":{"cpu":"0.5"}}},
      {"name":"b","resources":{"limits":{"cpu":"100m","memory":"1Gi"}}}])";
  documents.list(Kind::pods) = {
      R"({"items":[{"metadata":{"name":"own","namespace":"d"},"spec":{"resources":{"requests":{"cpu":"3"},"limits":{"cpu":"4"}},)" +
      containers + R"(}},{"metadata":{"name":"sum","namespace":"d"},"spec":{"overhead":{"cpu":"250m"},
      "initContainers":[{"name":"i","resources":{"requests":{"memory":"2Gi","cpu":0.2}}}],)" +
      containers + "}}]}"};
  const Fleet fleet = make_fleet(std::move(documents));
  EXPECT_EQ(fleet.nodes[0].general,
            (Amounts{{"cpu", 3920}, {"memory", 8000LL << 30U}, {"pods", 110'000}, {"nvidia.com/gpu", 2000}}));
  EXPECT_EQ(fleet.pods[0].general, (Amounts{{"cpu", 3000}, {"memory", 1000LL << 30U}}));
  EXPECT_EQ(fleet.pods[1].general, (Amounts{{"cpu", 850}, {"memory", 2000LL << 30U}}));
}

TEST(MakeFleet, OfAPoolOnlyTheNewestGenerationCounts) {
  const Fleet fleet = make_fleet(with_slices({slice_object("old", 1, 1, {"neuron-device-9"}),
                                              slice_object("a", 2, 2, {"neuron-device-0", "neuron-device-1"}),
                                              slice_object("b", 2, 2, {"neuron-device-2"})}));
  ASSERT_EQ(fleet.pools.size(), 1U);
  const Pool& pool = fleet.pools[0];
  EXPECT_TRUE(pool.complete);
  EXPECT_EQ(pool.node, "n1");
  ASSERT_EQ(pool.devices.size(), 3U);
  EXPECT_EQ(pool.devices[0].attributes.find("deviceId")->second.number, 3);  // the driver's own domain is dropped
  EXPECT_EQ(pool.devices[0].attributes.find("resource.aws.com/devicegroup4_id")->second.text, "abc");
  EXPECT_EQ(pool.devices[0].capacity.at("cores"), "2");
  EXPECT_TRUE(pool.devices[0].multiple);
  EXPECT_TRUE(is_neuron_pool(pool));
  EXPECT_EQ(fleet.nodes[0].mode, Mode::claims);
  EXPECT_FALSE(make_fleet(with_slices({slice_object("a", 2, 2, {})})).pools[0].complete);
}

TEST(MakeFleet, CountsByTheSlicesWithoutTheAgentsDocument) {
  std::vector<json> devices;
  for (int i = 0; i < 8; ++i) {
    devices.push_back({{"name", "neuron-device-" + std::to_string(i)},
                       {"attributes",
                        {{"resourceType", {{"string", "neuron_device"}}},
                         {"deviceId", {{"int", i}}},
                         {"health", {{"string", i == 7 ? "unhealthy" : "healthy"}}}}}});
  }
  devices.push_back({{"name", "efa-rdmap16s25"}, {"attributes", {{"resourceType", {{"string", "efa"}}}}}});
  json slice = slice_object("a", 1, 1, {});
  slice["spec"]["devices"] = devices;
  Documents documents = with_slices({slice});
  json results = json::array();
  for (const char* name : {"neuron-device-0", "neuron-device-1-core-1", "neuron-group-4-5", "efa-rdmap16s25"}) {
    results.push_back({{"request", "r"}, {"driver", "neuron.aws.com"}, {"pool", "n1"}, {"device", name}});
  }
  results.push_back(
      {{"driver", "neuron.aws.com"}, {"pool", "n1"}, {"device", "neuron-device-2"}, {"adminAccess", true}});
  results.push_back({{"driver", "neuron.aws.com"}, {"pool", "n2"}, {"device", "neuron-device-3"}});
  documents.list(Kind::claims) = {page_of({{{"metadata", {{"namespace", "team"}, {"name", "c"}}},
                                            {"status", {{"allocation", {{"devices", {{"results", results}}}}}}}}})};
  const Fleet fleet = make_fleet(documents);
  const NodeCounts counts = count_node(fleet.nodes.at(0), asked_by_node(fleet));
  EXPECT_EQ(counts.devices, (Units{8, 4, 1}));
  EXPECT_EQ(counts.efas, (Units{1, 1, 0}));
  EXPECT_FALSE(counts.is_exact);
}

// Devices 0 and 1 are shared by their cores, 2 is held alone; of 3 a pod has a core that it asked for twice.
TEST(MakeFleet, SharesOfADeviceAddUp) {
  std::vector<json> devices, results;
  for (int i = 0; i < 6; ++i) {
    devices.push_back({{"name", "neuron-device-" + std::to_string(i)},
                       {"allowMultipleAllocations", true},
                       {"attributes",
                        {{"resourceType", {{"string", "neuron_device"}}},
                         {"deviceId", {{"int", i}}},
                         {"health", {{"string", i == 1 || i == 5 ? "unhealthy" : "healthy"}}}}},
                       {"capacity", {{"cores", {{"value", "4"}}}, {"memory", {{"value", "96Gi"}}}}}});
  }
  const auto share = [&](const char* device, const char* cores) {
    results.push_back({{"request", "r"}, {"driver", "neuron.aws.com"}, {"pool", "n1"}, {"device", device}});
    if (*cores != '\0') results.back()["consumedCapacity"] = {{"cores", cores}, {"memory", "0"}};
  };
  share("neuron-device-0", "1");
  share("neuron-device-0", "2");
  share("neuron-device-1", "3");
  share("neuron-device-2", "");
  share("neuron-device-3", "1");
  share("neuron-device-3", "9000000000000000000");
  share("neuron-device-3", "9000000000000000000");
  json slice = slice_object("a", 1, 1, {});
  slice["spec"]["devices"] = devices;
  Documents documents = with_slices({slice});
  std::vector<json> claims;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const json allocation = {{"devices", {{"results", json::array({results[i]})}}}};
    claims.push_back({{"metadata", {{"namespace", "team"}, {"name", "c" + std::to_string(i)}}},
                      {"status", {{"allocation", allocation}}}});
  }
  documents.list(Kind::claims) = {page_of(claims)};
  Fleet fleet = make_fleet(documents);
  NodeCounts counts = count_node(fleet.nodes.at(0), asked_by_node(fleet));
  EXPECT_EQ(counts.devices, (Units{6, 4, 1}));
  EXPECT_EQ(counts.cores, (Units{24, 3 + 3 + 4 + 4, 1 + 4})) << "unhealthy are those that no claim has";
  fleet.pools[0].devices[4].capacity.clear();
  counts = count_node(fleet.nodes.at(0), asked_by_node(fleet));
  EXPECT_FALSE(counts.cores) << "how many device 4 has is not known";
}

TEST(MakeFleet, ReadsClaimsOfEveryVersionOfTheApi) {
  Documents documents;
  const json exact = {
      {"deviceClassName", "neuron.aws.com"}, {"count", 2}, {"selectors", {{{"cel", {{"expression", "true"}}}}}}};
  json v1 = {{"name", "r"}, {"exactly", exact}};
  json beta = exact;
  beta["name"] = "r";
  const json allocation = {
      {"devices", {{"results", {{{"request", "r"}, {"driver", "neuron.aws.com"}, {"pool", "n1"}, {"device", "d"}}}}}}};
  for (const json& request : {v1, beta}) {
    const json claim = {
        {"metadata", {{"namespace", "team"}, {"name", "c"}, {"uid", "u"}}},
        {"spec", {{"devices", {{"requests", {request}}}}}},
        {"status",
         {{"allocation", allocation}, {"reservedFor", {{{"resource", "pods"}, {"name", "p"}, {"uid", "v"}}}}}}};
    documents.list(Kind::claims) = {page_of({claim})};
    const Fleet fleet = make_fleet(documents);
    const Claim* found = find_claim(fleet, "team", "c");
    ASSERT_NE(found, nullptr);
    ASSERT_EQ(found->requests.size(), 1U);
    EXPECT_EQ(found->requests[0].device_class, "neuron.aws.com");
    EXPECT_EQ(found->requests[0].count, 2);
    EXPECT_EQ(found->requests[0].selectors[0].expression, "true");
    EXPECT_TRUE(found->allocated);
    EXPECT_EQ(found->devices[0].device, "d");
    EXPECT_THAT(found->reserved_for, ElementsAre("p"));
  }
}

TEST(MakeFleet, ResourcesOfDeviceClassesCount) {
  Documents documents;
  documents.list(Kind::device_classes) = {
      page_of({{{"metadata", {{"name", "c"}}}, {"spec", {{"extendedResourceName", "example.com/chip"}}}}})};
  documents.list(Kind::pods) = {
      page_of({pod_object("team", "p", "", {{"example.com/chip", 3}, {"cpu", 4}, {"example.com/other", 1}})})};
  const Fleet fleet = make_fleet(documents);
  EXPECT_THAT(scheduled_amounts(fleet.pods.at(0)), ElementsAre(Pair("example.com/chip", 3)));
}

TEST(MakeFleet, EqualAttributesAreInMemoryOnce) {
  json other = slice_object("b", 1, 1, {"neuron-device-0"});
  other["spec"]["pool"]["name"] = other["spec"]["nodeName"] = "n2";
  Fleet fleet = make_fleet(with_slices({slice_object("a", 1, 1, {"neuron-device-0", "neuron-device-1"}), other}));
  const Fleet& read = fleet;
  ASSERT_EQ(read.pools.size(), 2U);
  const auto* one = &*read.pools[0].devices[1].attributes.find("deviceId");
  EXPECT_EQ(one, &*read.pools[1].devices[0].attributes.find("deviceId"));
  fleet.pools[1].devices[0].attributes.find("deviceId")->second.number = 7;
  EXPECT_EQ(one->second.number, 3) << "a change is of one map alone";
  EXPECT_EQ(read.pools[1].devices[0].attributes.find("deviceId")->second.number, 7);
}

TEST(MakeFleet, AnAgentsTextIsFreedOnceItIsParsed) {
  AgentAnswer answer{"kube-system/agent", test::node_document("inf2.48xlarge", {}), ""};
  ASSERT_GT(answer.body.capacity(), 1000U);
  parse_report(answer);
  EXPECT_TRUE(answer.report);
  EXPECT_LT(answer.body.capacity(), 100U);
}

TEST(MakeFleet, ObjectsWithoutANameAreSaid) {
  Documents documents;
  documents.list(Kind::pods) = {R"({"items":[{"metadata":{"name":7}},{"metadata":[]},{"metadata":{"name":"p"}}]})"};
  const Fleet fleet = make_fleet(documents);
  EXPECT_EQ(fleet.pods.size(), 1U);
  EXPECT_THAT(fleet.unknown, ElementsAre("2 of 3 pods were not understood, wholly or in part: number 1 and number 2"));
  EXPECT_TRUE(fleet.pods_partial);
}

TEST(MakeFleet, HalfADocumentIsSaidAndTheRestShown) {
  Documents documents = test::three_nodes();
  std::string& page = documents.list(Kind::nodes).at(0);
  page.resize(page.size() / 2);
  std::string& body = documents.agents.at("idle").body;
  body.resize(body.size() / 2);
  const Fleet fleet = make_fleet(documents);
  EXPECT_THAT(fleet.unknown, ElementsAre(HasSubstr("1 page of the list of nodes cannot be parsed")));
  ASSERT_NE(find_node(fleet, "idle"), nullptr);
  EXPECT_EQ(find_node(fleet, "busy"), nullptr);
  EXPECT_FALSE(find_node(fleet, "idle")->report);
  EXPECT_THAT(find_node(fleet, "idle")->report_missing, HasSubstr("the agent's answer is not understood"));
}

TEST(MakeFleet, MembersOfOtherTypesCountAsAbsent) {
  Documents documents;
  documents.list(Kind::nodes) = {
      R"({"items":[7,{"metadata":7},{"metadata":{"name":"n","labels":[1],"creationTimestamp":{}},"spec":{"taints":{}},
      "status":{"capacity":{"aws.amazon.com/neuron":-1,"vpc.amazonaws.com/efa":"1e99"},"conditions":{"type":"Ready"}}}]})"};
  documents.list(Kind::pods) = {R"({"items":[{"metadata":{"name":"p"},"spec":{"containers":[[],{"resources":[]}],
      "tolerations":[3]},"status":"x"}]})"};
  documents.list(Kind::slices) = {R"({"items":[{"metadata":{"name":"s"},"spec":{"devices":[1,{"attributes":[]}]}}]})"};
  const Fleet fleet = make_fleet(documents);
  ASSERT_EQ(fleet.nodes.size(), 1U);
  EXPECT_THAT(fleet.nodes[0].capacity, IsEmpty());
  EXPECT_EQ(fleet.nodes[0].ready, std::nullopt);
  EXPECT_EQ(fleet.pods.at(0).containers.size(), 2U);
}

TEST(MakeFleet, OfSeveralAgentsOnANodeTheReadyOneIsTheAgent) {
  Documents documents;
  json leaving = agent_object("n1");
  leaving["metadata"]["name"] = "a-leaving";
  leaving["status"]["conditions"][0]["status"] = "False";
  documents.list(Kind::nodes) = {page_of({node_object("n1", "trn1.32xlarge")})};
  documents.list(Kind::pods) = {page_of({leaving, agent_object("n1")})};
  EXPECT_EQ(make_fleet(documents).nodes[0].agent_pod, "kube-system/agent-n1");
}

TEST(MakeFleet, ANodeThatIsListedTwiceCountsOnce) {
  Documents documents = test::three_nodes();
  documents.list(Kind::nodes).push_back(documents.list(Kind::nodes).front());
  const Fleet fleet = make_fleet(documents);
  EXPECT_EQ(fleet.nodes.size(), 4U);
  EXPECT_TRUE(find_node(fleet, "busy")->report);
}

}  // namespace
}  // namespace neuron::fleet
