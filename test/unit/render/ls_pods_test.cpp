// neuron-ls --pods: the real program and its helper against a kubelet stand-in.
#include <gmock/gmock.h>

#include "test/fakes/paths.h"
#include "test/unit/kubelet/test_plugin.h"
#include "test/unit/render/golden.h"
#include "test/unit/render/json_schema.h"
#include "test/unit/render/ls_program.h"

namespace neuron {
namespace {

using ::testing::HasSubstr;

class LsPods : public test::LsProgram {
 protected:
  static std::string arguments(sim::test::KubeletTest& kubelet) {
    return "--pods --efa --kubelet-dir " + kubelet->dir();
  }
};

TEST_F(LsPods, HoldersOfDevicesAndInterfacesAreNamed) {
  simulate("trn1.32xlarge");
  sim::test::KubeletTest kubelet;
  sim::test::TestPlugin chips(*kubelet, "aws.amazon.com/neuron", "chip.sock", sim::test::numbered_devices(2));
  sim::test::TestPlugin nics(*kubelet, "vpc.amazonaws.com/efa", "nic.sock", {{"rdmap16s25", true, {}}});
  ASSERT_TRUE(chips.register_plugin().ok());
  ASSERT_TRUE(nics.register_plugin().ok());
  ASSERT_TRUE(kubelet.reaches("aws.amazon.com/neuron", 2));
  ASSERT_TRUE(kubelet.reaches("vpc.amazonaws.com/efa", 1));
  ASSERT_TRUE(
      kubelet->admit(sim::test::pod_of("bert-0", {{"aws.amazon.com/neuron", 2}, {"vpc.amazonaws.com/efa", 1}})));
  const auto outcome = run(arguments(kubelet));
  EXPECT_EQ(outcome.err, "");
  EXPECT_THAT(outcome.out, HasSubstr("| default/bert-0 |\n"));
  EXPECT_THAT(outcome.out, HasSubstr("| 0-1     | 0-3      | rdmap16s25 |\n"));
  const auto report = test::parse_strictly(run(arguments(kubelet) + " --output-format json").out);
  ASSERT_TRUE(report);
  EXPECT_EQ((*report)["pods"][0]["core_ids"], (nlohmann::json{0, 1, 2, 3}));
  EXPECT_EQ((*report)["devices"][1]["pods"][0], "default/bert-0");
  EXPECT_TRUE((*report)["devices"][2]["pods"].empty());
}

TEST_F(LsPods, ClaimsAreShownBesideWhatDevicePluginsGave) {
  simulate("trn1.32xlarge");
  sim::test::KubeletTest kubelet;
  sim::test::TestPlugin chips(*kubelet, "aws.amazon.com/neuron", "chip.sock", sim::test::numbered_devices(1));
  ASSERT_TRUE(chips.register_plugin().ok());
  ASSERT_TRUE(kubelet.reaches("aws.amazon.com/neuron", 1));
  ASSERT_TRUE(kubelet->admit(sim::test::pod_of("bert-0", {{"aws.amazon.com/neuron", 1}})));
  sim::PodSpec claimed = sim::test::pod_of("train-0", {});
  claimed.containers[0].claims["chips"] = {"neuron-group-4-7", "efa-rdmap16s25"};
  claimed.containers[0].claims["one-core"] = {"neuron-device-9-core-1"};
  ASSERT_TRUE(kubelet->admit(claimed));
  const auto outcome = run(arguments(kubelet));
  EXPECT_EQ(outcome.err, "");
  EXPECT_THAT(outcome.out,
              HasSubstr("| default   | bert-0  | main      | -        | 0       | 0-1      | -          |\n"));
  EXPECT_THAT(outcome.out,
              HasSubstr("| default   | train-0 | main      | chips    | 4-7     | 8-15     | rdmap16s25 |\n"));
  EXPECT_THAT(outcome.out,
              HasSubstr("| default   | train-0 | main      | one-core | 9       | 19       | -          |\n"));
  const auto report = test::parse_strictly(run(arguments(kubelet) + " --output-format json").out);
  ASSERT_TRUE(report);
  EXPECT_TRUE((*report)["pods"][0]["claim"].is_null());
  EXPECT_EQ((*report)["pods"][1]["claim"], "chips");
  EXPECT_EQ((*report)["pods"][1]["claim_namespace"], "default");
  EXPECT_EQ((*report)["devices"][5]["pods"][0], "default/train-0");
  const auto other = run(arguments(kubelet) + " --dra-driver-name other.example.com --output-format json");
  EXPECT_EQ((*test::parse_strictly(other.out))["pods"].size(), 1U);
}

TEST_F(LsPods, APodWithAdminAccessHoldsNothing) {
  simulate("trn1.32xlarge");
  sim::test::KubeletTest kubelet;
  sim::PodSpec monitor = sim::test::pod_of("monitor", {});
  monitor.containers[0].claims["all"] = {"admin:neuron-device-4", "admin:neuron-group-8-11"};
  sim::PodSpec mixed = sim::test::pod_of("train-0", {});
  mixed.containers[0].claims["chips"] = {"neuron-device-4", "admin:neuron-device-4", "admin:neuron-device-5"};
  ASSERT_TRUE(kubelet->admit(monitor));
  ASSERT_TRUE(kubelet->admit(mixed));
  const auto report = test::parse_strictly(run(arguments(kubelet) + " --output-format json").out);
  ASSERT_TRUE(report);
  ASSERT_EQ((*report)["pods"].size(), 1U);
  EXPECT_EQ((*report)["pods"][0]["pod"], "train-0");
  EXPECT_EQ((*report)["pods"][0]["core_ids"], (nlohmann::json{8, 9}));
  EXPECT_EQ((*report)["devices"][4]["pods"], (nlohmann::json{"default/train-0"}));
  EXPECT_TRUE((*report)["devices"][5]["pods"].empty());
  EXPECT_TRUE((*report)["devices"][9]["pods"].empty());
}

TEST_F(LsPods, AKubeletThatDoesNotAnswerLeavesPodsUnknown) {
  using Fault = fakes::PodResourcesFault;
  simulate("inf2.xlarge");
  for (const Fault fault : {Fault::error, Fault::oversized, Fault::hangs}) {
    fakes::FakeKubeletOptions options;
    options.faults.pod_resources = fault;
    sim::test::KubeletTest kubelet(std::move(options));
    const auto outcome = run(arguments(kubelet));
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_THAT(outcome.err, HasSubstr("pods are unknown")) << static_cast<int>(fault);
    EXPECT_THAT(outcome.out, HasSubstr("| NA  |\n"));
  }
}

// The picture of README.md is what its own script draws; UPDATE_GOLDEN=1 draws it anew.
TEST_F(LsPods, ThePictureOfTheReadmeIsWhatTheProgramDraws) {
  const std::string script = fakes::source_dir() + "/docs/pictures/draw.sh";
  const std::string drawn = (directory_ / "drawn.svg").string();
  ASSERT_EQ(std::system((script + ' ' + fakes::bin_dir() + " > " + drawn).c_str()), 0);
  test::expect_golden_file("docs/pictures/trn2.svg", test::text_of(drawn));
}

}  // namespace
}  // namespace neuron
