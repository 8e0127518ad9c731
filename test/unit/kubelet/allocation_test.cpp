#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>

#include "test/unit/kubelet/chips_node.h"

namespace neuron::sim::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

TEST(AllocationTest, AContainerGetsWhatThePluginAnswers) {
  Node node(4);
  const auto pod = node.kubelet->admit(pod_of("train", {{kChip, 2}}));
  ASSERT_TRUE(pod.has_value()) << pod.error().message;
  ASSERT_THAT(pod->containers, SizeIs(1));
  const ContainerGrant& main = pod->containers[0];
  ASSERT_THAT(main.ids.at(kChip), SizeIs(2));
  EXPECT_THAT(
      main.devices,
      UnorderedElementsAre(DeviceNode{"/dev/test" + main.ids.at(kChip)[0], "/dev/test" + main.ids.at(kChip)[0], "rw"},
                           DeviceNode{"/dev/test" + main.ids.at(kChip)[1], "/dev/test" + main.ids.at(kChip)[1], "rw"}));
  EXPECT_EQ(node.kubelet->resource_view(kChip).in_use, 2);
}

TEST(AllocationTest, ZeroUnitsCauseNoCall) {
  Node node(4);
  const auto pod = node.kubelet->admit(pod_of("idle", {{kChip, 0}}));
  ASSERT_TRUE(pod.has_value()) << pod.error().message;
  EXPECT_THAT(pod->containers[0].ids, IsEmpty());
  EXPECT_THAT(node.chips.allocations(), IsEmpty());
}

TEST(AllocationTest, ZeroUnitsAreRefusedWhenNothingIsHealthy) {
  Node node(2);
  node.chips.set_devices({{"0", false}, {"1", false}});
  ASSERT_TRUE(node.kubelet.reaches(kChip, 0));
  const auto pod = node.kubelet->admit(pod_of("idle", {{kChip, 0}}));
  ASSERT_FALSE(pod.has_value());
  EXPECT_EQ(pod.error().message,
            "Pod was rejected: Allocate failed due to no healthy devices present; cannot allocate unhealthy devices "
            "example.com/chip, which is unexpected");
}

TEST(AllocationTest, AnUnregisteredResourceIsIgnored) {
  KubeletTest kubelet;
  const auto pod = kubelet->admit(pod_of("early", {{kChip, 2}}));
  ASSERT_TRUE(pod.has_value()) << pod.error().message;
  EXPECT_THAT(pod->containers[0].unserved, ElementsAre(kChip));
}

TEST(AllocationTest, RefusesMoreThanThereIs) {
  Node node(4);
  ASSERT_TRUE(node.kubelet->admit(pod_of("a", {{kChip, 3}})).has_value());
  const auto pod = node.kubelet->admit(pod_of("b", {{kChip, 2}}));
  ASSERT_FALSE(pod.has_value());
  EXPECT_THAT(pod.error().message, HasSubstr("requested number of devices unavailable for example.com/chip. "
                                             "Requested: 2, Available: 1"));
  EXPECT_THAT(node.kubelet->pods(), SizeIs(1));
}

TEST(AllocationTest, AnErrorOfAllocateFailsThePodAndFreesItsDevices) {
  Behaviour behaviour;
  behaviour.on_allocate = [](const auto&, auto&) { return grpc::Status(grpc::FAILED_PRECONDITION, "core 3 is held"); };
  Node node(4, 0, behaviour);
  const auto pod = node.kubelet->admit(pod_of("a", {{kChip, 3}}));
  ASSERT_FALSE(pod.has_value());
  EXPECT_EQ(pod.error().message,
            "Pod was rejected: Allocate failed due to rpc error: code = FailedPrecondition desc = core 3 is held, "
            "which is unexpected");
  EXPECT_EQ(node.kubelet->resource_view(kChip).in_use, 0);
}

TEST(AllocationTest, AnAnswerWithoutAContainerIsAnError) {
  Behaviour behaviour;
  behaviour.on_allocate = [](const auto&, auto&) { return grpc::Status::OK; };
  Node node(4, 0, behaviour);
  const auto pod = node.kubelet->admit(pod_of("a", {{kChip, 1}}));
  ASSERT_FALSE(pod.has_value());
  EXPECT_THAT(pod.error().message, HasSubstr("no containers return in allocation response"));
}

TEST(AllocationTest, ReadsOnlyTheFirstContainerResponse) {
  Behaviour behaviour;
  behaviour.on_allocate = [](const auto&, v1beta1::AllocateResponse& answer) {
    (*answer.add_container_responses()->mutable_envs())["FIRST"] = "1";
    (*answer.add_container_responses()->mutable_envs())["SECOND"] = "2";
    return grpc::Status::OK;
  };
  Node node(4, 0, behaviour);
  const auto pod = node.kubelet->admit(pod_of("a", {{kChip, 1}}));
  ASSERT_TRUE(pod.has_value());
  EXPECT_EQ(pod->containers[0].env, (std::map<std::string, std::string>{{"FIRST", "1"}}));
}

TEST(AllocationTest, TheAnswersOfTwoResourcesAreMergedFirstOneWins) {
  KubeletTest kubelet;
  const auto says = [](const std::string& value) {
    Behaviour behaviour;
    behaviour.on_allocate = [value](const auto&, v1beta1::AllocateResponse& answer) {
      auto* container = answer.add_container_responses();
      (*container->mutable_envs())["VISIBLE"] = value;
      (*container->mutable_envs())["OWN_" + value] = "yes";
      auto* device = container->add_devices();
      device->set_container_path("/dev/shared");
      device->set_host_path("/dev/" + value);
      container->add_cdi_devices()->set_name("example.com/chip=0");
      return grpc::Status::OK;
    };
    return behaviour;
  };
  TestPlugin chips(*kubelet, kChip, "chip.sock", numbered_devices(2), says("chip"));
  TestPlugin nics(*kubelet, kNic, "nic.sock", numbered_devices(2), says("nic"));
  ASSERT_TRUE(chips.register_plugin().ok() && nics.register_plugin().ok());
  ASSERT_TRUE(kubelet.reaches(kChip, 2) && kubelet.reaches(kNic, 2));
  PodSpec pod = pod_of("both", {{kChip, 1}, {kNic, 1}});
  pod.containers[0].order = {kNic, kChip};
  const auto result = kubelet->admit(pod);
  ASSERT_TRUE(result.has_value()) << result.error().message;
  const ContainerGrant& main = result->containers[0];
  EXPECT_EQ(main.env.at("VISIBLE"), "nic");
  EXPECT_THAT(main.env, SizeIs(3));
  EXPECT_THAT(main.devices, ElementsAre(DeviceNode{"/dev/shared", "/dev/nic", ""}));
  EXPECT_THAT(main.cdi_names, ElementsAre("example.com/chip=0"));
  EXPECT_THAT(main.conflicts, SizeIs(2));
}

TEST(AllocationTest, TheOrderOfResourcesAndIdsIsRandomButRepeatable) {
  const auto orders = [](unsigned seed) {
    FakeKubeletOptions options;
    options.seed = seed;
    std::vector<std::string> steps;
    options.on_step = [&](AdmissionStep step, const std::string& resource) {
      if (step == AdmissionStep::before_allocate) steps.push_back(resource);
    };
    KubeletTest kubelet(options);
    TestPlugin chips(*kubelet, kChip, "chip.sock", numbered_devices(16));
    TestPlugin nics(*kubelet, kNic, "nic.sock", numbered_devices(16));
    EXPECT_TRUE(chips.register_plugin().ok() && nics.register_plugin().ok());
    EXPECT_TRUE(kubelet.reaches(kChip, 16) && kubelet.reaches(kNic, 16));
    for (int i = 0; i < 8; ++i) {
      EXPECT_TRUE(kubelet->admit(pod_of(std::to_string(i), {{kChip, 2}, {kNic, 2}})).has_value());
    }
    return std::pair(steps, chips.allocations());
  };
  const auto first = orders(7);
  EXPECT_EQ(first, orders(7));
  const auto count_first = [&](const char* resource) {
    int count = 0;
    for (std::size_t i = 0; i < first.first.size(); i += 2) count += first.first[i] == resource ? 1 : 0;
    return count;
  };
  EXPECT_GT(count_first(kChip), 0);
  EXPECT_GT(count_first(kNic), 0);
  EXPECT_TRUE(std::any_of(first.second.begin(), first.second.end(),
                          [](const auto& ids) { return !std::is_sorted(ids.begin(), ids.end()); }));
}

TEST(PreferenceTest, WithoutAffinityEverythingFreeIsOffered) {
  Node node(4, 2, prefers({"3", "1"}));
  const auto pod = node.kubelet->admit(pod_of("a", {{kChip, 2}}));
  ASSERT_TRUE(pod.has_value());
  EXPECT_THAT(pod->containers[0].ids.at(kChip), ElementsAre("1", "3"));
  ASSERT_THAT(node.chips.preferences(), SizeIs(1));
  const auto asked = node.chips.preferences()[0];
  EXPECT_THAT(strings(asked.available_deviceids()), UnorderedElementsAre("0", "1", "2", "3"));
  EXPECT_THAT(strings(asked.must_include_deviceids()), IsEmpty());
  EXPECT_EQ(asked.allocation_size(), 2);
}

TEST(PreferenceTest, AnswersAreCutToTheOfferAndFilled) {
  Node node(4, 0, prefers({"unknown", "2"}));
  const auto pod = node.kubelet->admit(pod_of("a", {{kChip, 2}}));
  ASSERT_TRUE(pod.has_value());
  EXPECT_THAT(pod->containers[0].ids.at(kChip), SizeIs(2));
  EXPECT_THAT(pod->containers[0].ids.at(kChip), ::testing::Contains("2"));
  EXPECT_THAT(pod->containers[0].ids.at(kChip), ::testing::Not(::testing::Contains("unknown")));
}

TEST(PreferenceTest, FewerThanAlignedAsksOnlyForAligned) {
  Node node(4, 2, prefers({"0", "3"}));  // 0 and 1 on node 0, 2 and 3 on node 1
  PodSpec pod = pod_of("a", {{kChip, 1}});
  pod.containers[0].numa_affinity = std::set<int>{1};
  const auto result = node.kubelet->admit(pod);
  ASSERT_TRUE(result.has_value());
  EXPECT_THAT(strings(node.chips.preferences().at(0).available_deviceids()), UnorderedElementsAre("2", "3"));
  EXPECT_THAT(result->containers[0].ids.at(kChip), ElementsAre("3"));  // 0 is cut
}

TEST(PreferenceTest, IsNotAskedWhenAllAlignedAreNeeded) {
  Node node(4, 2, prefers({"0", "1"}));
  PodSpec pod = pod_of("a", {{kChip, 2}});
  pod.containers[0].numa_affinity = std::set<int>{1};
  const auto result = node.kubelet->admit(pod);
  ASSERT_TRUE(result.has_value());
  EXPECT_THAT(node.chips.preferences(), IsEmpty());
  EXPECT_THAT(result->containers[0].ids.at(kChip), ElementsAre("2", "3"));
}

TEST(PreferenceTest, MoreThanAlignedMustIncludeTheAligned) {
  Node node(4, 2, prefers({"2", "3", "1"}));
  PodSpec pod = pod_of("a", {{kChip, 3}});
  pod.containers[0].numa_affinity = std::set<int>{1};
  const auto result = node.kubelet->admit(pod);
  ASSERT_TRUE(result.has_value());
  const auto asked = node.chips.preferences().at(0);
  EXPECT_THAT(strings(asked.available_deviceids()), UnorderedElementsAre("0", "1", "2", "3"));
  EXPECT_THAT(strings(asked.must_include_deviceids()), UnorderedElementsAre("2", "3"));
  EXPECT_EQ(asked.allocation_size(), 3);
  EXPECT_THAT(result->containers[0].ids.at(kChip), ElementsAre("1", "2", "3"));
}

TEST(PreferenceTest, AnErrorFailsThePodAndLeaksWhatWasTaken) {
  Node node(4, 2, refuses_preference());
  PodSpec pod = pod_of("a", {{kChip, 3}});
  pod.containers[0].numa_affinity = std::set<int>{1};
  const auto result = node.kubelet->admit(pod);
  ASSERT_FALSE(result.has_value());
  EXPECT_THAT(result.error().message, HasSubstr("device plugin GetPreferredAllocation rpc failed with err: rpc error: "
                                                "code = Internal desc = cannot choose"));
  EXPECT_EQ(node.kubelet->resource_view(kChip).in_use, 2);
  EXPECT_THAT(node.kubelet->admit(pod_of("b", {{kChip, 4}})).error().message, HasSubstr("Requested: 4, Available: 2"));
}

TEST(NumaPolicyTest, SingleNumaNodeAlignsOrRefuses) {
  FakeKubeletOptions options;
  options.numa_policy = NumaPolicy::single_numa_node;
  Node node(4, 2, {}, options);
  const auto pod = node.kubelet->admit(pod_of("a", {{kChip, 2}}));
  ASSERT_TRUE(pod.has_value());
  EXPECT_THAT(pod->containers[0].ids.at(kChip), ElementsAre("0", "1"));
  EXPECT_EQ(node.kubelet->admit(pod_of("wide", {{kChip, 3}})).error().code, ErrorCode::failed_precondition);
  ASSERT_TRUE(node.kubelet->admit(pod_of("b", {{kChip, 1}})).has_value());
  ASSERT_TRUE(node.kubelet->remove("a").has_value());
  const auto wide = node.kubelet->admit(pod_of("wide", {{kChip, 3}}));
  ASSERT_FALSE(wide.has_value());
  EXPECT_EQ(wide.error().message, "Pod was rejected: Resources cannot be allocated with Topology locality");
}

}  // namespace
}  // namespace neuron::sim::test
