#include "plugin/dra/claim/claim_grant.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "plugin/dra/claim/claim_plan.h"
#include "test/unit/grant/nodes.h"

namespace neuron::plugin::dra {
namespace {

using nlohmann::json;

struct Node {
  explicit Node(const std::string& type) : node(node_of(type)) {}
  explicit Node(std::shared_ptr<model::Snapshot> snapshot)
      : node(std::make_shared<const grant::NodeUnits>(std::move(snapshot))) {}
  [[nodiscard]] GrantFacts facts() const { return {*node, options}; }
  [[nodiscard]] PlannedRequest request(const std::string& name, const std::vector<std::string>& devices,
                                       RequestConfig config = {}) const {
    PlannedRequest planned{name, {}, false, config};
    for (const std::string& device : devices) planned.hardware.add(*hardware_of(*node, device));
    return planned;
  }
  [[nodiscard]] Result<Environment> environment(const std::vector<PlannedRequest>& requests) const {
    std::vector<const PlannedRequest*> pointers;
    for (const PlannedRequest& one : requests) pointers.push_back(&one);
    return environment_of(facts(), pointers);
  }

  grant::NodeUnitsPtr node;
  grant::GrantOptions options;
};

TEST(ClaimGrant, GivesWhatAllocateGivesForTheSameUnits) {
  for (const char* type : {"trn1.32xlarge", "trn2.48xlarge", "inf2.48xlarge", "inf1.24xlarge"}) {
    for (const auto numbering : {grant::CoreNumbering::container, grant::CoreNumbering::host}) {
      Node node(type);
      node.options.numbering = numbering;
      const int per_device = node.node->topology().cores_per_device;
      // Two whole devices through one request each, and one core of a third.
      const auto environment =
          node.environment({node.request("a", {"neuron-device-2"}), node.request("b", {"neuron-device-5"}),
                            node.request("c", {"neuron-device-4-core-1"})});
      std::vector<int> cores;
      for (int i = 0; i < per_device; ++i) cores.push_back(2 * per_device + i);
      cores.push_back(4 * per_device + 1);
      for (int i = 0; i < per_device; ++i) cores.push_back(5 * per_device + i);
      ASSERT_TRUE(environment) << environment.error().message;
      EXPECT_EQ(*environment, grant::grant_of_cores(*node.node, {2, 4, 5}, cores, node.options).envs);
    }
  }
}

TEST(ClaimGrant, InterfacesHaveNoVariablesAndAdminAccessNeither) {
  const Node node("trn1.32xlarge");
  EXPECT_EQ(*node.environment({node.request("nics", {"efa-" + node.node->efa(0).name})}), Environment{});
  PlannedRequest admin = node.request("all", {"neuron-device-0"});
  admin.admin_access = true;
  EXPECT_EQ(*node.environment({admin}), Environment{});
  // But its device is one that the container sees, and counts.
  EXPECT_EQ(*node.environment({admin, node.request("mine", {"neuron-device-3"})}),
            (Environment{{"NEURON_RT_VISIBLE_CORES", "2-3"}}));
}

TEST(ClaimGrant, LncIsSetAndCountsTheCores) {
  const Node node("trn2.48xlarge");
  EXPECT_EQ(*node.environment({node.request("r", {"neuron-device-2"})}),
            (Environment{{"NEURON_RT_VISIBLE_CORES", "0-3"}}));
  EXPECT_EQ(*node.environment({node.request("r", {"neuron-device-2"}, {1, {}})}),
            (Environment{{"NEURON_LOGICAL_NC_CONFIG", "1"}, {"NEURON_RT_VISIBLE_CORES", "0-7"}}));
  EXPECT_EQ(*node.environment({node.request("r", {"neuron-device-2"}, {2, {}})}),
            (Environment{{"NEURON_LOGICAL_NC_CONFIG", "2"}, {"NEURON_RT_VISIBLE_CORES", "0-3"}}));
  // A logical core of the node is two with LNC 1.
  EXPECT_EQ(*node.environment({node.request("r", {"neuron-device-2-core-1"}, {1, {}})}),
            (Environment{{"NEURON_LOGICAL_NC_CONFIG", "1"}, {"NEURON_RT_VISIBLE_CORES", "2-3"}}));
  // One request says what the node has anyway: the same cores.
  EXPECT_EQ(
      *node.environment({node.request("a", {"neuron-device-2"}, {2, {}}), node.request("b", {"neuron-device-3"})}),
      (Environment{{"NEURON_LOGICAL_NC_CONFIG", "2"}, {"NEURON_RT_VISIBLE_CORES", "0-7"}}));
}

// Cores keep the numbers of LNC 2 while claims hold some, and the file says 1 by now.
TEST(ClaimGrant, LncIsSetWhereARuntimeWouldReadAnother) {
  auto scanned = snapshot_of("trn2.48xlarge");
  scanned->host.lnc = model::Sourced<int>{1, model::Origin::live};
  Node node("trn2.48xlarge");
  node.node = std::make_shared<const grant::NodeUnits>(snapshot_of("trn2.48xlarge"), grant::NodeUnits(scanned));
  EXPECT_EQ(*node.environment({node.request("r", {"neuron-device-2"})}),
            (Environment{{"NEURON_LOGICAL_NC_CONFIG", "2"}, {"NEURON_RT_VISIBLE_CORES", "0-3"}}));
  EXPECT_EQ(*node.environment({node.request("r", {"neuron-device-2"}, {1, {}})}),
            (Environment{{"NEURON_LOGICAL_NC_CONFIG", "1"}, {"NEURON_RT_VISIBLE_CORES", "0-7"}}));
  PlannedRequest admin = node.request("all", {"neuron-device-0"});
  admin.admin_access = true;
  EXPECT_EQ(*node.environment({admin}), Environment{});
}

TEST(ClaimGrant, HalfALogicalCoreIsRefused) {
  auto snapshot = snapshot_of("trn2.48xlarge");
  snapshot->host.lnc = model::Sourced<int>{1, model::Origin::live};
  const Node node(snapshot);
  const auto half = node.environment({node.request("r", {"neuron-device-2-core-1"}, {2, {}})});
  ASSERT_FALSE(half);
  EXPECT_THAT(half.error().message,
              testing::HasSubstr("with logicalNeuronCore 2 a core of neuron2 would be held only in part"));
  EXPECT_EQ(*node.environment({node.request("r", {"neuron-device-2-core-2", "neuron-device-2-core-3"}, {2, {}})}),
            (Environment{{"NEURON_LOGICAL_NC_CONFIG", "2"}, {"NEURON_RT_VISIBLE_CORES", "1"}}));
}

TEST(ClaimGrant, LncElsewhereIsRefusedInTheWordsOfAws) {
  for (const char* type : {"trn1.2xlarge", "inf2.48xlarge"}) {
    const Node node(type);
    const auto refused = node.environment({node.request("r", {"neuron-device-0"}, {1, {}})});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message,
              std::string("error applying config: LNC value is not configurable for instance type ") + type);
  }
}

TEST(ClaimGrant, OneContainerHasOneConfiguration) {
  const Node node("trn2.48xlarge");
  const auto refused =
      node.environment({node.request("a", {"neuron-device-2"}, {1, {}}), node.request("b", {"neuron-device-3"})});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("\"a\" with logicalNeuronCore 1 and \"b\" with 2"));
}

TEST(ClaimGrant, UltraServersAreGivenAsTheClassFilesSay) {
  auto snapshot = snapshot_of("trn2.48xlarge");
  const auto mode = [&](int nodes) {
    const Node node(snapshot);
    return node.environment({node.request("r", {"neuron-node"}, {{}, nodes})});
  };
  EXPECT_EQ(mode(1)->at("NEURON_RT_ULTRASERVER_MODE"), "4");
  EXPECT_EQ(mode(1)->at("NEURON_RT_ULTRASERVER_NODE_ID"), "-1");
  ASSERT_FALSE(mode(4));
  EXPECT_THAT(mode(4).error().message,
              testing::HasSubstr("its driver has no sys/class/neuron_device/ultraserver_mode"));
  snapshot->host.ultraserver_is_unread = true;
  EXPECT_EQ(mode(4).error().code, ErrorCode::unavailable);
  EXPECT_TRUE(mode(1)) << "every node can";
  snapshot->host.ultraserver_is_unread = false;
  model::UltraServer& server = snapshot->host.ultraserver.emplace();
  server.modes = {1, 2, 4};
  server.memberships = {{2, "4d2a71c09be3f652", 1}, {4, "8f10b6e35a7c92d4", 3}};
  EXPECT_EQ(mode(4)->at("NEURON_RT_ULTRASERVER_MODE"), "1");
  EXPECT_EQ(mode(4)->at("NEURON_RT_ULTRASERVER_SERVER_ID"), "8f10b6e35a7c92d4");
  EXPECT_EQ(mode(4)->at("NEURON_RT_ULTRASERVER_NODE_ID"), "3");
  EXPECT_EQ(mode(2)->at("NEURON_RT_ULTRASERVER_MODE"), "2");
  server.modes = {1, 2, 3, 4};
  EXPECT_EQ(mode(2)->at("NEURON_RT_ULTRASERVER_MODE"), "3");
  server.memberships.erase(server.memberships.begin());
  EXPECT_THAT(mode(2).error().message,
              testing::HasSubstr("it is not linked with another node (server_id_2, node_id_2)"));
  server.memberships = {{0, "8f10b6e35a7c92d4", 1}};  // a reservation, which does not say of how many
  EXPECT_EQ(mode(4)->at("NEURON_RT_ULTRASERVER_NODE_ID"), "1");
  server.modes = {4};
  EXPECT_THAT(mode(4).error().message, testing::HasSubstr("ultraserver_mode is \"4\""));
  EXPECT_THAT(mode(4).error().message, testing::Not(testing::HasSubstr("election")));
  server.memberships.clear();
  EXPECT_THAT(mode(4).error().message, testing::HasSubstr("its election found no other server"));
  server.busy = true;
  EXPECT_EQ(mode(4).error().code, ErrorCode::unavailable);
  EXPECT_THAT(mode(4).error().message, testing::HasSubstr("retried automatically"));
  snapshot->host.devices[5].signals.reset_state = 2;
  EXPECT_THAT(mode(4).error().message,
              testing::AllOf(testing::HasSubstr("neuron5 was given up"), testing::HasSubstr("reload the Neuron driver"),
                             testing::Not(testing::HasSubstr("retried"))));
}

// node_cnt says of how many nodes; a smaller set is given the ids of the whole, which the driver maps itself.
TEST(ClaimGrant, PartitionsKnowTheirSize) {
  auto snapshot = snapshot_of("trn3.48xlarge");
  snapshot->host.ultraserver = model::UltraServer{false, {1, 3, 4}, {{4, "8f10b6e35a7c92d4", 3}}, 4};
  const auto mode = [&](int nodes) {
    const Node node(snapshot);
    return node.environment({node.request("r", {"neuron-node"}, {{}, nodes})});
  };
  EXPECT_EQ(mode(4)->at("NEURON_RT_ULTRASERVER_MODE"), "1");
  EXPECT_EQ(mode(2)->at("NEURON_RT_ULTRASERVER_MODE"), "3");
  EXPECT_EQ(mode(2)->at("NEURON_RT_ULTRASERVER_NODE_ID"), "3");
  EXPECT_EQ(mode(2)->at("NEURON_RT_ULTRASERVER_SERVER_ID"), "8f10b6e35a7c92d4");
  snapshot->host.ultraserver = model::UltraServer{false, {3, 4}, {{2, "8f10b6e35a7c92d4", 1}}, 2};
  EXPECT_EQ(mode(2)->at("NEURON_RT_ULTRASERVER_NODE_ID"), "1");
  EXPECT_THAT(mode(4).error().message, testing::HasSubstr("ultraserver_mode is \"3,4\""));
}

PlannedDevice granted(const Node& node, std::vector<std::string> requests, const std::string& device) {
  return {std::move(requests), "n1", device, {}, *hardware_of(*node.node, device), false};
}

TEST(ClaimGrant, TheFileHasADeviceForEachResultAndTheVariablesOnceForEachRequest) {
  const Node node("trn1.32xlarge");
  const std::string efa = "efa-" + node.node->efa(0).name;
  const ClaimGrant grant = grant_of_claim(node.facts(), "neuron.aws.com", "u-1",
                                          {granted(node, {"chips"}, "neuron-device-2"),
                                           granted(node, {"chips"}, "neuron-device-3"), granted(node, {"nics"}, efa)},
                                          {{"chips", {{"NEURON_RT_VISIBLE_CORES", "0-3"}}}});
  const json spec = json::parse(grant.cdi_text);
  EXPECT_EQ(spec["cdiVersion"], "0.5.0");
  EXPECT_EQ(spec["kind"], "k8s.neuron.aws.com/claim");
  ASSERT_EQ(spec["devices"].size(), 4U);
  EXPECT_EQ(spec["devices"][1]["name"], "u-1-neuron-device-3");
  EXPECT_EQ(spec["devices"][1]["containerEdits"]["deviceNodes"],
            (json{{{"path", "/dev/neuron3"}, {"hostPath", "/dev/neuron3"}, {"permissions", "rw"}}}));
  EXPECT_FALSE(spec["devices"][1]["containerEdits"].contains("env"));
  EXPECT_EQ(spec["devices"][2]["containerEdits"]["deviceNodes"][0]["path"],
            "/dev/infiniband/" + *node.node->efa(0).uverbs);
  EXPECT_EQ(spec["devices"][3]["name"], "u-1-request-chips");
  EXPECT_EQ(spec["devices"][3]["containerEdits"], (json{{"env", {"NEURON_RT_VISIBLE_CORES=0-3"}}}));

  const std::string kind = "k8s.neuron.aws.com/claim=";
  ASSERT_EQ(grant.devices.size(), 3U);
  EXPECT_EQ(grant.devices[0].cdi_ids, (std::vector<std::string>{kind + "u-1-neuron-device-2"}));
  EXPECT_EQ(grant.devices[1].cdi_ids,
            (std::vector<std::string>{kind + "u-1-neuron-device-3", kind + "u-1-request-chips"}));
  EXPECT_EQ(grant.devices[2].cdi_ids, (std::vector<std::string>{kind + "u-1-" + efa}));
  EXPECT_EQ(grant.devices[2].pool, "n1");
}

// Write-only is the one mode that the driver does not count as use (docs/reference/driver.md#opening-a-device).
TEST(ClaimGrant, AdminAccessOpensWriteOnlyAndHasANameOfItsOwn) {
  const Node node("trn1.32xlarge");
  PlannedDevice admin = granted(node, {"monitor"}, "neuron-device-2");
  admin.admin_access = true;
  const ClaimGrant grant =
      grant_of_claim(node.facts(), "neuron.aws.com", "u", {granted(node, {"use"}, "neuron-device-2"), admin}, {});
  const json spec = json::parse(grant.cdi_text);
  EXPECT_EQ(spec["devices"][1]["name"], "u-admin-neuron-device-2");
  EXPECT_EQ(spec["devices"][1]["containerEdits"]["deviceNodes"][0]["permissions"], "w");
  EXPECT_EQ(spec["devices"][0]["containerEdits"]["deviceNodes"][0]["permissions"], "rw");
}

// However a verbs node is opened, its ioctls use the interface.
TEST(ClaimGrant, AdminAccessToAnInterfaceGivesNoNode) {
  const Node node("trn1.32xlarge");
  const std::string efa = "efa-" + node.node->efa(0).name;
  PlannedDevice admin = granted(node, {"monitor"}, efa);
  admin.admin_access = true;
  const ClaimGrant grant = grant_of_claim(node.facts(), "d", "u", {admin}, {});
  EXPECT_EQ(grant.cdi_text, "");
  ASSERT_EQ(grant.devices.size(), 1U);
  EXPECT_EQ(grant.devices[0].device, efa);
  EXPECT_TRUE(grant.devices[0].cdi_ids.empty());
}

// An empty containerEdits makes runtimes refuse the whole file.
TEST(ClaimGrant, WhatGivesNothingIsNotInTheFile) {
  auto snapshot = snapshot_of("trn1.32xlarge");
  snapshot->host.efas[0].uverbs.reset();
  const Node node(snapshot);
  const std::string efa = "efa-" + node.node->efa(0).name;
  const ClaimGrant grant = grant_of_claim(node.facts(), "d", "u", {granted(node, {"nics"}, efa)}, {{"nics", {}}});
  EXPECT_EQ(grant.cdi_text, "");
  ASSERT_EQ(grant.devices.size(), 1U);
  EXPECT_TRUE(grant.devices[0].cdi_ids.empty());
}

}  // namespace
}  // namespace neuron::plugin::dra
