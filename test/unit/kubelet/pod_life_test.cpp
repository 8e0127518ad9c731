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

TEST(InitContainerTest, AppContainersReuseItsDevices) {
  Node node(4);
  PodSpec pod = pod_of("a", {{kChip, 3}});
  pod.containers.push_back({"setup", ContainerKind::init, {{kChip, 2}}});
  const auto result = node.kubelet->admit(pod);
  ASSERT_TRUE(result.has_value()) << result.error().message;
  const auto& setup = result->containers[1].ids.at(kChip);
  for (const std::string& id : setup) EXPECT_THAT(result->containers[0].ids.at(kChip), ::testing::Contains(id));
  EXPECT_EQ(node.kubelet->resource_view(kChip).in_use, 3);
  EXPECT_THAT(node.chips.allocations(), SizeIs(2));
}

TEST(InitContainerTest, ASideCarKeepsItsDevices) {
  Node node(4);
  PodSpec pod = pod_of("a", {{kChip, 2}});
  pod.containers.push_back({"proxy", ContainerKind::restartable_init, {{kChip, 2}}});
  const auto result = node.kubelet->admit(pod);
  ASSERT_TRUE(result.has_value()) << result.error().message;
  EXPECT_EQ(node.kubelet->resource_view(kChip).in_use, 4);
}

TEST(PodLifeTest, DevicesOfAnEndedPodAreFreedLazily) {
  Node node(4);
  ASSERT_TRUE(node.kubelet->admit(pod_of("a", {{kChip, 4}})).has_value());
  ASSERT_TRUE(node.kubelet->remove("a").has_value());
  EXPECT_EQ(node.kubelet->resource_view(kChip).in_use, 4);
  EXPECT_TRUE(node.kubelet->admit(pod_of("b", {{kChip, 4}})).has_value());
  EXPECT_EQ(node.kubelet->remove("a").error().code, ErrorCode::not_found);
}

TEST(PodLifeTest, AListDuringAllocateGivesTheSameDeviceTwice) {
  FakeKubelet* kubelet = nullptr;
  bool raced = false;
  FakeKubeletOptions options;
  options.on_step = [&](AdmissionStep step, const std::string&) {
    if (step != AdmissionStep::before_allocate || kubelet->pods().size() != 2 || std::exchange(raced, true)) return;
    EXPECT_TRUE(kubelet->remove("ended").has_value());  // while "first" waits for its Allocate
    v1::ListPodResourcesResponse answer;
    EXPECT_TRUE(PodResourcesCaller(*kubelet).list(answer).ok());
  };
  Node node(3, 0, prefers({"0", "1"}), options);
  kubelet = &*node.kubelet;
  ASSERT_TRUE(kubelet->admit(pod_of("ended", {{kChip, 1}})).has_value());
  const auto first = kubelet->admit(pod_of("first", {{kChip, 2}}));
  ASSERT_TRUE(first.has_value()) << first.error().message;
  EXPECT_EQ(kubelet->resource_view(kChip).in_use, 0);  // two are held by "first"
  const auto second = kubelet->admit(pod_of("second", {{kChip, 3}}));
  ASSERT_TRUE(second.has_value()) << second.error().message;
}

TEST(PodLifeTest, ThePodUnderAdmissionIsSeenWithItsFirstResourceOnly) {
  FakeKubeletOptions options;
  FakeKubelet* kubelet = nullptr;
  std::vector<std::size_t> held;
  options.on_step = [&](AdmissionStep step, const std::string&) {
    if (step != AdmissionStep::before_allocate) return;
    held.push_back(kubelet->pods().at(0).containers.at(0).devices.size());
  };
  KubeletTest test(options);
  kubelet = &*test;
  TestPlugin chips(*test, kChip, "chip.sock", numbered_devices(2));
  TestPlugin nics(*test, kNic, "nic.sock", numbered_devices(2));
  ASSERT_TRUE(chips.register_plugin().ok() && nics.register_plugin().ok());
  ASSERT_TRUE(test.reaches(kChip, 2) && test.reaches(kNic, 2));
  ASSERT_TRUE(test->admit(pod_of("both", {{kChip, 2}, {kNic, 1}})).has_value());
  EXPECT_THAT(held, ElementsAre(0, ::testing::AnyOf(1, 2)));
}

TEST(PodLifeTest, ADeviceThatLeavesTheListDuringAllocatePanicsTheKubelet) {
  FakeKubeletOptions options;
  TestPlugin* plugin = nullptr;
  FakeKubelet* kubelet = nullptr;
  options.on_step = [&](AdmissionStep step, const std::string&) {
    if (step != AdmissionStep::before_allocate) return;
    plugin->set_devices({{"other"}});
    EXPECT_TRUE(kubelet->wait_for([&] { return kubelet->capacity(kChip) == 1; }, kPatience));
  };
  Node node(2, 0, {}, options);
  plugin = &node.chips;
  kubelet = &*node.kubelet;
  const auto pod = node.kubelet->admit(pod_of("a", {{kChip, 1}}));
  ASSERT_FALSE(pod.has_value());
  EXPECT_THAT(pod.error().message, HasSubstr("kubelet panic"));
}

TEST(PreStartTest, IsCalledWhenTheOptionsAskAndItsErrorKeepsTheContainerDown) {
  Behaviour behaviour;
  behaviour.pre_start = true;
  bool ready = false;
  behaviour.on_pre_start = [&] {
    return ready ? grpc::Status::OK : grpc::Status(grpc::UNAVAILABLE, "core 0 is still used by pid 42");
  };
  Node node(2, 0, behaviour);
  const auto pod = node.kubelet->admit(pod_of("a", {{kChip, 1}}));
  ASSERT_TRUE(pod.has_value());
  EXPECT_EQ(pod->containers[0].start_error,
            "device plugin PreStartContainer rpc failed with err: rpc error: code = Unavailable desc = core 0 is still "
            "used by pid 42");
  ready = true;
  const auto started = node.kubelet->start_container("a", "main");
  ASSERT_TRUE(started.has_value()) << started.error().message;
  EXPECT_EQ(started->ids, pod->containers[0].ids);
  EXPECT_EQ(node.chips.pre_starts(), 2);
}

TEST(PreStartTest, IsNotCalledOtherwise) {
  Node node(2);
  ASSERT_TRUE(node.kubelet->admit(pod_of("a", {{kChip, 1}})).has_value());
  EXPECT_EQ(node.chips.pre_starts(), 0);
}

TEST(AdmissionTest, RefusesSpecsThatMakeNoSense) {
  KubeletTest kubelet;
  EXPECT_EQ(kubelet->admit(PodSpec{"empty"}).error().code, ErrorCode::invalid_argument);
  PodSpec twice = pod_of("twice", {});
  twice.containers.push_back(twice.containers[0]);
  EXPECT_EQ(kubelet->admit(twice).error().code, ErrorCode::invalid_argument);
  ASSERT_TRUE(kubelet->admit(pod_of("a", {})).has_value());
  EXPECT_EQ(kubelet->admit(pod_of("a", {})).error().code, ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace neuron::sim::test
