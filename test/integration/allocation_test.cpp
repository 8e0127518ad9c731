// What containers get, and what is refused, over the real socket (docs/resources.md).
#include "test/integration/node.h"

namespace neuron::fakes {
namespace {

using testing::HasSubstr;

struct Trn1 : testing::Test {
  Node node{"trn1.32xlarge"};
  void SetUp() override {
    node.start();
    ASSERT_TRUE(node.wait_allocatable(kCore, 32));
    ASSERT_TRUE(node.wait_allocatable(kNeuron, 16));
    ASSERT_TRUE(node.wait_allocatable(kEfa, 8));
  }
};

TEST_F(Trn1, FourCoresAreTwoWholeDevicesCountedFromZero) {
  const auto pod = node.run("cores", {{kCore, 4}});
  EXPECT_EQ(env_of(pod), "0-3");
  ASSERT_EQ(pod->containers[0].devices.size(), 2U);
  for (const auto& device : pod->containers[0].devices) {
    EXPECT_EQ(device.host_path, node.host.path() + device.container_path);
    EXPECT_EQ(device.permissions, "rw");
  }
  EXPECT_EQ(pod->containers[0].start_error, "");
}

TEST_F(Trn1, TheTrainingPodGetsTheWholeNode) {
  const auto pod = node.run("bert", {{kNeuron, 16}, {kEfa, 8}});
  EXPECT_EQ(env_of(pod), "0-31");
  EXPECT_EQ(pod->containers[0].devices.size(), 24U);
  EXPECT_TRUE(pod->containers[0].conflicts.empty());
}

TEST_F(Trn1, TheConformancePodMayAskForTheSameHardwareTwice) {
  for (const auto& order : {std::vector<std::string>{kNeuron, kCore, kEfa}, {kCore, kEfa, kNeuron}}) {
    const auto pod = node.run("tester", {{kNeuron, 16}, {kCore, 32}, {kEfa, 8}}, order);
    EXPECT_EQ(env_of(pod), "0-31");
    ASSERT_TRUE(pod);
    EXPECT_TRUE(pod->containers[0].conflicts.empty()) << pod->containers[0].conflicts.front();
    EXPECT_EQ(pod->containers[0].devices.size(), 24U);
    ASSERT_TRUE(node.kubelet->remove("tester"));
  }
}

TEST_F(Trn1, ARequestOfZeroIsHarmless) {
  const auto pod = node.run("zero", {{kCore, 0}});
  ASSERT_TRUE(pod);
  EXPECT_TRUE(pod->containers[0].devices.empty());
}

TEST_F(Trn1, SeveralContainersAndAnInitContainer) {
  sim::PodSpec pod;
  pod.name = "mixed";
  pod.containers.push_back({"prepare", sim::ContainerKind::init, {{kNeuron, 2}}, {}, {}});
  pod.containers.push_back({"train", sim::ContainerKind::app, {{kNeuron, 2}}, {}, {}});
  pod.containers.push_back({"sidecar", sim::ContainerKind::app, {}, {}, {}});
  pod.containers.push_back({"serve", sim::ContainerKind::app, {{kCore, 2}}, {}, {}});
  const auto result = node.kubelet->admit(pod);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->containers[0].ids, result->containers[1].ids) << "an init container's devices are used again";
  EXPECT_TRUE(result->containers[2].devices.empty());
  EXPECT_EQ(result->containers[3].env.at("NEURON_RT_VISIBLE_CORES"), "0-1");
  EXPECT_TRUE(node.wait_allocatable(kNeuron, 15));
  EXPECT_TRUE(node.wait_allocatable(kCore, 28));
}

TEST_F(Trn1, HardwareHeldThroughOneResourceLeavesTheOtherAndComesBack) {
  ASSERT_TRUE(node.run("holder", {{kNeuron, 3}}));
  EXPECT_TRUE(node.wait_allocatable(kCore, 26));
  EXPECT_EQ(node.kubelet->allocatable(kNeuron), 16);
  ASSERT_TRUE(node.kubelet->remove("holder"));
  EXPECT_TRUE(node.wait_allocatable(kCore, 32)) << node.agent->log();
}

TEST_F(Trn1, AnInitContainersHardwareStaysTakenThoughPodResourcesDoesNotShowIt) {
  sim::PodSpec pod;
  pod.name = "init-only";
  pod.containers.push_back({"prepare", sim::ContainerKind::init, {{kNeuron, 2}}, {}, {}});
  pod.containers.push_back({"plain", sim::ContainerKind::app, {}, {}, {}});
  ASSERT_TRUE(node.kubelet->admit(pod));
  ASSERT_TRUE(node.wait_allocatable(kCore, 28));
  const int asked = node.kubelet->list_calls();
  ASSERT_TRUE(node.kubelet->wait_for([&] { return node.kubelet->list_calls() >= asked + 4; }, kPatience));
  EXPECT_EQ(node.kubelet->allocatable(kCore), 28);
}

TEST_F(Trn1, TwoPodsInARushNeverShareHardware) {
  // Back to back: the first pod's devices have not left the other list yet.
  const auto devices = node.run("devices", {{kNeuron, 15}});
  const auto cores = node.run("cores", {{kCore, 2}});
  const auto more = node.run("more", {{kCore, 2}});
  ASSERT_TRUE(devices);
  ASSERT_TRUE(cores) << cores.error().message;
  ASSERT_FALSE(more);
  EXPECT_THAT(more.error().message, HasSubstr("is held by"));
  const std::string left_over = cores->containers[0].devices.at(0).container_path;
  for (const auto& device : devices->containers[0].devices) EXPECT_NE(device.container_path, left_over);
}

TEST_F(Trn1, DirectCallsWithBadIdsAreRefusedAndChangeNothing) {
  std::string socket;
  for (const auto& entry : std::filesystem::directory_iterator(node.kubelet->device_plugin_dir())) {
    const std::string name = entry.path().filename();
    if (name.starts_with("neuron-agent-neuroncore-")) socket = entry.path();
  }
  ASSERT_FALSE(socket.empty());
  sim::PluginClient client(kCore, socket);
  node.host.set("neuron3", "sram_ecc_uncorrected=1");
  ASSERT_TRUE(node.wait_allocatable(kCore, 30));
  const auto refused = [&](const std::vector<std::string>& ids) {
    const auto answer = client.allocate(ids);
    return answer ? std::string("given") : answer.error().message;
  };
  EXPECT_THAT(refused({"99"}), HasSubstr("this node has no \"99\""));
  EXPECT_THAT(refused({"0", "0"}), HasSubstr("more than once"));
  EXPECT_THAT(refused({"6"}), HasSubstr("unhealthy"));
  EXPECT_THAT(refused({}), HasSubstr("no device ids"));
  EXPECT_EQ(node.kubelet->allocatable(kNeuron), 15) << "only the broken device is gone";
  EXPECT_TRUE(node.run("after", {{kCore, 30}}));
}

TEST(Trn2, NicsAreTheOnesNextToTheChips) {
  Node node("trn2.48xlarge");
  node.start();
  ASSERT_TRUE(node.wait_allocatable(kNeuron, 16));
  ASSERT_TRUE(node.wait_allocatable(kEfa, 16));
  // The official table, by device index (docs/reference/topology.md#nearest-efa).
  const std::vector<int> bus = {0xc9, 0xb4, 0xb3, 0xca, 0x6c, 0x57, 0x56, 0x6d,
                                0x98, 0x83, 0x82, 0x99, 0xf5, 0xe0, 0xdf, 0xf6};
  for (const auto& order : {std::vector<std::string>{kNeuron, kEfa}, {kEfa, kNeuron}}) {
    const auto pod = node.run("pod", {{kNeuron, 4}, {kEfa, 4}}, order);
    ASSERT_TRUE(pod) << pod.error().message;
    const auto& devices = pod->containers[0].ids.at(kNeuron);
    EXPECT_EQ(std::stoi(devices.front()) % 4, 0) << "an aligned group of four";
    EXPECT_EQ(std::stoi(devices.back()), std::stoi(devices.front()) + 3);
    std::vector<std::string> nearest;
    for (const std::string& device : devices) {
      nearest.push_back("rdmap" + std::to_string(bus.at(std::stoul(device))) + "s0");
    }
    EXPECT_THAT(pod->containers[0].ids.at(kEfa), testing::UnorderedElementsAreArray(nearest));
    ASSERT_TRUE(node.kubelet->remove("pod"));
  }
}

}  // namespace
}  // namespace neuron::fakes
