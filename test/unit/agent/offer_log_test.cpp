#include "plugin/daemon/machine_scans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace neuron::plugin {
namespace {

std::vector<std::string> lines(const std::string& type, int devices, const char* resources, const char* core_devices,
                               std::size_t efas = 0) {
  model::HostScan host;
  host.instance_type = type;
  for (int i = 0; i < devices; ++i) host.devices.emplace_back().index = i;
  host.efas.resize(efas);
  std::vector<std::string> texts;
  for (const OfferLine& line :
       offer_lines({*core::parse_resource_list(resources), *core::parse_core_devices(core_devices)}, host)) {
    texts.push_back((line.warning ? "warning: " : "") + line.text);
  }
  return texts;
}

TEST(OfferLog, SaysWhatMixingCostsAndNothingWhereNothingIsMixed) {
  EXPECT_THAT(lines("trn1.32xlarge", 16, "all", "off"),
              testing::ElementsAre(testing::HasSubstr("UnexpectedAdmissionError")));
  EXPECT_THAT(lines("trn1.32xlarge", 16, "neuron,efa", "off"), testing::IsEmpty());
  EXPECT_THAT(lines("p5.48xlarge", 0, "all", "off"), testing::IsEmpty());
}

TEST(OfferLog, SaysWhichDevicesASplitGivesToWhichName) {
  EXPECT_THAT(lines("trn1.32xlarge", 16, "all", "0-3,8"),
              testing::ElementsAre("devices offered only as cores: 0-3,8; only whole: 4-7,9-15"));
  EXPECT_THAT(lines("inf2.48xlarge", 5, "all", "all"),
              testing::ElementsAre("devices offered only as cores: 0-11; only whole: none"));
}

TEST(OfferLog, WarnsOfWhatIsNotThereAndOfWhatNobodyCanAskFor) {
  EXPECT_THAT(lines("inf2.48xlarge", 11, "all", "8-13"),
              testing::ElementsAre("devices offered only as cores: 8-11; only whole: 0-7",
                                   "warning: --core-devices names devices that this node does not have: 12-13"));
  EXPECT_THAT(lines("", 4, "neuroncore", "0-1"),
              testing::ElementsAre("devices offered only as cores: 0-1; only whole: none",
                                   testing::StartsWith("warning: devices 2-3 are not offered")));
}

TEST(OfferLog, WarnsWhereNothingOfTheHardwareIsOffered) {
  EXPECT_THAT(lines("inf2.24xlarge", 6, "efa", "off"),
              testing::ElementsAre(testing::AllOf(testing::StartsWith("warning: nothing of this node is offered: it "
                                                                      "has 6 Neuron devices and 0 EFA interfaces"),
                                                  testing::HasSubstr("--resources efa with --core-devices off"))));
  EXPECT_THAT(lines("p5.48xlarge", 0, "neuron", "off", 32),
              testing::ElementsAre(testing::HasSubstr("0 Neuron devices and 32 EFA interfaces")));
  EXPECT_THAT(lines("inf2.24xlarge", 6, "neuroncore,efa", "none"),
              testing::ElementsAre(testing::StartsWith("warning: nothing of this node is offered")));
  EXPECT_THAT(lines("inf2.24xlarge", 6, "neuroncore", "8-9"),
              testing::ElementsAre(testing::StartsWith("warning: nothing of this node is offered")));
  EXPECT_THAT(lines("p5.48xlarge", 0, "all", "off", 32), testing::IsEmpty());
  EXPECT_THAT(lines("m5.large", 0, "efa", "off"), testing::IsEmpty()) << "no hardware, nothing to say";
}

}  // namespace
}  // namespace neuron::plugin
