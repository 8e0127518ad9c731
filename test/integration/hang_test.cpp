// A driver that hangs in the kernel: reads that do not come back (docs/reliability.md#devices).
// test/fakes/faulty_io.cpp.
#include <fstream>

#include "test/fakes/sanitized.h"
#include "test/integration/node.h"

namespace neuron::fakes {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

constexpr seconds kBudget{2};  // monitor::Monitor::Timing
// What a loaded machine adds to the budget, with the scans before and after.
constexpr seconds kSlack{6};

// A node whose agent sees faults as `rules` says.
struct FaultyNode : Node {
  explicit FaultyNode(const std::string& instance_type) : Node(instance_type) {
    extra_environment = {"LD_PRELOAD=" NEURON_FAULTY_IO, "FAULTY_IO=" + control(), sanitizer_allows_preload()};
  }
  [[nodiscard]] std::string control() const { return kubelet_dir + "/faulty-io"; }
  void rules(const std::string& text) {
    std::ofstream(control() + ".new") << text;
    std::filesystem::rename(control() + ".new", control());
  }
  [[nodiscard]] bool sees(const std::string& resource, int count, seconds within = kBudget + kSlack) {
    return kubelet->wait_for([&] { return kubelet->allocatable(resource) == count; }, within);
  }
};

milliseconds took(const std::function<void()>& what) {
  const auto begin = std::chrono::steady_clock::now();
  what();
  return std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - begin);
}

// Admitted, and its container started.
testing::AssertionResult starts(Node& node, const std::string& pod, std::map<std::string, int> requests) {
  const auto result = node.run(pod, std::move(requests));
  if (!result) return testing::AssertionFailure() << result.error().message;
  const std::string& error = result->containers.at(0).start_error;
  return error.empty() ? testing::AssertionSuccess() : testing::AssertionFailure() << error;
}

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(Hang, ADeviceThatHangsCostsNobodyElse) {
  FaultyNode node("trn1.32xlarge");
  node.start();
  ASSERT_TRUE(node.wait_allocatable(kNeuron, 16));
  ASSERT_TRUE(node.wait_allocatable(kCore, 32));
  ASSERT_TRUE(node.wait_allocatable(kEfa, 8));
  node.rules("hang */neuron3/stats/hardware*\n");
  ASSERT_TRUE(node.sees(kNeuron, 15)) << node.agent->log();
  EXPECT_TRUE(node.sees(kCore, 30));
  EXPECT_EQ(node.kubelet->resource_view(kNeuron).unhealthy, (sim::IdSet{"3"}));
  EXPECT_EQ(node.kubelet->capacity(kNeuron), 16);
  EXPECT_THAT(node.agent->log(), HasSubstr("neuron3 unhealthy reason=not_answering neuron3: reading "
                                           "sys/class/neuron_device/neuron3 has not come back since 20"));

  node.host.set("neuron5", "sram_ecc_uncorrected=1");
  EXPECT_TRUE(node.sees(kNeuron, 14)) << node.agent->log();
  EXPECT_EQ(node.kubelet->resource_view(kNeuron).unhealthy, (sim::IdSet{"3", "5"}));
  EXPECT_EQ(node.kubelet->allocatable(kEfa), 8);
  EXPECT_LT(took([&] { EXPECT_TRUE(starts(node, "other", {{kNeuron, 1}})); }), kBudget);
  EXPECT_EQ(count_of(node.agent->log(), "neuron3 unhealthy reason=not_answering"), 1) << "logged once:\n"
                                                                                      << node.agent->log();

  node.rules("");
  EXPECT_TRUE(node.sees(kNeuron, 15)) << node.agent->log();
  EXPECT_EQ(node.kubelet->resource_view(kNeuron).unhealthy, (sim::IdSet{"5"}));
}

TEST(Hang, TheFirstScanHangsInOneDeviceAndTheRestIsRegistered) {
  FaultyNode node("trn1.32xlarge");
  node.rules("hang */neuron3/*\n");
  node.start();
  EXPECT_TRUE(node.sees(kEfa, 8)) << node.agent->log();
  EXPECT_TRUE(node.sees(kNeuron, 15));
  EXPECT_TRUE(node.sees(kCore, 30));
  EXPECT_EQ(node.kubelet->capacity(kNeuron), 16) << "it keeps its place";
  EXPECT_EQ(node.kubelet->capacity(kCore), 32);
  node.rules("");
  EXPECT_TRUE(node.sees(kNeuron, 16)) << node.agent->log();
  EXPECT_TRUE(node.sees(kCore, 32));
}

TEST(Hang, EveryDeviceHangsAndTheInterfacesAreThere) {
  FaultyNode node("trn1.32xlarge");
  node.rules("hang */neuron_device/neuron*/*\n");
  node.start();
  EXPECT_TRUE(node.sees(kEfa, 8, seconds(20))) << node.agent->log();
  EXPECT_TRUE(node.kubelet->wait_for([&] { return node.kubelet->capacity(kNeuron) == 16; }, kBudget));
  EXPECT_EQ(node.kubelet->allocatable(kNeuron), 0);
  node.rules("");
  EXPECT_TRUE(node.sees(kNeuron, 16)) << node.agent->log();
}

TEST(Hang, AnInterfaceThatHangsIsOutAlone) {
  for (const char* path : {"*/0000:10:19.0/p2p", "*/infiniband_verbs/uverbs*/ibdev"}) {
    FaultyNode node("trn1.32xlarge");
    node.start();
    ASSERT_TRUE(node.wait_allocatable(kEfa, 8));
    ASSERT_TRUE(node.wait_allocatable(kNeuron, 16));
    node.rules(std::string("hang ") + path + "\n");
    if (std::string(path).ends_with("ibdev")) {
      node.host.set("rdmap16s25", "unbind");  // the join is made anew, and finds no answer
      EXPECT_TRUE(node.sees(kEfa, 0, seconds(20))) << node.agent->log();
    } else {
      EXPECT_TRUE(node.sees(kEfa, 7)) << node.agent->log();
      EXPECT_THAT(node.agent->log(), HasSubstr("id=rdmap16s25 reason=not_answering"));
    }
    EXPECT_EQ(node.kubelet->allocatable(kNeuron), 16);
    node.host.set("neuron5", "sram_ecc_uncorrected=1");
    EXPECT_TRUE(node.sees(kNeuron, 15)) << node.agent->log();
    node.rules("");
    node.host.set("rdmap16s25", "heal");
    EXPECT_TRUE(node.sees(kEfa, 8)) << node.agent->log();
  }
}

TEST(Hang, ListsAndTextsThatHangKeepWhatWasSeenLast) {
  for (const char* path : {"*/id/product_name", "*/sys/bus/pci/devices"}) {
    FaultyNode node("trn1.32xlarge");
    node.start();
    ASSERT_TRUE(node.wait_allocatable(kEfa, 8));
    ASSERT_TRUE(node.wait_allocatable(kNeuron, 16));
    node.rules(std::string("hang ") + path + "\n");
    ASSERT_TRUE(node.wait_log("has not come back since")) << path;
    node.host.set("neuron5", "sram_ecc_uncorrected=1");
    EXPECT_TRUE(node.sees(kNeuron, 15)) << path << node.agent->log();
    EXPECT_EQ(node.kubelet->allocatable(kEfa), 8) << path;
    EXPECT_EQ(node.kubelet->allocatable(kCore), 30) << path;
  }
}

TEST(Hang, PreStartIsNotHeldUpByADriverThatSaysNothing) {
  FaultyNode node("trn1.32xlarge");
  node.start();
  ASSERT_TRUE(node.wait_allocatable(kNeuron, 16));
  node.rules("hang */device_mem/tensors/total\n");  // which no scan reads
  EXPECT_LT(took([&] { EXPECT_TRUE(starts(node, "first", {{kNeuron, 1}})); }), kBudget + kSlack);
  EXPECT_THAT(node.agent->log(), HasSubstr("nobody could tell whether memory is still held on neuron"));
  EXPECT_LT(took([&] { EXPECT_TRUE(starts(node, "half", {{kNeuron, 8}})); }), seconds(12));

  node.rules("eio */device_mem/*\n");
  EXPECT_LT(took([&] { EXPECT_TRUE(starts(node, "unreadable", {{kNeuron, 1}})); }), kBudget);
}

TEST(Hang, TheEndComesAtOnce) {
  FaultyNode node("trn1.32xlarge");
  node.rules("hang */neuron3/stats/*\nhang */neuron8/stats/*\n");
  node.start();
  ASSERT_TRUE(node.sees(kNeuron, 14, seconds(12))) << node.agent->log();
  node.agent->signal(SIGTERM);
  EXPECT_EQ(node.agent->wait(milliseconds(1500)), 0) << node.agent->log();
}

TEST(Hang, AScanThatHangsBeforeAnythingIsKnownDoesNotHoldUpTheEnd) {
  FaultyNode node("trn1.32xlarge");
  node.rules("hang *product_name\n");
  node.start();
  ASSERT_TRUE(node.wait_log("starting"));
  node.agent->signal(SIGTERM);
  EXPECT_EQ(node.agent->wait(milliseconds(1500)), 0) << node.agent->log();
}

constexpr const char* kTensors = "stats/memory_usage/device_mem/tensors/total";

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
