#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "test/unit/kubelet/test_plugin.h"

namespace neuron::sim::test {
namespace {

constexpr const char* kChip = "example.com/chip";

struct Node {
  explicit Node(std::vector<TestDevice> devices, FakeKubeletOptions options = {})
      : kubelet(std::move(options)), chips(*kubelet, kChip, "chip.sock", devices), caller(*kubelet) {
    EXPECT_TRUE(chips.register_plugin().ok());
    EXPECT_TRUE(kubelet.reaches(kChip, static_cast<int>(devices.size())));
  }
  KubeletTest kubelet;
  TestPlugin chips;
  PodResourcesCaller caller;
};

FakeKubeletOptions with_fault(PodResourcesFault fault) {
  FakeKubeletOptions options;
  options.faults.pod_resources = fault;
  return options;
}

TEST(PodResourcesTest, ListsOneEntryPerDeviceAndNumaNode) {
  Node node({{"0", true, {0}}, {"1", true, {0, 1}}});
  ASSERT_TRUE(node.kubelet->admit(pod_of("a", {{kChip, 2}})).has_value());
  ASSERT_TRUE(node.kubelet->admit(pod_of("plain", {})).has_value());
  v1::ListPodResourcesResponse answer;
  ASSERT_TRUE(node.caller.list(answer).ok());
  ASSERT_EQ(answer.pod_resources_size(), 2);  // by namespace and name
  EXPECT_EQ(answer.pod_resources(0).name(), "a");
  EXPECT_EQ(answer.pod_resources(0).namespace_(), "default");
  ASSERT_EQ(answer.pod_resources(0).containers_size(), 1);
  std::multiset<std::pair<std::string, std::int64_t>> seen;
  for (const auto& entry : answer.pod_resources(0).containers(0).devices()) {
    EXPECT_EQ(entry.resource_name(), kChip);
    ASSERT_EQ(entry.device_ids_size(), 1);
    ASSERT_EQ(entry.topology().nodes_size(), 1);
    seen.emplace(entry.device_ids(0), entry.topology().nodes(0).id());
  }
  EXPECT_EQ(seen, (std::multiset<std::pair<std::string, std::int64_t>>{{"0", 0}, {"1", 0}, {"1", 1}}));
  EXPECT_EQ(answer.pod_resources(1).containers(0).devices_size(), 0);
}

TEST(PodResourcesTest, ShowsTheWholeClaimAndRepeatsIdsAsTheKubeletDoes) {
  Node node(numbered_devices(1));
  PodSpec pod = pod_of("a", {});
  pod.containers[0].claims["chips"] = {"neuron-device-3", "efa-rdmap16s25"};
  const auto admitted = node.kubelet->admit(pod);
  ASSERT_TRUE(admitted.has_value());
  EXPECT_EQ(admitted->containers[0].claims, pod.containers[0].claims);
  v1::ListPodResourcesResponse answer;
  ASSERT_TRUE(node.caller.list(answer).ok());
  const auto& container = answer.pod_resources(0).containers(0);
  ASSERT_EQ(container.dynamic_resources_size(), 1);
  EXPECT_EQ(container.dynamic_resources(0).claim_name(), "chips");
  EXPECT_EQ(container.dynamic_resources(0).claim_namespace(), "default");
  ASSERT_EQ(container.dynamic_resources(0).claim_resources_size(), 2);
  EXPECT_EQ(container.dynamic_resources(0).claim_resources(0).device_name(), "neuron-device-3");
  EXPECT_EQ(container.dynamic_resources(0).claim_resources(0).cdi_devices_size(), 1);
  EXPECT_EQ(container.dynamic_resources(0).claim_resources(1).cdi_devices_size(), 2);
}

TEST(PodResourcesTest, DevicesWithoutTopologyHaveNone) {
  Node node(numbered_devices(1));
  ASSERT_TRUE(node.kubelet->admit(pod_of("a", {{kChip, 1}})).has_value());
  v1::ListPodResourcesResponse answer;
  ASSERT_TRUE(node.caller.list(answer).ok());
  EXPECT_FALSE(answer.pod_resources(0).containers(0).devices(0).has_topology());
}

TEST(PodResourcesTest, ShowsInitContainersOnlyWhenTheyStay) {
  Node node(numbered_devices(4));
  PodSpec pod = pod_of("a", {{kChip, 1}});
  pod.containers.push_back({"setup", ContainerKind::init, {{kChip, 1}}});
  pod.containers.push_back({"proxy", ContainerKind::restartable_init, {{kChip, 1}}});
  ASSERT_TRUE(node.kubelet->admit(pod).has_value());
  v1::ListPodResourcesResponse answer;
  ASSERT_TRUE(node.caller.list(answer).ok());
  ASSERT_EQ(answer.pod_resources(0).containers_size(), 2);
  EXPECT_EQ(answer.pod_resources(0).containers(0).name(), "main");
  EXPECT_EQ(answer.pod_resources(0).containers(1).name(), "proxy");
}

TEST(PodResourcesTest, ListFreesTheDevicesOfEndedPodsButAllocatableDoesNot) {
  Node node(numbered_devices(2));
  ASSERT_TRUE(node.kubelet->admit(pod_of("a", {{kChip, 2}})).has_value());
  ASSERT_TRUE(node.kubelet->remove("a").has_value());
  v1::AllocatableResourcesResponse allocatable;
  ASSERT_TRUE(node.caller.allocatable(allocatable).ok());
  EXPECT_EQ(node.kubelet->resource_view(kChip).in_use, 2);
  v1::ListPodResourcesResponse all;
  ASSERT_TRUE(node.caller.list(all).ok());
  EXPECT_EQ(all.pod_resources_size(), 0);
  EXPECT_EQ(node.kubelet->resource_view(kChip).in_use, 0);
  EXPECT_EQ(node.kubelet->list_calls(), 1);
}

TEST(PodResourcesTest, AllocatableCountsHealthyDevices) {
  Node node({{"0", true, {0, 1}}, {"1", true, {1}}});
  node.chips.set_devices({{"0", true, {0, 1}}, {"1", false, {1}}});
  ASSERT_TRUE(node.kubelet.reaches(kChip, 1));
  v1::AllocatableResourcesResponse answer;
  ASSERT_TRUE(node.caller.allocatable(answer).ok());
  ASSERT_EQ(answer.devices_size(), 2);
  EXPECT_EQ(answer.devices(0).device_ids(0), "0");
  EXPECT_EQ(answer.devices(1).device_ids(0), "0");
}

TEST(PodResourcesFaultTest, AnswersAnError) {
  KubeletTest kubelet(with_fault(PodResourcesFault::error));
  v1::ListPodResourcesResponse answer;
  EXPECT_EQ(PodResourcesCaller(*kubelet).list(answer).error_code(), grpc::UNKNOWN);
}

TEST(PodResourcesFaultTest, NeverAnswersUntilHealed) {
  KubeletTest kubelet(with_fault(PodResourcesFault::hangs));
  v1::ListPodResourcesResponse answer;
  EXPECT_EQ(PodResourcesCaller(*kubelet, std::chrono::milliseconds(50)).list(answer).error_code(),
            grpc::DEADLINE_EXCEEDED);
  grpc::Status status;
  std::thread waiting([&] { status = PodResourcesCaller(*kubelet).list(answer); });
  ASSERT_TRUE(kubelet->set_faults({}).has_value());
  waiting.join();
  EXPECT_TRUE(status.ok()) << status.error_message();
}

TEST(PodResourcesFaultTest, AnswersGarbageUntilHealed) {
  KubeletTest kubelet(with_fault(PodResourcesFault::garbage));
  v1::ListPodResourcesResponse list;
  v1::AllocatableResourcesResponse allocatable;
  PodResourcesCaller caller(*kubelet);
  // What gRPC C++ 1.51 makes of bytes it cannot parse; a service that does not exist has an empty text.
  for (const grpc::Status& status : {caller.list(list), caller.allocatable(allocatable)}) {
    EXPECT_EQ(status.error_code(), grpc::UNIMPLEMENTED);
    EXPECT_EQ(status.error_message(), "No message returned for unary request");
  }
  ASSERT_TRUE(kubelet->set_faults({}).has_value());
  EXPECT_TRUE(PodResourcesCaller(*kubelet).list(list).ok());
}

TEST(PodResourcesFaultTest, AnswersMoreThanAClientAccepts) {
  KubeletTest kubelet(with_fault(PodResourcesFault::oversized));
  PodResourcesCaller caller(*kubelet, std::chrono::seconds(1));  // gRPC C++ may wait for the rest until its deadline
  v1::ListPodResourcesResponse list;
  EXPECT_EQ(caller.list(list).error_code(), grpc::RESOURCE_EXHAUSTED);
  v1::AllocatableResourcesResponse allocatable;
  EXPECT_EQ(caller.allocatable(allocatable).error_code(), grpc::RESOURCE_EXHAUSTED);
}

}  // namespace
}  // namespace neuron::sim::test
