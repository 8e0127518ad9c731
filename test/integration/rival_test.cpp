// Another plugin of one of our resources: what it leaves behind in the kubelet when it ends
// (docs/reference/kubelet.md#end-of-a-watch).
#include "test/integration/node.h"
#include "test/unit/kubelet/test_plugin.h"

namespace neuron::fakes {
namespace {

using sim::test::numbered_devices;
using sim::test::TestDevice;
using sim::test::TestPlugin;

struct Rival : testing::Test {
  Node node{"trn1.32xlarge"};
  std::optional<TestPlugin> rival;

  void SetUp() override {
    node.start();
    ASSERT_TRUE(node.wait_allocatable(kEfa, 8));
  }
  void TearDown() override { rival.reset(); }

  void come(std::vector<TestDevice> devices) {
    rival.emplace(*node.kubelet, kEfa, "efa-rival.sock", std::move(devices));
    ASSERT_TRUE(rival->register_plugin().ok());
    ASSERT_TRUE(rival->wait_for([&] { return rival->open_streams() == 1; }));
  }
  // The kubelet asks us again, so that a pod gets its interface.
  void expect_served(int efas) {
    EXPECT_TRUE(node.kubelet->wait_for(
        [&] { return node.kubelet->resource_view(kEfa).connected && node.kubelet->allocatable(kEfa) == efas; },
        kPatience))
        << node.agent->log();
    EXPECT_TRUE(node.run("pod", {{kEfa, 1}})) << node.agent->log();
    EXPECT_TRUE(node.wait_log("registration lost to another plugin, registering again resource=vpc.amazonaws.com/efa"))
        << node.agent->log();
    EXPECT_TRUE(node.wait_log("efa-rival.sock")) << node.agent->log();
  }
};

TEST_F(Rival, OneThatLeavesIsFollowedByUs) {
  come(numbered_devices(4));
  ASSERT_TRUE(node.wait_allocatable(kEfa, 4));
  rival.reset();
  expect_served(8);
}

// As after a SIGKILL, there is no sign in the directory; only the kubelet's list tells.
TEST_F(Rival, OneWhoseSocketStaysIsNoticedByTheKubeletsList) {
  come(numbered_devices(4));
  ASSERT_TRUE(node.wait_allocatable(kEfa, 4));
  rival->end_streams();
  expect_served(8);
  EXPECT_EQ(node.kubelet->registrations(kNeuron), 1) << "the other resources are left alone";
}

// It offers the same ids, and a list of ours makes the devices look well again after its end.
TEST_F(Rival, OneThatEndsBehindAListOfOursIsNoticedByItsSocket) {
  std::vector<TestDevice> same;
  for (const std::string& id : node.kubelet->resource_view(kEfa).healthy) same.push_back({id});
  come(same);
  node.host.set("rdmap16s25", "unbind");
  rival.reset();
  ASSERT_TRUE(node.wait_allocatable(kEfa, 7)) << "published by us, though the kubelet asks nobody";
  expect_served(7);
}

// Both live, with the same ids: no list and no socket shows which of them the kubelet asks; what it gives does.
TEST_F(Rival, OneWithTheSameIdsThatStaysIsNoticedByWhatItGives) {
  std::vector<TestDevice> same;
  for (const std::string& id : node.kubelet->resource_view(kEfa).healthy) same.push_back({id});
  come(same);
  const auto until = std::chrono::steady_clock::now() + kPatience;
  const auto is_ours = [&] {
    const std::size_t before = rival->allocations().size();
    const auto pod = node.run("pod", {{kEfa, 1}});
    EXPECT_TRUE(!pod || node.kubelet->remove("pod"));
    return pod && rival->allocations().size() == before;
  };
  EXPECT_FALSE(is_ours()) << "the kubelet asks the one that registered last";
  bool ours = false;
  while (!ours && std::chrono::steady_clock::now() < until) ours = is_ours();
  EXPECT_TRUE(ours) << node.agent->log();
  EXPECT_TRUE(
      node.wait_log("registration lost to another plugin, registering again resource=vpc.amazonaws.com/efa: container "
                    "main of the pod with uid "))
      << node.agent->log();
  EXPECT_TRUE(node.wait_log("efa-rival.sock")) << node.agent->log();
  EXPECT_EQ(node.kubelet->registrations(kNeuron), 1) << "the other resources are left alone";
}

}  // namespace
}  // namespace neuron::fakes
