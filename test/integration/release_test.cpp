// Hardware comes back to every name soon after the kubelet has released it. The interval of the slow questions is far
// longer than these tests wait.
#include "test/integration/node.h"

namespace neuron::fakes {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

struct Release : testing::Test {
  Node node{"trn1.32xlarge"};
  void SetUp() override {
    node.pod_resources_interval = "10m";
    node.start();
    ASSERT_TRUE(node.wait_allocatable(kCore, 32));
    ASSERT_TRUE(node.wait_allocatable(kNeuron, 16));
    ASSERT_TRUE(node.wait_allocatable(kEfa, 8));  // before it is known, a pod is admitted without it
  }
  [[nodiscard]] Result<sim::PodResult> init_only(const std::string& name) const {
    sim::PodSpec pod;
    pod.name = name;
    pod.containers.push_back({"setup", sim::ContainerKind::init, {{kNeuron, 2}}, {}, {}});
    pod.containers.push_back({"main", sim::ContainerKind::app, {}, {}, {}});
    return node.kubelet->admit(pod);
  }
  // Long enough for the agent to have settled on what it asks and how often.
  [[nodiscard]] bool wait_lists(int more) {
    const int asked = node.kubelet->list_calls();
    return node.kubelet->wait_for([&] { return node.kubelet->list_calls() >= asked + more; }, kPatience);
  }
};

TEST_F(Release, ToTheOtherNameInBothDirections) {
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(node.run("whole", {{kNeuron, 16}}));
    ASSERT_TRUE(node.wait_allocatable(kCore, 0));
    ASSERT_TRUE(wait_lists(2));
    ASSERT_TRUE(node.kubelet->remove("whole"));
    ASSERT_TRUE(node.wait_allocatable(kCore, 32)) << node.agent->log();
    ASSERT_TRUE(node.run("cores", {{kCore, 32}}));
    ASSERT_TRUE(node.wait_allocatable(kNeuron, 0));
    ASSERT_TRUE(node.kubelet->remove("cores"));
    ASSERT_TRUE(node.wait_allocatable(kNeuron, 16)) << node.agent->log();
  }
}

TEST_F(Release, NobodyIsAskedOftenWhileNothingIsWithheld) {
  ASSERT_TRUE(node.run("both", {{kNeuron, 16}, {kCore, 32}}));
  ASSERT_TRUE(wait_lists(1));
  const int asked = node.kubelet->list_calls();
  EXPECT_FALSE(
      node.kubelet->wait_for([&] { return node.kubelet->list_calls() > asked + 1; }, std::chrono::milliseconds(1500)));
}

TEST_F(Release, WhatAnInitContainerHeldWhenItsPodEnds) {
  ASSERT_TRUE(init_only("first"));
  ASSERT_TRUE(init_only("second"));
  ASSERT_TRUE(node.wait_allocatable(kCore, 24));
  ASSERT_TRUE(wait_lists(4)) << "the checkpoint has been rewritten for them as often as it will be";
  ASSERT_TRUE(node.kubelet->remove("first"));
  EXPECT_TRUE(node.wait_allocatable(kCore, 28)) << node.agent->log();
  ASSERT_TRUE(wait_lists(2));
  EXPECT_EQ(node.kubelet->allocatable(kCore), 28) << "the other pod goes on";
  ASSERT_TRUE(node.kubelet->remove("second"));
  EXPECT_TRUE(node.wait_allocatable(kCore, 32)) << node.agent->log();
}

TEST_F(Release, APodRefusedHalfWayByTheKubeletIsSoonForgotten) {
  const auto refused = node.run("greedy", {{kNeuron, 2}, {kEfa, 99}}, {kNeuron, kEfa});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("unavailable for"));
  ASSERT_TRUE(wait_lists(1));
  EXPECT_TRUE(node.wait_allocatable(kCore, 32));
  EXPECT_TRUE(node.run("innocent", {{kCore, 32}}));
}

TEST_F(Release, APodRefusedHalfWayDoesNotSpoilTheNextOne) {
  for (int round = 0; round < 5; ++round) {
    ASSERT_FALSE(node.run("greedy", {{kNeuron, 2}, {kEfa, 99}}, {kNeuron, kEfa}));
    const auto pod = node.run("innocent", {{kCore, 2}, {kNeuron, 1}, {kEfa, 1}}, {kCore, kNeuron, kEfa});
    ASSERT_TRUE(pod) << pod.error().message;
    EXPECT_EQ(env_of(pod), "0-1");
    ASSERT_TRUE(node.kubelet->remove("innocent"));
    ASSERT_FALSE(node.run("greedy", {{kNeuron, 16}, {kEfa, 99}}, {kNeuron, kEfa}));
    const auto cores = node.run("cores", {{kCore, 3}});
    ASSERT_TRUE(cores) << cores.error().message;
    ASSERT_TRUE(node.kubelet->remove("cores"));
    ASSERT_TRUE(node.wait_allocatable(kNeuron, 16));
    ASSERT_TRUE(node.wait_allocatable(kCore, 32));
  }
}

TEST_F(Release, DifferentHardwareInOneContainerIsStillRefused) {
  for (const auto& order : {std::vector<std::string>{kNeuron, kCore}, {kCore, kNeuron}}) {
    const auto pod = node.run("greedy", {{kNeuron, 2}, {kCore, 2}}, order);
    ASSERT_FALSE(pod);
    EXPECT_THAT(pod.error().message, HasSubstr("which are the same hardware"));
  }
}

TEST(Holders, KnownFromARestartAreAskedAfterAsSoonAsOthers) {
  Node node("trn1.32xlarge");
  node.pod_resources_interval = "60s";  // longer than anybody waits here
  node.start();
  ASSERT_TRUE(node.wait_allocatable(kCore, 32));
  ASSERT_TRUE(node.wait_allocatable(kNeuron, 16));
  ASSERT_TRUE(node.run("old", {{kNeuron, 2}}));
  ASSERT_TRUE(node.wait_allocatable(kCore, 28));
  node.agent->signal(SIGKILL);
  ASSERT_TRUE(node.agent->wait(kPatience));
  node.start_agent();
  ASSERT_TRUE(node.kubelet->wait_for([&] { return node.kubelet->registrations(kCore) == 2; }, kPatience));
  ASSERT_TRUE(node.wait_allocatable(kCore, 28));
  ASSERT_TRUE(node.kubelet->remove("old"));
  EXPECT_TRUE(node.wait_allocatable(kCore, 32)) << node.agent->log();
}

struct WithoutList : testing::TestWithParam<fakes::PodResourcesFault> {};

// What the old list said counts no more; the kubelet's checkpoint tells, as the log says.
TEST_P(WithoutList, TheCheckpointTellsWhoHoldsWhat) {
  Node node("trn1.32xlarge");
  node.start();
  ASSERT_TRUE(node.wait_allocatable(kCore, 32));
  ASSERT_TRUE(node.wait_allocatable(kNeuron, 16));
  ASSERT_TRUE(node.run("old", {{kNeuron, 8}}));
  ASSERT_TRUE(node.run("staying", {{kNeuron, 2}}));
  ASSERT_TRUE(node.wait_allocatable(kCore, 12));
  const int asked = node.kubelet->list_calls();
  ASSERT_TRUE(node.kubelet->wait_for([&] { return node.kubelet->list_calls() > asked + 2; }, kPatience));
  ASSERT_TRUE(node.kubelet->set_faults({fakes::RegisterFault::none, GetParam()}));
  ASSERT_TRUE(node.wait_log("PodResources failing, using the checkpoint only")) << node.agent->log();
  ASSERT_TRUE(node.kubelet->remove("old"));
  node.kubelet->update_allocated();  // the kubelet's own release, as at the next admission
  EXPECT_TRUE(node.wait_allocatable(kCore, 28)) << node.agent->log();
  EXPECT_TRUE(node.run("new", {{kCore, 28}}));
  EXPECT_TRUE(node.wait_allocatable(kNeuron, 2)) << "the two that are held through this very name";
  ASSERT_TRUE(node.kubelet->set_faults({}));
  ASSERT_TRUE(node.wait_log("PodResources answering again"));
  EXPECT_TRUE(node.wait_allocatable(kNeuron, 2));
}

INSTANTIATE_TEST_SUITE_P(Kubelet, WithoutList,
                         testing::Values(fakes::PodResourcesFault::error, fakes::PodResourcesFault::hangs,
                                         fakes::PodResourcesFault::oversized, fakes::PodResourcesFault::garbage));

// Without the driver's answers the order of a trn2's cores is assumed: its first two logical cores are the physical
// cores 4 to 7.
TEST(PreStart, NeighboursOnADeviceOfAssumedOrderDoNotHoldBack) {
  Node node("trn2.48xlarge");
  node.host.without(sim::Part::ioctl);
  node.start();
  ASSERT_TRUE(node.wait_allocatable(kCore, 64));
  ASSERT_TRUE(starts(node, "a", {{kCore, 1}}));
  ASSERT_TRUE(starts(node, "b", {{kCore, 1}}));
  for (const char* core : {"neuron0/core4", "neuron0/core5", "neuron0/core6", "neuron0/core7"}) {
    node.host.set(core, std::string(kTensors) + "=4096");
  }
  EXPECT_LT(took([&] { EXPECT_TRUE(starts(node, "c", {{kCore, 1}})); }), seconds(5));
}

TEST(PreStart, ACounterBelowZeroSaysNothing) {
  Node node("trn1.2xlarge");
  node.start();
  ASSERT_TRUE(node.wait_allocatable(kCore, 2));
  node.host.set("neuron0/core0", std::string(kTensors) + "=18446744073709550616");
  EXPECT_LT(took([&] { EXPECT_TRUE(starts(node, "a", {{kCore, 2}})); }), seconds(5));
}

}  // namespace
}  // namespace neuron::fakes
