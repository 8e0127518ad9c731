#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>
#include <utility>

#include "test/unit/kubelet/chips_node.h"
#include "tools/neuron-sim/kubelet/allocation.h"

namespace neuron::sim::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(RestartTest, WipesSocketsAndWaitsForPluginsToComeBack) {
  Node node(4);
  ASSERT_TRUE(node.kubelet->restart().has_value());
  EXPECT_FALSE(std::filesystem::exists(node.kubelet->device_plugin_dir() + "/chip.sock"));
  EXPECT_TRUE(node.chips.wait_for([&] { return node.chips.open_streams() == 0; }));
  EXPECT_EQ(node.kubelet->allocatable(kChip), 0);
  EXPECT_EQ(node.kubelet->capacity(kChip), 0);
  EXPECT_TRUE(node.kubelet->resources().contains(kChip));  // known from the checkpoint
  TestPlugin again(*node.kubelet, kChip, "chip-2.sock", numbered_devices(4));
  ASSERT_TRUE(again.register_plugin().ok());
  EXPECT_TRUE(node.kubelet.reaches(kChip, 4));
}

TEST(RestartTest, RunningContainersKeepTheirDevices) {
  Node node(4);
  const auto before = node.kubelet->admit(pod_of("a", {{kChip, 2}}));
  ASSERT_TRUE(before.has_value());
  ASSERT_TRUE(node.kubelet->restart().has_value());
  EXPECT_EQ(node.kubelet->resource_view(kChip).in_use, 2);
  const auto started = node.kubelet->start_container("a", "main");
  ASSERT_TRUE(started.has_value()) << started.error().message;
  EXPECT_EQ(started->ids, before->containers[0].ids);
  EXPECT_EQ(started->devices, before->containers[0].devices);
  TestPlugin again(*node.kubelet, kChip, "chip-2.sock", numbered_devices(4));
  ASSERT_TRUE(again.register_plugin().ok());
  ASSERT_TRUE(node.kubelet.reaches(kChip, 4));
  EXPECT_THAT(node.kubelet->admit(pod_of("b", {{kChip, 3}})).error().message, HasSubstr("Available: 2"));
}

TEST(RestartTest, PodsInTheGapAreRefused) {
  Node node(4);
  ASSERT_TRUE(node.kubelet->restart().has_value());
  EXPECT_THAT(node.kubelet->admit(pod_of("a", {{kChip, 1}})).error().message,
              HasSubstr("no healthy devices present; cannot allocate unhealthy devices example.com/chip"));
}

TEST(RestartTest, AnUnreadableCheckpointForgetsAllocations) {
  Node node(4);
  ASSERT_TRUE(node.kubelet->admit(pod_of("a", {{kChip, 2}})).has_value());
  node.kubelet->go_down();
  std::ofstream(node.kubelet->checkpoint_path()) << "{\"Data\":";
  ASSERT_TRUE(node.kubelet->come_up().has_value());
  EXPECT_THAT(node.kubelet->resources(), IsEmpty());
  EXPECT_THAT(node.kubelet->pods().at(0).containers.at(0).devices, IsEmpty());
}

TEST(RestartTest, AStuckAllocateIsFreed) {
  std::mutex gate;
  std::condition_variable opened;
  bool open = false;
  KubeletTest kubelet;
  TestPlugin::Behaviour behaviour;
  behaviour.on_allocate = [&](const auto&, auto&) {
    std::unique_lock lock(gate);
    opened.wait(lock, [&] { return open; });
    return grpc::Status::OK;
  };
  TestPlugin plugin(*kubelet, kChip, "chip.sock", numbered_devices(2), behaviour);
  ASSERT_TRUE(plugin.register_plugin().ok());
  ASSERT_TRUE(kubelet.reaches(kChip, 2));
  Result<PodResult> pod;
  std::thread admission([&] { pod = kubelet->admit(pod_of("a", {{kChip, 1}})); });
  EXPECT_TRUE(plugin.wait_for([&] { return !plugin.allocations().empty(); }));
  ASSERT_TRUE(kubelet->restart().has_value());
  admission.join();
  EXPECT_FALSE(pod.has_value());
  {
    const std::lock_guard lock(gate);
    open = true;
  }
  opened.notify_all();
}

TEST(RestartTest, AKubeletThatEndsBetweenTwoAllocatesRefusesThePod) {
  FakeKubelet* kubelet = nullptr;
  FakeKubeletOptions options;
  options.on_step = [&](AdmissionStep step, const std::string&) {
    if (step == AdmissionStep::after_allocate && kubelet != nullptr) {
      EXPECT_TRUE(std::exchange(kubelet, nullptr)->restart().has_value());
    }
  };
  Node node(4, 0, {}, options);
  kubelet = &*node.kubelet;
  EXPECT_FALSE(node.kubelet->admit(pod_of("a", {{kChip, 1}})).has_value());
  EXPECT_EQ(node.kubelet->resource_view(kChip).in_use, 0);
}

TEST(CheckpointFileTest, IsWrittenOnEachListAndOncePerContainer) {
  FakeKubeletOptions options;
  FakeKubelet* kubelet = nullptr;
  std::vector<std::size_t> entries;  // in the file before each Allocate
  options.on_step = [&](AdmissionStep step, const std::string&) {
    if (step != AdmissionStep::before_allocate) return;
    const auto read = read_checkpoint(kubelet->checkpoint_path());
    entries.push_back(read ? read->entries.size() : 99);
  };
  KubeletTest test(options);
  kubelet = &*test;
  EXPECT_FALSE(std::filesystem::exists(test->checkpoint_path()));
  TestPlugin chips(*test, kChip, "chip.sock", numbered_devices(2, 2));
  TestPlugin nics(*test, kNic, "nic.sock", numbered_devices(2));
  ASSERT_TRUE(chips.register_plugin().ok() && nics.register_plugin().ok());
  ASSERT_TRUE(test->wait_for(
      [&] {
        const auto read = read_checkpoint(test->checkpoint_path());
        return read && read->registered.contains(kChip) && read->registered.contains(kNic);
      },
      kPatience));
  PodSpec pod = pod_of("a", {{kChip, 1}, {kNic, 1}});
  pod.containers.push_back({"second", ContainerKind::app, {{kChip, 1}}});
  ASSERT_TRUE(test->admit(pod).has_value());
  EXPECT_THAT(entries, ElementsAre(0, 0, 2));  // the first container's two only after both
  const auto read = read_checkpoint(test->checkpoint_path());
  ASSERT_TRUE(read.has_value());
  EXPECT_THAT(read->entries, SizeIs(3));
  EXPECT_THAT(read->registered.at(kChip), ElementsAre("0", "1"));
}

TEST(CheckpointFileTest, AListInBetweenWritesHalfAContainer) {
  FakeKubeletOptions options;
  FakeKubelet* kubelet = nullptr;
  TestPlugin* plugin = nullptr;
  std::vector<std::size_t> entries;
  options.on_step = [&](AdmissionStep step, const std::string& resource) {
    if (step != AdmissionStep::before_allocate || resource != kNic) return;
    plugin->set_devices(numbered_devices(3));
    EXPECT_TRUE(kubelet->wait_for(
        [&] {
          const auto read = read_checkpoint(kubelet->checkpoint_path());
          return read && read->registered.at(kChip).size() == 3;
        },
        kPatience));
    entries.push_back(read_checkpoint(kubelet->checkpoint_path())->entries.size());
  };
  KubeletTest test(options);
  kubelet = &*test;
  TestPlugin chips(*test, kChip, "chip.sock", numbered_devices(2));
  TestPlugin nics(*test, kNic, "nic.sock", numbered_devices(2));
  plugin = &chips;
  ASSERT_TRUE(chips.register_plugin().ok() && nics.register_plugin().ok());
  ASSERT_TRUE(test.reaches(kChip, 2) && test.reaches(kNic, 2));
  PodSpec pod = pod_of("a", {{kChip, 1}, {kNic, 1}});
  pod.containers[0].order = {kChip, kNic};
  ASSERT_TRUE(test->admit(pod).has_value());
  EXPECT_THAT(entries, ElementsAre(1));
}

TEST(CheckpointFileTest, ARefusedContainerIsNotWritten) {
  Node node(4);
  TestPlugin nics(*node.kubelet, kNic, "nic.sock", numbered_devices(1));
  ASSERT_TRUE(nics.register_plugin().ok());
  ASSERT_TRUE(node.kubelet.reaches(kNic, 1));
  PodSpec pod = pod_of("a", {{kChip, 1}, {kNic, 2}});
  pod.containers[0].order = {kChip, kNic};
  ASSERT_FALSE(node.kubelet->admit(pod).has_value());
  EXPECT_THAT(read_checkpoint(node.kubelet->checkpoint_path())->entries, IsEmpty());
  EXPECT_EQ(node.kubelet->resource_view(kChip).in_use, 1);  // until the next update
  node.kubelet->update_allocated();
  EXPECT_EQ(node.kubelet->resource_view(kChip).in_use, 0);
}

}  // namespace
}  // namespace neuron::sim::test
