// What the real agent in DRA mode shows of claims: /node, and their status.
#include "test/fakes/tcp_client.h"
#include "test/integration/claims_node.h"
#include "test/integration/metrics_port.h"

namespace neuron::fakes {
namespace {

using Json = nlohmann::json;

TEST(ClaimsDocument, ShowsClaimsWhosePodsTheKubeletHasNotNamed) {
  ClaimsNode node("trn1.32xlarge");
  node.extra_arguments = {"--metrics-address", "127.0.0.1:0"};
  node.start();
  ASSERT_TRUE(node.wait_registered()) << node.agent->log();
  ASSERT_TRUE(node.wait_for([&] { return !node.slices().empty(); })) << node.agent->log();
  const std::uint16_t port = metrics_port(*node.agent);
  const auto pods = [port] { return Json::parse(http_get(port, "/node").body).at("pods"); };
  EXPECT_TRUE(node.wait_for([&] { return pods() == Json::array(); })) << pods();
  node.put("/api/v1/namespaces/team/pods", pod_of("train"));
  const Json stored = node.put(kClaims, allocated("train", {"neuron-device-4", "neuron-device-5"}));
  const FakeDraKubelet::Claim claim{"team", "train", stored.at("metadata").at("uid").get<std::string>()};
  const auto prepared = node.kubelet->prepare(kDriver, {claim});
  ASSERT_EQ(prepared.claims.at(claim.uid).error, "") << node.agent->log();
  ASSERT_TRUE(node.wait_for([&] { return pods().size() == 1; })) << pods();
  const Json held = pods().at(0);
  EXPECT_EQ(held.at("claim"), "train");
  EXPECT_EQ(held.at("claim_namespace"), "team");
  EXPECT_TRUE(held.at("pod").is_null()) << held;
  EXPECT_EQ(held.at("devices"), (Json{4, 5}));
  EXPECT_EQ(held.at("core_ids"), (Json{8, 9, 10, 11}));
  const Json devices = Json::parse(http_get(port, "/node").body).at("devices");
  EXPECT_EQ(devices.at(4).at("pods"), Json{"unknown"});
}

TEST(ClaimsDocument, StatusOfAClaimNamesWhatItHas) {
  ClaimsNode node("trn1.32xlarge");
  node.extra_arguments = {"--dra-claim-status", "on"};
  node.start();
  ASSERT_TRUE(node.wait_registered()) << node.agent->log();
  node.put("/api/v1/namespaces/team/pods", pod_of("train"));
  const Json stored = node.put(kClaims, allocated("train", {"neuron-device-4"}));
  const FakeDraKubelet::Claim claim{"team", "train", stored.at("metadata").at("uid").get<std::string>()};
  ASSERT_EQ(node.kubelet->prepare(kDriver, {claim}).claims.at(claim.uid).error, "") << node.agent->log();
  const auto shown = [&] { return node.get(std::string(kClaims) + "/train").at("status").value("devices", Json()); };
  ASSERT_TRUE(node.wait_for([&] { return !shown().is_null(); })) << node.agent->log();
  EXPECT_EQ(shown().at(0).at("device"), "neuron-device-4");
  EXPECT_EQ(shown().at(0).at("data"), Json({{"deviceNodes", {"/dev/neuron4"}}, {"cores", "8-9"}}));
}

}  // namespace
}  // namespace neuron::fakes
