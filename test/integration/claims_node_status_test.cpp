// Labels, conditions and events in DRA mode, by the client that slices and claims go by.
#include "test/fakes/tcp_client.h"
#include "test/integration/claims_node.h"

namespace neuron::fakes {
namespace {

TEST(ClaimsNodeStatus, AFaultAndItsEndAreTold) {
  ClaimsNode node("trn1.32xlarge");
  node.extra_arguments = {"--node-status", "on", "--accelerated-hardware-ready"};
  node.host.write();
  node.host.set("neuron3", "sram_ecc_uncorrected=1");  // so that it does not wait at the start
  node.kubelet.emplace(node.kubelet_dir);
  node.start_agent();
  const auto statuses = [&node] {
    std::string said;
    const ClaimsNode::Json object = node.get("/api/v1/nodes/node-1");
    const auto conditions = object.value("/status/conditions"_json_pointer, ClaimsNode::Json::array());
    for (const auto& one : conditions) said += one.value("type", "") + "=" + one.value("status", "") + " ";
    return said;
  };
  EXPECT_TRUE(node.wait_for([&] { return statuses() == "NeuronHealth=True AcceleratedHardwareReady=False "; }))
      << node.agent->log();
  EXPECT_TRUE(node.wait_registered());
  node.host.set("neuron3", "heal");
  EXPECT_TRUE(node.wait_for([&] { return statuses() == "NeuronHealth=False AcceleratedHardwareReady=True "; }))
      << node.agent->log();
  EXPECT_TRUE(node.wait_for([&] { return !node.slices().empty(); }));
  const auto begin = std::chrono::steady_clock::now();
  node.agent->signal(SIGTERM);
  EXPECT_EQ(node.agent->wait(kLong), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

// A kubelet that is too old for claims never takes the driver.
TEST(ClaimsNodeStatus, WhatIsTooOldIsNamedWithoutARegistration) {
  ClaimsNode node("trn1.32xlarge");
  node.extra_arguments = {"--metrics-address", "127.0.0.1:0"};
  node.remove("/api/v1/nodes/node-1");
  node.put("/api/v1/nodes",
           {{"metadata", {{"name", "node-1"}}}, {"status", {{"nodeInfo", {{"kubeletVersion", "v1.33.5"}}}}}});
  node.host.write();
  node.start_agent();
  const std::string why = "this node's kubelet is 1.33.5: dynamic resource allocation needs 1.34.2";
  EXPECT_TRUE(node.wait_for([&] { return node.agent->log().find(why) != std::string::npos; })) << node.agent->log();
  const std::string said = "probe server listening address=127.0.0.1:";
  ASSERT_TRUE(node.wait_for([&] { return node.agent->log().find(said) != std::string::npos; }));
  const std::string log = node.agent->log();
  const auto port = static_cast<std::uint16_t>(std::stoi(log.substr(log.find(said) + said.size())));
  EXPECT_TRUE(node.wait_for([&] { return http_get(port, "/readyz").body.find(why) != std::string::npos; }));
}

// Whoever publishes slices reads the Node for its uid.
TEST(ClaimsNodePlace, MetricsSayInWhichZoneItIs) {
  ClaimsNode node("trn1.32xlarge");
  node.extra_arguments = {"--metrics-address", "127.0.0.1:0"};
  const ClaimsNode::Json labels{{"topology.kubernetes.io/zone", "us-east-1a"},
                                {"topology.kubernetes.io/region", "us-east-1"}};
  ASSERT_TRUE(node.api.call({.method = kube::Method::merge_patch,
                             .path = "/api/v1/nodes/node-1",
                             .body = ClaimsNode::Json{{"metadata", {{"labels", labels}}}}.dump()}));
  node.start();
  EXPECT_TRUE(node.wait_for([&] { return !node.slices().empty(); })) << node.agent->log();
  const std::string said = "probe server listening address=127.0.0.1:";
  ASSERT_TRUE(node.wait_for([&] { return node.agent->log().find(said) != std::string::npos; }));
  const std::string log = node.agent->log();
  const auto port = static_cast<std::uint16_t>(std::stoi(log.substr(log.find(said) + said.size())));
  const std::string place = R"(availability_zone="us-east-1a",region="us-east-1")";
  EXPECT_TRUE(node.wait_for([&] { return http_get(port, "/metrics").body.find(place) != std::string::npos; }));
}

}  // namespace
}  // namespace neuron::fakes
