// Shapes of claims that people write, on every type of node.

#include <set>

#include "agent/core/catalogue.h"
#include "test/unit/dra/claims_fixture.h"

namespace neuron::plugin::dra {
namespace {

using testing::ElementsAre;

class ClaimShapes : public ClaimsTest {
 protected:
  // Paths of the device nodes of a claim's file.
  [[nodiscard]] std::set<std::string> nodes_of_claim(const std::string& uid) const {
    std::set<std::string> paths;
    const json spec = cdi_of(uid);
    for (const json& device : spec.value("devices", json::array())) {
      for (const json& node : device["containerEdits"].value("deviceNodes", json::array())) {
        paths.insert(node["path"].get<std::string>());
      }
    }
    return paths;
  }
};

// The same nodes and variables as Allocate, on Inferentia too.
TEST_F(ClaimShapes, ADeviceAndAnInterfaceOfEveryTypeOfNode) {
  for (const core::InstanceType& type : core::all_instance_types()) {
    if (!type.family || type.device_count == 0) continue;
    SCOPED_TRACE(type.name);
    node_ = node_of(type.name);
    const int last = type.device_count - 1;
    std::vector<ResultText> results{{"chips", "neuron-device-" + std::to_string(last)}};
    grant::Grant expected =
        grant::grant_of_cores(*node_, {last}, node_->cores_of(model::Resource::neuron, last), grant::GrantOptions{});
    if (!node_->units(model::Resource::efa).empty()) {
      const int efa = node_->units(model::Resource::efa).front();
      results.push_back({"nics", "efa-" + node_->efa(efa).name});
      for (const auto& node : grant::grant_of_efas(*node_, {efa}, grant::GrantOptions{}).device_nodes) {
        expected.device_nodes.push_back(node);
      }
    }
    put_claim("c", results);
    ASSERT_EQ(prepare("c").error, "");
    EXPECT_EQ(env_of("uid-c", "chips"), "NEURON_RT_VISIBLE_CORES=" + expected.envs.at("NEURON_RT_VISIBLE_CORES"));
    std::set<std::string> paths;
    for (const auto& node : expected.device_nodes) paths.insert(node.container_path);
    EXPECT_EQ(nodes_of_claim("uid-c"), paths);
    EXPECT_EQ(unprepare("c"), "");
    api_.drop(claim_path("c"));
  }
}

TEST_F(ClaimShapes, AllDevicesOfTheNode) {
  std::vector<ResultText> results;
  for (int i = 0; i < 16; ++i) results.push_back({"all", "neuron-device-" + std::to_string(i)});
  put_claim("c", results);
  EXPECT_EQ(prepare("c").error, "");
  EXPECT_EQ(env_of("uid-c", "all"), "NEURON_RT_VISIBLE_CORES=0-31");
  EXPECT_EQ(nodes_of_claim("uid-c").size(), 16U);
}

TEST_F(ClaimShapes, CoresOfOneDeviceAndOfSeveral) {
  put_claim("c", {{"cores", "neuron-device-2-core-1"}, {"cores", "neuron-device-5-core-0"}});
  EXPECT_EQ(prepare("c").error, "");
  EXPECT_EQ(env_of("uid-c", "cores"), "NEURON_RT_VISIBLE_CORES=1-2");
  EXPECT_THAT(nodes_of_claim("uid-c"), ElementsAre("/dev/neuron2", "/dev/neuron5"));
}

// Prioritized lists: the kubelet and the pod know the request, not the alternative.
TEST_F(ClaimShapes, AnAlternativeIsAnsweredUnderItsRequest) {
  node_ = node_of("trn2.48xlarge");
  const json configs = json::array({config_json("FromClass", {"chips"}, neuron_config(2)),
                                    config_json("FromClaim", {"chips/small"}, neuron_config(1)),
                                    config_json("FromClaim", {"chips/large"}, neuron_config(2))});
  put_claim("c", {{"chips/small", "neuron-device-2"}}, configs);
  put_pod("pod-c", {{"main", {{"c", "chips"}}}}, "pod-uid-c");
  const PrepareAnswer answer = prepare("c");
  ASSERT_EQ(answer.devices.size(), 1U) << answer.error;
  EXPECT_THAT(answer.devices[0].requests, ElementsAre("chips"));
  EXPECT_EQ(env_of("uid-c", "chips"), "NEURON_LOGICAL_NC_CONFIG=1");
  EXPECT_EQ(prepare("c").devices.size(), 1U);
}

TEST_F(ClaimShapes, AClaimThatManyPodsShareIsPreparedOnce) {
  json claim = claim_json("c", "uid-c", {{"chips", "neuron-device-2"}, {"more", "neuron-device-3"}});
  for (int i = 0; i < 15; ++i) {
    const std::string pod = "p" + std::to_string(i);
    reserve_for(claim, pod, "uid-" + pod);
    put_pod(pod, {{"main", {{"c", ""}}}, {"beside", {}}}, "uid-" + pod);
  }
  reserve_for(claim, "gone", "uid-gone");  // deleted meanwhile
  put_pod("anew", {{"main", {{"c", "chips"}}}}, "uid-2");
  reserve_for(claim, "anew", "uid-1");  // another pod under its name, which is not reserved for
  api_.put(claim_path("c"), claim);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(prepare("c").error, "");
    EXPECT_EQ(env_of("uid-c", "chips"), "NEURON_RT_VISIBLE_CORES=0-3");
  }
  EXPECT_EQ(prepared(), 1U);
}

// More pods are not read than the API allows.
TEST_F(ClaimShapes, AClaimOfVeryManyPodsNeedsOneNeuronRequest) {
  json claim = claim_json("c", "uid-c", {{"chips", "neuron-device-2"}});
  json two = claim_json("d", "uid-d", {{"chips", "neuron-device-4"}, {"more", "neuron-device-5"}});
  for (int i = 0; i < 257; ++i) {
    reserve_for(claim, "p" + std::to_string(i), "u");
    reserve_for(two, "p" + std::to_string(i), "u");
  }
  api_.put(claim_path("c"), claim);
  api_.put(claim_path("d"), two);
  EXPECT_EQ(prepare("c").error, "");
  EXPECT_THAT(prepare("d").error, testing::HasSubstr("257 pods may use the claim, but at most 256 are examined"));
}

// Unmodified pods: the scheduler's claim for extended resources.
TEST_F(ClaimShapes, ExtendedResourcesOfTwoContainersAreTwoRequests) {
  json claim = claim_json("ext", "uid-ext",
                          {{"container-0-request-0", "neuron-device-2"},
                           {"container-1-request-0", "neuron-device-3-core-1"},
                           {"container-1-request-1", "efa-" + node_->efa(0).name}});
  reserve_for(claim, "p", "pod-uid");
  api_.put(claim_path("ext"), claim);
  json pod = pod_json("p", "pod-uid", {{"one", {}}, {"two", {}}});
  json mappings = json::array();
  for (const auto& [container, request] : {std::pair("one", "container-0-request-0"),
                                           {"two", "container-1-request-0"},
                                           {"two", "container-1-request-1"}}) {
    mappings.push_back({{"containerName", container}, {"requestName", request}});
  }
  pod["status"]["extendedResourceClaimStatus"] = {{"resourceClaimName", "ext"}, {"requestMappings", mappings}};
  api_.put("/api/v1/namespaces/default/pods/p", pod);
  EXPECT_EQ(prepare("ext").error, "");
  EXPECT_EQ(env_of("uid-ext", "container-0-request-0"), "NEURON_RT_VISIBLE_CORES=0-1");
  EXPECT_EQ(env_of("uid-ext", "container-1-request-0"), "NEURON_RT_VISIBLE_CORES=1");
  EXPECT_EQ(env_of("uid-ext", "container-1-request-1"), "");
}

TEST_F(ClaimShapes, TheNodeOfAnUltraServer) {
  node_ = node_of("trn2.48xlarge");
  change_node([](model::HostScan& host) {
    host.ultraserver = model::UltraServer{false, {1, 2, 4}, {{4, "8f10b6e35a7c92d4", 3}}};
  });
  json mode = {{"apiVersion", "neuron.aws.com/v1"}, {"kind", "UltraServerConfig"}, {"ultraserverMode", 4}};
  put_claim("c", {{"node", "neuron-node"}}, json::array({config_json("FromClaim", {}, mode)}));
  EXPECT_EQ(prepare("c").error, "");
  EXPECT_EQ(nodes_of_claim("uid-c").size(), 16U);
  const json edits = cdi_of("uid-c")["devices"].back()["containerEdits"];
  EXPECT_EQ(edits["env"], (json{"NEURON_RT_ULTRASERVER_MODE=1", "NEURON_RT_ULTRASERVER_NODE_ID=3",
                                "NEURON_RT_ULTRASERVER_SERVER_ID=8f10b6e35a7c92d4", "NEURON_RT_VISIBLE_CORES=0-63"}));
}

}  // namespace
}  // namespace neuron::plugin::dra
