// A node that changes under the agent: faults, healing, hardware that comes and goes (docs/reliability.md).
#include "test/integration/node.h"

namespace neuron::fakes {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Health, ABrokenDeviceLeavesEveryResourceAndReturnsWhenHealed) {
  Node node("trn1.32xlarge");
  node.start();
  ASSERT_TRUE(node.wait_allocatable(kNeuron, 16));
  ASSERT_TRUE(node.wait_allocatable(kCore, 32));
  for (const char* fault : {"sram_ecc_uncorrected=1", "mem_ecc_uncorrected=2"}) {
    node.host.set("neuron3", fault);
    EXPECT_TRUE(node.wait_allocatable(kNeuron, 15)) << node.agent->log();
    EXPECT_TRUE(node.wait_allocatable(kCore, 30));
    EXPECT_EQ(node.kubelet->resource_view(kNeuron).unhealthy, (sim::IdSet{"3"}));
    node.host.set("neuron3", "heal");
    EXPECT_TRUE(node.wait_allocatable(kNeuron, 16)) << node.agent->log();
    EXPECT_TRUE(node.wait_allocatable(kCore, 32));
  }
  EXPECT_TRUE(node.wait_log("unhealthy resource=aws.amazon.com/neuron id=3 reason=sram_ecc_uncorrected"))
      << node.agent->log();
  EXPECT_EQ(node.agent->log().find("unhealthy resource=aws.amazon.com/neuroncore"), std::string::npos)
      << "its device says the same";
}

TEST(Health, AVanishedDeviceStaysListedAsUnhealthy) {
  Node node("trn1.32xlarge");
  node.start();
  ASSERT_TRUE(node.wait_allocatable(kNeuron, 16));
  node.host.set("neuron5", "vanish");
  EXPECT_TRUE(node.wait_allocatable(kNeuron, 15)) << node.agent->log();
  EXPECT_EQ(node.kubelet->capacity(kNeuron), 16);
  EXPECT_EQ(node.kubelet->resource_view(kNeuron).unhealthy, (sim::IdSet{"5"}));
  node.host.set("neuron5", "heal");
  EXPECT_TRUE(node.wait_allocatable(kNeuron, 16)) << node.agent->log();
}

TEST(Health, AnUnboundEfaLeavesAndReturns) {
  Node node("trn1.32xlarge");
  node.start();
  ASSERT_TRUE(node.wait_allocatable(kEfa, 8));
  node.host.set("rdmap16s25", "unbind");
  EXPECT_TRUE(node.wait_allocatable(kEfa, 7)) << node.agent->log();
  node.host.set("rdmap16s25", "heal");
  EXPECT_TRUE(node.wait_allocatable(kEfa, 8)) << node.agent->log();
}

TEST(Health, ACoresOwnErrorLeavesItsSistersAllocatable) {
  Node node("trn1.32xlarge");
  node.start();
  ASSERT_TRUE(node.wait_allocatable(kNeuron, 16));
  ASSERT_TRUE(node.wait_allocatable(kCore, 32));
  node.host.set("neuron3/core1", "hw_nc_ue_error=1");
  EXPECT_TRUE(node.wait_allocatable(kNeuron, 15)) << node.agent->log();
  EXPECT_TRUE(node.wait_allocatable(kCore, 31)) << node.agent->log();
  EXPECT_EQ(node.kubelet->resource_view(kCore).unhealthy, (sim::IdSet{"7"}));
}

TEST(Health, WhatTheKernelLogSaysCountsWhereItIsAskedFor) {
  Node node("trn1.32xlarge");
  node.extra_arguments = {"--kernel-log", "on"};
  node.host.write();
  node.host.set("host", "remove", "dev/kmsg");
  node.start_kubelet().start_agent();
  ASSERT_TRUE(node.wait_allocatable(kNeuron, 16));
  ASSERT_TRUE(node.wait_allocatable(kCore, 32));
  EXPECT_TRUE(node.wait_log("dev/kmsg: No such file")) << "no host has none";
  node.host.set("neuron3", "hw_err=SRAM_UNCORRECTABLE_ERROR");
  EXPECT_TRUE(node.wait_allocatable(kNeuron, 15)) << node.agent->log();
  EXPECT_TRUE(node.wait_allocatable(kCore, 30));
  EXPECT_EQ(node.kubelet->resource_view(kNeuron).unhealthy, (sim::IdSet{"3"}));
  EXPECT_TRUE(node.wait_log("neuron3: the kernel log reports NEURON_HW_ERR=SRAM_UNCORRECTABLE_ERROR"))
      << node.agent->log();
  node.host.set("neuron5/core1", "hw_err=NC_UNCORRECTABLE_ERROR");
  EXPECT_TRUE(node.wait_allocatable(kNeuron, 14)) << node.agent->log();
  EXPECT_TRUE(node.wait_allocatable(kCore, 29)) << "the other core is well";
  node.host.set("neuron3", "heal");
  EXPECT_TRUE(node.wait_allocatable(kNeuron, 15)) << node.agent->log();
  node.host.set("host", "kernel_log=Neuron Driver Started with Version:2.30.2.0-0 at: now");
  EXPECT_TRUE(node.wait_allocatable(kNeuron, 16)) << node.agent->log();
  EXPECT_TRUE(node.wait_allocatable(kCore, 32));
}

TEST(Health, TheKernelLogIsReadAgainAfterARestart) {
  Node node("trn1.32xlarge");
  node.extra_arguments = {"--kernel-log", "on"};
  node.host.write();
  node.host.set("neuron3", "hw_err=DMA_ERROR");
  node.start_kubelet().start_agent();
  ASSERT_TRUE(node.wait_allocatable(kNeuron, 15)) << node.agent->log();
  node.agent->signal(SIGKILL);
  ASSERT_TRUE(node.agent->wait(kPatience));
  node.start_agent();
  EXPECT_TRUE(node.kubelet->wait_for([&] { return node.kubelet->registrations(kNeuron) == 2; }, kPatience));
  EXPECT_TRUE(node.wait_allocatable(kNeuron, 15)) << node.agent->log();
}

TEST(Health, AKernelLogLineWithoutADeviceWithholdsNone) {
  Node node("trn1.32xlarge");
  node.extra_arguments = {"--kernel-log", "on"};
  node.start();
  ASSERT_TRUE(node.wait_allocatable(kNeuron, 16));
  node.host.set("host", "kernel_log=kernel: NEURON_HW_ERR=SRAM_UNCORRECTABLE_ERROR affecting neuron devices");
  EXPECT_TRUE(node.wait_log("unit=node state=unhealthy reason=sram_ecc_uncorrected")) << node.agent->log();
  node.host.set("host", "kernel_log=NEURON_HW_ERR=SRAM_UNCORRECTABLE_ERROR nd-id=16");
  node.host.set("neuron9", "mem_ecc_uncorrected=1");  // a later scan than all of the above
  EXPECT_TRUE(node.wait_allocatable(kNeuron, 15)) << node.agent->log();
  EXPECT_EQ(node.kubelet->resource_view(kNeuron).unhealthy, (sim::IdSet{"9"}));
  node.host.set("host", "heal");
  EXPECT_TRUE(node.wait_allocatable(kNeuron, 16)) << node.agent->log();
  EXPECT_THAT(node.agent->log(), Not(HasSubstr("dev/kmsg: "))) << "it can be read before and after";
}

TEST(Health, HealthFilesThatNoDeviceHasAreMissedOnce) {
  Node node("trn1.32xlarge");
  node.host.write();
  for (int index = 0; index < 16; ++index) {
    const std::string name = "neuron" + std::to_string(index);
    for (const char* file : {"sram_ecc_uncorrected", "mem_ecc_uncorrected", "mem_ecc_repairable_uncorrected",
                             "sram_ecc_corrected", "mem_ecc_corrected"}) {
      node.host.set(name, "remove", file);
    }
  }
  node.start_kubelet().start_agent();
  EXPECT_TRUE(node.wait_allocatable(kNeuron, 16)) << node.agent->log();
  const std::string log = node.agent->log();
  const auto at = log.find("neuron*/stats/hardware/sram_ecc_uncorrected");
  ASSERT_NE(at, std::string::npos) << log;
  EXPECT_EQ(log.find("neuron*/stats/hardware/", at + 1), std::string::npos) << log;
}

TEST(Health, ABareNodeIsCalmAndRegistersWhatAppears) {
  Node node("trn1.32xlarge");
  node.host.without(sim::Part::driver).without(sim::Part::efa);
  node.start();
  ASSERT_TRUE(node.wait_log("nothing is advertised until one appears"));
  EXPECT_TRUE(node.kubelet->resources().empty());
  sim::HostPlan whole;
  whole.instance_type = "trn1.32xlarge";
  ASSERT_TRUE(sim::write_host(whole, node.host.path()));
  EXPECT_TRUE(node.wait_allocatable(kNeuron, 16)) << node.agent->log();
  EXPECT_TRUE(node.agent->running());
}

TEST(Health, AnUnknownDriverLayoutKeepsTheDevicesAndSaysSo) {
  Node node("trn1.32xlarge");
  node.host.driver("2.31.7.0");
  node.start();
  EXPECT_TRUE(node.wait_allocatable(kNeuron, 16)) << node.agent->log();
  EXPECT_TRUE(node.wait_log("layout=unknown")) << node.agent->log();
}

TEST(BadInput, FilesGoneWrongCostAtMostTheirOwnDevice) {
  Node node("trn1.32xlarge");
  node.start();
  ASSERT_TRUE(node.wait_allocatable(kNeuron, 16));
  for (const char* how : {"garbage", "fifo", "unreadable", "huge"}) {
    node.host.set("neuron7", how, "sram_ecc_uncorrected");
    node.host.set("neuron8", how, "mem_ecc_uncorrected");
  }
  node.host.set("neuron9", "mem_ecc_uncorrected=1");  // a later scan than all of the above
  EXPECT_TRUE(node.wait_allocatable(kNeuron, 15)) << node.agent->log();
  EXPECT_EQ(node.kubelet->resource_view(kNeuron).unhealthy, (sim::IdSet{"9"}));
  EXPECT_TRUE(node.run("still", {{kNeuron, 15}}));
}

TEST(BadInput, AKubeletThatAnswersNonsenseOrNeverIsOutlived) {
  for (const auto fault : {fakes::RegisterFault::error, fakes::RegisterFault::closes}) {
    Node node("trn1.2xlarge");
    node.host.write();
    fakes::FakeKubeletOptions options;
    options.faults.registration = fault;
    node.start_kubelet(options).start_agent();
    ASSERT_TRUE(node.wait_log("registration failed, retrying")) << node.agent->log();
    EXPECT_TRUE(node.agent->running());
    ASSERT_TRUE(node.kubelet->set_faults({}));
    EXPECT_TRUE(node.wait_allocatable(kNeuron, 1)) << node.agent->log();
  }
}

TEST(BadInput, AKubeletThatNeverAnswersDoesNotHoldUpTheEnd) {
  Node node("trn1.2xlarge");
  node.host.write();
  fakes::FakeKubeletOptions options;
  options.faults.registration = fakes::RegisterFault::hangs;
  node.start_kubelet(options).start_agent();
  ASSERT_TRUE(node.wait_log("node instance-type=trn1.2xlarge"));
  node.agent->signal(SIGTERM);
  EXPECT_EQ(node.agent->wait(std::chrono::seconds(2)), 0) << node.agent->log();
}

TEST(BadInput, PodResourcesThatFailsFallsBackToTheCheckpoint) {
  for (const auto fault :
       {fakes::PodResourcesFault::error, fakes::PodResourcesFault::hangs, fakes::PodResourcesFault::garbage}) {
    Node node("trn1.32xlarge");
    node.host.write();
    node.start_kubelet().start_agent();
    ASSERT_TRUE(node.wait_allocatable(kCore, 32));
    ASSERT_TRUE(node.wait_allocatable(kNeuron, 16));
    ASSERT_TRUE(node.run("holder", {{kNeuron, 1}}));
    node.agent->signal(SIGKILL);
    ASSERT_TRUE(node.agent->wait(kPatience));
    fakes::KubeletFaults faults;
    faults.pod_resources = fault;
    ASSERT_TRUE(node.kubelet->set_faults(faults));
    node.start_agent();
    EXPECT_TRUE(node.wait_log("using the checkpoint only")) << node.agent->log();
    EXPECT_TRUE(node.kubelet->wait_for([&] { return node.kubelet->registrations(kCore) == 2; }, kPatience));
    EXPECT_TRUE(node.wait_allocatable(kCore, 30)) << node.agent->log();
  }
}

TEST(BadInput, UnusableFlagsAreUsageErrors) {
  Node node("trn1.2xlarge");
  for (const std::vector<std::string>& bad :
       {std::vector<std::string>{"--scan-interval", "5"}, {"--core-numbering", "both"}, {"--nonsense"}}) {
    AgentProcess agent(bad, node.log_path());
    EXPECT_EQ(agent.wait(kPatience), 2);
  }
  AgentProcess agent({"--root", "/nonexistent"}, node.log_path());
  EXPECT_EQ(agent.wait(kPatience), 1);
  EXPECT_THAT(agent.log(), HasSubstr("/nonexistent"));
}

}  // namespace
}  // namespace neuron::fakes
