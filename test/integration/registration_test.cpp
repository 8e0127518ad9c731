// Registration that lasts, seen from the kubelet (docs/reference/kubelet.md#registration).
#include <atomic>
#include <thread>

#include "test/integration/node.h"

namespace neuron::fakes {
namespace {

using testing::HasSubstr;

TEST(Registration, EveryResourceOfEveryKindOfNode) {
  struct Case {
    const char* type;
    int lnc, cores, devices, efas;
  };
  for (const Case& one : {Case{"trn1.32xlarge", 0, 32, 16, 8}, Case{"trn2.48xlarge", 0, 64, 16, 16},
                          Case{"trn2.48xlarge", 1, 128, 16, 16}, Case{"inf2.48xlarge", 0, 24, 12, 0},
                          Case{"inf1.6xlarge", 0, 16, 4, 0}, Case{"p5.48xlarge", 0, 0, 0, 32}}) {
    SCOPED_TRACE(one.type);
    Node node(one.type);
    if (one.lnc != 0) node.host.lnc(one.lnc);
    if (std::string(one.type) == "inf1.6xlarge") node.host.driver("2.24.7.0");
    node.start();
    EXPECT_TRUE(node.wait_allocatable(kCore, one.cores));
    EXPECT_TRUE(node.wait_allocatable(kNeuron, one.devices));
    EXPECT_TRUE(node.wait_allocatable(kEfa, one.efas));
    EXPECT_EQ(node.kubelet->capacity(kNeuronDevice), 0) << "opt-in";
    EXPECT_EQ(node.kubelet->resources().contains(kEfa), one.efas > 0) << "a resource the node lacks is not registered";
  }
}

TEST(Registration, TheAliasIsOptIn) {
  Node node("trn1.2xlarge");
  node.extra_arguments = {"--neurondevice"};
  node.start();
  EXPECT_TRUE(node.wait_allocatable(kNeuronDevice, 1)) << node.agent->log();
}

TEST(Registration, AKubeletThatRestartsGetsEverythingBack) {
  Node node("trn1.32xlarge");
  node.start();
  ASSERT_TRUE(node.wait_allocatable(kNeuron, 16));
  ASSERT_TRUE(node.wait_allocatable(kEfa, 8));
  const auto before = node.run("before", {{kNeuron, 4}});
  ASSERT_TRUE(before);
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(node.kubelet->restart());
    EXPECT_TRUE(node.wait_allocatable(kNeuron, 16)) << node.agent->log();
    EXPECT_TRUE(node.wait_allocatable(kCore, 24)) << "still held through neuron";
    EXPECT_TRUE(node.wait_allocatable(kEfa, 8));
  }
  EXPECT_EQ(node.kubelet->pods().size(), 1U);
  EXPECT_TRUE(node.agent->running());
}

TEST(Registration, AnAgentThatComesBeforeTheKubeletWaitsForIt) {
  Node node("trn1.2xlarge");
  node.host.write();
  node.start_agent();
  ASSERT_TRUE(node.wait_log("kubelet directory unavailable"));
  node.start_kubelet();
  EXPECT_TRUE(node.wait_allocatable(kNeuron, 1)) << node.agent->log();
}

TEST(Registration, TheKubeletsOwnRaceIsSurvived) {
  Node node("trn1.32xlarge");
  node.start();
  ASSERT_TRUE(node.wait_allocatable(kNeuron, 16));
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(node.kubelet->drop_client(kNeuron));
    EXPECT_TRUE(node.kubelet->wait_for([&] { return node.kubelet->registrations(kNeuron) >= round + 2; }, kPatience));
    EXPECT_TRUE(node.wait_allocatable(kNeuron, 16)) << node.agent->log();
  }
}

TEST(Registration, AnAgentThatRestartsKnowsWhoHoldsWhat) {
  Node node("trn1.32xlarge");
  node.start();
  ASSERT_TRUE(node.wait_allocatable(kNeuron, 16));
  ASSERT_TRUE(node.wait_allocatable(kCore, 32));
  ASSERT_TRUE(node.run("holder", {{kNeuron, 1}}));
  for (const int how : {SIGTERM, SIGKILL}) {
    node.agent->signal(how);
    ASSERT_TRUE(node.agent->wait(kPatience));
    ASSERT_TRUE(node.kubelet->wait_for([&] { return !node.kubelet->resource_view(kCore).connected; }, kPatience));
    node.start_agent();
    EXPECT_TRUE(node.wait_allocatable(kNeuron, 16)) << node.agent->log();
    EXPECT_TRUE(node.wait_allocatable(kCore, 30)) << node.agent->log();
  }
  ASSERT_TRUE(node.kubelet->remove("holder"));
  EXPECT_TRUE(node.wait_allocatable(kCore, 32)) << "nobody asks any more who holds what\n" << node.agent->log();
}

TEST(Registration, ASecondAgentSaysSoAndLeavesTheFirstAlone) {
  Node node("trn1.2xlarge");
  node.start();
  ASSERT_TRUE(node.wait_allocatable(kNeuron, 1));
  const std::string other_log = node.kubelet_dir + "/other.log";
  AgentProcess second(node.arguments(), other_log);
  EXPECT_EQ(second.wait(kPatience), 3);
  EXPECT_THAT(second.log(), HasSubstr("another neuron-agent (pid " + std::to_string(node.agent->pid()) + ")"));
  EXPECT_TRUE(node.agent->running());
  EXPECT_EQ(node.kubelet->registrations(kNeuron), 1);
  EXPECT_EQ(node.kubelet->allocatable(kNeuron), 1);
}

TEST(Registration, SigtermEndsStreamsAndLeavesNoSocketBehind) {
  Node node("trn2.48xlarge");
  node.start();
  ASSERT_TRUE(node.wait_allocatable(kNeuron, 16));
  const auto asked = std::chrono::steady_clock::now();
  node.agent->signal(SIGTERM);
  EXPECT_EQ(node.agent->wait(std::chrono::seconds(2)), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - asked, std::chrono::seconds(2));
  EXPECT_TRUE(node.wait_allocatable(kNeuron, 0));
  for (const auto& entry : std::filesystem::directory_iterator(node.kubelet->device_plugin_dir())) {
    EXPECT_THAT(entry.path().filename().string(), testing::Not(HasSubstr("neuron-agent-")));
  }
}

TEST(Registration, SigtermUnderLoadStillEndsInTime) {
  Node node("trn1.32xlarge");
  node.start();
  ASSERT_TRUE(node.wait_allocatable(kCore, 32));
  std::atomic<bool> stop = false;
  std::thread load([&] {
    for (int i = 0; !stop; ++i) {
      static_cast<void>(node.run("p" + std::to_string(i), {{kCore, 1}}));
      static_cast<void>(node.kubelet->remove("p" + std::to_string(i)));
    }
  });
  ASSERT_TRUE(node.wait_log("registered resource=aws.amazon.com/neuroncore"));
  node.agent->signal(SIGTERM);
  EXPECT_EQ(node.agent->wait(std::chrono::seconds(2)), 0) << node.agent->log();
  stop = true;
  load.join();
}

TEST(Registration, AWaitingPreStartHoldsUpNeitherARestartNorTheEnd) {
  Node node("trn1.2xlarge");
  node.start();
  ASSERT_TRUE(node.wait_allocatable(kCore, 2));
  node.host.set("neuron0/core0", "stats/memory_usage/device_mem/tensors/total=4096");
  std::thread admission([&] { static_cast<void>(node.run("follower", {{kCore, 2}})); });  // its start has to wait
  ASSERT_TRUE(node.kubelet->wait_for([&] { return !node.kubelet->pods().empty(); }, kPatience));
  ASSERT_TRUE(node.kubelet->restart());
  EXPECT_TRUE(node.wait_allocatable(kCore, 2)) << node.agent->log();
  node.agent->signal(SIGTERM);
  EXPECT_EQ(node.agent->wait(std::chrono::seconds(2)), 0) << node.agent->log();
  admission.join();
}

}  // namespace
}  // namespace neuron::fakes
