// A node that came to serve the device plugin while pods still hold hardware by claims: the kubelet's device manager
// takes it for free.
#include <fstream>

#include "test/integration/node.h"

namespace neuron::fakes {
namespace {

struct ClaimsNode : testing::Test {
  Node node{"trn1.32xlarge"};

  void SetUp() override {
    node.host.write();
    node.start_kubelet();
  }
  void admit() {
    sim::PodSpec pod{"train", "team", {sim::ContainerSpec{"main"}, sim::ContainerSpec{"side"}}};
    for (sim::ContainerSpec& container : pod.containers) {
      container.claims["chips"] = {"neuron-group-4-7", "neuron-device-9-core-1", "efa-rdmap16s25"};
    }
    ASSERT_TRUE(node.kubelet->admit(pod));
  }
  [[nodiscard]] bool offered(int devices, int cores, int efas) {
    return node.wait_allocatable(kNeuron, devices) && node.wait_allocatable(kCore, cores) &&
           node.wait_allocatable(kEfa, efas);
  }
};

struct HeldClaims : ClaimsNode {
  void SetUp() override {
    ClaimsNode::SetUp();
    admit();
    node.start_agent();
  }
};

TEST_F(HeldClaims, WhatPodsHoldByClaimIsGivenToNobodyUntilTheyEnd) {
  ASSERT_TRUE(offered(11, 23, 7)) << node.agent->log();
  EXPECT_EQ(node.kubelet->capacity(kNeuron), 16);
  EXPECT_FALSE(node.run("late", {{kNeuron, 12}}));
  const auto rest = node.run("rest", {{kNeuron, 11}, {kEfa, 7}});
  ASSERT_TRUE(rest) << rest.error().message;
  EXPECT_THAT(rest->containers[0].ids.at(kNeuron), testing::Not(testing::Contains("9")));
  ASSERT_TRUE(node.kubelet->remove("train", "team"));
  EXPECT_TRUE(offered(16, 10, 8)) << node.agent->log();
}

TEST_F(HeldClaims, AnAgentThatIsStartedAgainKnowsThemBeforeItsFirstList) {
  ASSERT_TRUE(offered(11, 23, 7)) << node.agent->log();
  node.agent->signal(SIGKILL);
  ASSERT_TRUE(node.agent->wait(kPatience));
  const int before = node.kubelet->registrations(kNeuron);
  node.start_agent();
  ASSERT_TRUE(node.kubelet->wait_for([&] { return node.kubelet->registrations(kNeuron) > before; }, kPatience));
  EXPECT_TRUE(offered(11, 23, 7)) << node.agent->log();
  EXPECT_EQ(node.agent->log().find("available again"), std::string::npos);
}

TEST_F(HeldClaims, WhileTheKubeletDoesNotTellTheyStayHeld) {
  ASSERT_TRUE(offered(11, 23, 7)) << node.agent->log();
  fakes::KubeletFaults faults;
  faults.pod_resources = fakes::PodResourcesFault::error;
  ASSERT_TRUE(node.kubelet->set_faults(faults));
  ASSERT_TRUE(node.wait_log("PodResources failing, using the checkpoint only")) << node.agent->log();
  node.host.set("neuron0", "sram_ecc_uncorrected=1");  // makes a list
  EXPECT_TRUE(offered(10, 21, 7)) << node.agent->log();
  ASSERT_TRUE(node.kubelet->remove("train", "team"));
  ASSERT_TRUE(node.kubelet->set_faults({}));
  EXPECT_TRUE(offered(15, 30, 8)) << node.agent->log();
}

// Outside a pod, with a kubelet that has just started: its first lists are empty, its record of claims is not.
TEST_F(ClaimsNode, AKubeletThatListsItsClaimsLateIsWaitedFor) {
  std::ofstream(node.kubelet_dir + "/dra_manager_state") << R"({"Data":"[{\"ClaimUID\":\"u1\"}]","Checksum":1})";
  node.start_agent();
  ASSERT_TRUE(node.kubelet->wait_for([&] { return node.kubelet->list_calls() >= 2; }, kPatience)) << node.agent->log();
  EXPECT_EQ(node.kubelet->registrations(kNeuron), 0);
  admit();
  EXPECT_TRUE(offered(11, 23, 7)) << node.agent->log();
  EXPECT_EQ(node.kubelet->registrations(kNeuron), 1);
  EXPECT_EQ(node.agent->log().find("claim holders unknown"), std::string::npos) << node.agent->log();
}

}  // namespace
}  // namespace neuron::fakes
