// neuron-agent explain pod: the real program against a kubelet stand-in.
#include <gmock/gmock.h>
#include <sys/wait.h>

#include "test/fakes/paths.h"
#include "test/unit/kubelet/test_plugin.h"
#include "test/unit/render/ls_program.h"

namespace neuron {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class ExplainCommand : public test::LsProgram {
 protected:
  [[nodiscard]] test::Outcome explain(const std::string& arguments) const {
    const std::string command = fakes::bin_dir() + "/neuron-agent explain pod " + arguments + " --root " +
                                host().string() + " >" + (directory_ / "out").string() + " 2>" +
                                (directory_ / "err").string() + " </dev/null";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, test::text_of(directory_ / "out"),
            test::text_of(directory_ / "err")};
  }
};

TEST_F(ExplainCommand, WhatTheKubeletListsAndTheMachineShowsBecomeOneAnswer) {
  simulate("trn1.32xlarge");
  sim::test::KubeletTest kubelet;
  const std::string where = " --kubelet-dir " + kubelet->dir();
  sim::test::TestPlugin chips(*kubelet, "aws.amazon.com/neuron", "chip.sock", sim::test::numbered_devices(2));
  ASSERT_TRUE(chips.register_plugin().ok());
  ASSERT_TRUE(kubelet.reaches("aws.amazon.com/neuron", 2));
  ASSERT_TRUE(kubelet->admit(sim::test::pod_of("bert-0", {{"aws.amazon.com/neuron", 2}})));
  ASSERT_TRUE(kubelet->admit(sim::test::pod_of("web", {})));
  const auto healthy = explain("default/bert-0" + where);
  EXPECT_EQ(healthy.exit_code, 0) << healthy.out << healthy.err;
  EXPECT_THAT(healthy.out, HasSubstr("all healthy"));
  EXPECT_THAT(healthy.out, HasSubstr("kubelet: aws.amazon.com/neuron: all Healthy"));
  set("neuron1", "sram_ecc_uncorrected=1");
  const auto ill = explain("bert-0" + where);
  EXPECT_EQ(ill.exit_code, 1);
  EXPECT_THAT(ill.out, HasSubstr("neuron1 is unhealthy: sram_ecc_uncorrected"));
  EXPECT_THAT(ill.out, HasSubstr("do    replace the instance"));
  const auto document = nlohmann::json::parse(explain("bert-0 --output json" + where).out);
  EXPECT_EQ(document["verdict"], "findings");
  EXPECT_EQ(document["containers"][0]["devices"][1]["health"]["reason"], "sram_ecc_uncorrected");
  EXPECT_EQ(explain("web" + where).exit_code, 0);
  EXPECT_THAT(explain("web" + where).out, HasSubstr("holds no Neuron core"));
}

// 128 ids are listed, so each is one physical core, although the node is now read with two per logical core.
TEST_F(ExplainCommand, CoreIdsMeanWhatTheyMeantWhenTheyWereGiven) {
  simulate("trn2.48xlarge");
  sim::test::KubeletTest kubelet;
  sim::test::TestPlugin cores(*kubelet, "aws.amazon.com/neuroncore", "core.sock", sim::test::numbered_devices(128));
  ASSERT_TRUE(cores.register_plugin().ok());
  ASSERT_TRUE(kubelet.reaches("aws.amazon.com/neuroncore", 128));
  ASSERT_TRUE(kubelet->admit(sim::test::pod_of("bert-0", {{"aws.amazon.com/neuroncore", 8}})));
  const auto told = explain("bert-0 --output json --kubelet-dir " + kubelet->dir());
  const auto devices = nlohmann::json::parse(told.out)["containers"][0]["devices"];
  std::size_t ids = 0;
  for (const auto& device : devices) ids += device["physical_cores"].size();
  EXPECT_EQ(ids, 8U) << told.out;
}

TEST_F(ExplainCommand, ACheckpointThatCannotBeReadIsSaid) {
  simulate("trn2.48xlarge");
  sim::test::KubeletTest kubelet;
  sim::test::TestPlugin cores(*kubelet, "aws.amazon.com/neuroncore", "core.sock", sim::test::numbered_devices(64));
  ASSERT_TRUE(cores.register_plugin().ok());
  ASSERT_TRUE(kubelet.reaches("aws.amazon.com/neuroncore", 64));
  ASSERT_TRUE(kubelet->admit(sim::test::pod_of("bert-0", {{"aws.amazon.com/neuroncore", 8}})));
  const std::string where = "bert-0 --kubelet-dir " + kubelet->dir();
  EXPECT_THAT(explain(where).out, Not(HasSubstr("checkpoint")));
  const std::filesystem::path checkpoint = kubelet->dir() + "/device-plugins/kubelet_internal_checkpoint";
  std::filesystem::remove(checkpoint);
  std::filesystem::create_directory(checkpoint);  // which cannot be read as a file
  EXPECT_THAT(explain(where).out, HasSubstr("The kubelet's checkpoint cannot be read: "));
  const auto document = nlohmann::json::parse(explain(where + " --output json").out);
  EXPECT_THAT(document["checkpoint_unread"].get<std::string>(), HasSubstr("kubelet_internal_checkpoint"));
  std::filesystem::remove(checkpoint);
  EXPECT_TRUE(nlohmann::json::parse(explain(where + " --output json").out)["checkpoint_unread"].is_null())
      << "where there is none, nothing is unread";
}

TEST_F(ExplainCommand, APodThatIsNotHereIsSuggestedOthers) {
  simulate("inf2.xlarge");
  sim::test::KubeletTest kubelet;
  ASSERT_TRUE(kubelet->admit(sim::test::pod_of("bert-0", {})));
  const auto outcome = explain("default/bret-0 --kubelet-dir " + kubelet->dir());
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_THAT(outcome.err, HasSubstr("no pod default/bret-0 on this node, of 1 that the kubelet lists here"));
  EXPECT_THAT(outcome.err, HasSubstr("did you mean default/bert-0?"));
  EXPECT_THAT(outcome.err, HasSubstr("kubectl get pods"));
}

TEST_F(ExplainCommand, AKubeletThatDoesNotAnswerIsSaid) {
  using Fault = fakes::PodResourcesFault;
  simulate("inf2.xlarge");
  for (const Fault fault : {Fault::error, Fault::oversized, Fault::hangs}) {
    fakes::FakeKubeletOptions options;
    options.faults.pod_resources = fault;
    sim::test::KubeletTest kubelet(std::move(options));
    const auto outcome = explain("bert-0 --timeout 2s --kubelet-dir " + kubelet->dir());
    EXPECT_EQ(outcome.exit_code, 2) << static_cast<int>(fault);
    EXPECT_THAT(outcome.err, HasSubstr("the kubelet does not list its pods' devices")) << static_cast<int>(fault);
  }
  const auto absent = explain("bert-0 --kubelet-dir " + (directory_ / "none").string() + " --output json");
  EXPECT_EQ(absent.exit_code, 2);
  EXPECT_EQ(nlohmann::json::parse(absent.out)["verdict"], "cannot_tell");
  EXPECT_THAT(explain("bert-0").err, HasSubstr("--kubelet-dir"));
}

TEST_F(ExplainCommand, ForeignNamesAreMadePrintable) {
  simulate("inf2.xlarge");
  sim::test::KubeletTest kubelet;
  const auto outcome = explain("\"$(printf 'x\\033[31m')\" --kubelet-dir " + kubelet->dir());
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace neuron
