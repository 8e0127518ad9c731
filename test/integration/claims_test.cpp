// The real agent in DRA mode, between a kubelet and an API server that behave.
#include "test/integration/claims_node.h"

#include "plugin/kubelet/instance_lock.h"

namespace neuron::fakes {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST(Claims, RegistersWithHealthAndEndsAsAsked) {
  ClaimsNode node("trn1.32xlarge");
  node.start();
  ASSERT_TRUE(node.wait_registered()) << node.agent->log();
  EXPECT_TRUE(node.wait_for([&] { return node.kubelet->health().contains("node-1/neuron-device-0"); }))
      << node.agent->log();
  const auto begun = std::chrono::steady_clock::now();
  node.agent->signal(SIGTERM);
  EXPECT_EQ(node.agent->wait(kLong), 0) << node.agent->log();
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(5));
  EXPECT_TRUE(std::filesystem::is_empty(node.kubelet_dir + "/plugins_registry"));
}

TEST(Claims, OneModePerNode) {
  ClaimsNode node("trn1.2xlarge");
  node.host.write();
  const auto plugin = plugin::InstanceLock::take(node.kubelet_dir + "/device-plugins");
  ASSERT_TRUE(plugin);
  node.start_agent();
  EXPECT_EQ(node.agent->wait(kLong), 3);
  EXPECT_THAT(node.agent->log(), HasSubstr("in device-plugin mode"));
}

}  // namespace
}  // namespace neuron::fakes
