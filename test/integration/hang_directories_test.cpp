// Directories of the kubelet and of the container runtime that hang: calls on them that do not return
// (docs/reliability.md#the-kubelet). test/fakes/faulty_io.cpp.
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "test/integration/faulty_node.h"

namespace neuron::fakes {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

// The whole device-plugins directory, not the checkpoint alone.
TEST(HangOfKubeletDirectory, HoldsUpNeitherListsNorAnswersNorTheEnd) {
  FaultyNode node("trn1.32xlarge");
  node.start();
  ASSERT_TRUE(node.wait_allocatable(kNeuron, 16));
  ASSERT_TRUE(node.wait_allocatable(kCore, 32));
  node.rules("hang */device-plugins*\n");
  ASSERT_TRUE(node.wait_log("/device-plugins not answering, lists and grants continue without it"));
  node.host.set("neuron5", "sram_ecc_uncorrected=1");
  EXPECT_TRUE(node.sees(kNeuron, 15)) << node.agent->log();
  EXPECT_LT(took([&] { EXPECT_TRUE(starts(node, "meanwhile", {{kNeuron, 1}})); }), kBudget + kSlack);
  node.host.set("neuron6", "sram_ecc_uncorrected=1");
  EXPECT_TRUE(node.sees(kNeuron, 14)) << node.agent->log();
  EXPECT_EQ(count_of(node.agent->log(), "lists and grants continue without it"), 1) << node.agent->log();
  EXPECT_LT(took([&] {
              node.agent->signal(SIGTERM);
              EXPECT_EQ(node.agent->wait(kPatience), 0);
            }),
            seconds(5))
      << node.agent->log();
  EXPECT_TRUE(node.wait_log("thread blocked at exit, abandoned: ")) << node.agent->log();
}

TEST(HangOfKubeletDirectory, OneThatHangsFromTheStartIsServedWhenItAnswers) {
  FaultyNode node("trn1.32xlarge");
  node.rules("hang */device-plugins*\n");
  node.start();
  ASSERT_TRUE(node.wait_log("/device-plugins not answering")) << node.agent->log();
  node.rules("");
  EXPECT_TRUE(node.wait_allocatable(kNeuron, 16)) << node.agent->log();
  EXPECT_TRUE(node.wait_log("/device-plugins answering again")) << node.agent->log();
  EXPECT_TRUE(starts(node, "pod", {{kNeuron, 1}}));
}

TEST(HangOfKubeletDirectory, OneThatHangsFromTheStartDoesNotHoldUpTheEnd) {
  FaultyNode node("trn1.32xlarge");
  node.rules("hang */device-plugins*\n");
  node.start();
  ASSERT_TRUE(node.wait_log("/device-plugins not answering")) << node.agent->log();
  node.agent->signal(SIGTERM);
  EXPECT_EQ(node.agent->wait(seconds(5)), 0) << node.agent->log();
}

TEST(HangOfKubeletDirectory, AKubeletThatRestartsMeanwhileIsRegisteredWithAfterwards) {
  FaultyNode node("trn1.32xlarge");
  node.start();
  ASSERT_TRUE(node.wait_allocatable(kNeuron, 16));
  node.rules("hang */device-plugins*\n");
  ASSERT_TRUE(node.wait_log("/device-plugins not answering")) << node.agent->log();
  ASSERT_TRUE(node.kubelet->restart());
  node.host.set("neuron5", "sram_ecc_uncorrected=1");
  ASSERT_TRUE(node.wait_log("unit=neuron5 state=unhealthy")) << node.agent->log();
  node.rules("");
  EXPECT_TRUE(node.wait_allocatable(kNeuron, 15)) << node.agent->log();
}

// --cdi: the container runtime's directory.
struct CdiNode : FaultyNode {
  CdiNode() : FaultyNode("trn1.2xlarge") { extra_arguments = {"--cdi", "--cdi-dir", directory()}; }
  [[nodiscard]] std::string directory() const { return kubelet_dir + "/cdi"; }
  [[nodiscard]] std::string spec() const { return directory() + "/aws.amazon.com-neuron.json"; }
  [[nodiscard]] bool writes(const std::string& path) {
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (!std::filesystem::is_regular_file(std::filesystem::symlink_status(path))) {
      if (std::chrono::steady_clock::now() > until) return false;
      static_cast<void>(agent->wait(milliseconds(5)));
    }
    return true;
  }
};

TEST(HangOfCdi, ADirectoryThatHangsHoldsUpNothingAndIsNamed) {
  CdiNode node;
  node.rules("hang */cdi/*\n");
  node.start();
  ASSERT_TRUE(node.sees(kNeuron, 1)) << node.agent->log();
  EXPECT_TRUE(starts(node, "pod", {{kNeuron, 1}}));
  EXPECT_THAT(node.agent->log(), HasSubstr("CDI specs not written, containers may fail to start: " + node.directory()));
  node.host.set("neuron0", "sram_ecc_uncorrected=1");
  EXPECT_TRUE(node.sees(kNeuron, 0)) << node.agent->log();
  const auto end = took([&] {
    node.agent->signal(SIGTERM);
    EXPECT_EQ(node.agent->wait(kPatience), 0);
  });
  EXPECT_LT(end, seconds(5));
  EXPECT_THAT(node.agent->log(), HasSubstr("thread blocked at exit, abandoned: a file in " + node.directory()));
  EXPECT_THAT(node.agent->log(), testing::Not(HasSubstr("inside the driver")));
}

TEST(HangOfCdi, ADirectoryThatAnswersAgainIsWritten) {
  CdiNode node;
  node.rules("hang */cdi/*\n");
  node.start();
  ASSERT_TRUE(node.wait_log("CDI specs not written")) << node.agent->log();
  node.rules("");
  EXPECT_TRUE(node.writes(node.spec())) << node.agent->log();
  EXPECT_TRUE(node.wait_log("CDI specs written again")) << node.agent->log();
  EXPECT_TRUE(node.sees(kNeuron, 1));
}

TEST(HangOfCdi, AFifoInASpecsPlaceIsReplaced) {
  CdiNode node;
  std::filesystem::create_directory(node.directory());
  ASSERT_EQ(::mkfifo(node.spec().c_str(), 0600), 0);
  node.start();
  ASSERT_TRUE(node.sees(kNeuron, 1)) << node.agent->log();
  EXPECT_TRUE(node.writes(node.spec())) << node.agent->log();
}

TEST(HangOfCdi, SpecsAreThereAgainWhenTheirDirectoryIs) {
  CdiNode node;
  node.extra_arguments.back() += "/below";
  std::ofstream(node.directory()) << "in the way";
  node.start();
  ASSERT_TRUE(node.sees(kNeuron, 1)) << node.agent->log();
  EXPECT_TRUE(node.wait_log("CDI specs not written, containers may fail to start")) << node.agent->log();
  const std::string spec = node.directory() + "/below/aws.amazon.com-neuron.json";
  std::filesystem::remove(node.directory());
  EXPECT_TRUE(node.writes(spec)) << node.agent->log();
  std::filesystem::remove(spec);
  EXPECT_TRUE(node.writes(spec)) << node.agent->log();
  std::filesystem::remove_all(node.directory());
  EXPECT_TRUE(node.writes(spec)) << node.agent->log();
  EXPECT_TRUE(node.wait_log("CDI specs restored")) << node.agent->log();
}

}  // namespace
}  // namespace neuron::fakes
