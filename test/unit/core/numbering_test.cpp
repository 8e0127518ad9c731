#include "agent/core/logical_cores.h"

#include <gtest/gtest.h>

#include "test/unit/core/make_host.h"

namespace neuron::test {
namespace {

model::HostScan trn2_with_lnc(int lnc) {
  model::HostScan scan = scan_of("trn2.48xlarge");
  scan.lnc = {lnc, model::Origin::live};
  return scan;
}

TEST(Numbering, PhysicalCoresAreTheDevicesElseTheTypes) {
  EXPECT_EQ(core::physical_cores_per_device(scan_of("trn2.48xlarge")), 8);
  model::HostScan scan = scan_of("inf1.6xlarge");
  scan.devices.clear();
  EXPECT_EQ(core::physical_cores_per_device(scan), 4);
  scan.instance_type = "nobody.knows";
  EXPECT_FALSE(core::physical_cores_per_device(scan));
  EXPECT_FALSE(core::physical_cores_per_device(scan_of("p5.48xlarge")));
}

TEST(Numbering, DevicesBesideCoreIdsTell) {
  const core::NumberingEvidence two = {{{{4, 5, 6, 7}, {1}}}, std::nullopt};
  const core::NumberingEvidence one = {{{{8, 9, 10, 11}, {1}}}, std::nullopt};
  for (const int now : {1, 2}) {
    EXPECT_EQ(core::lnc_in_use(two, trn2_with_lnc(now)), 2);
    EXPECT_EQ(core::lnc_in_use(one, trn2_with_lnc(now)), 1);
  }
}

TEST(Numbering, AnIdBeyondTheLastDeviceTells) {
  EXPECT_EQ(core::lnc_in_use({{{{100}, {}}}, std::nullopt}, trn2_with_lnc(2)), 1);
  EXPECT_EQ(core::lnc_in_use({{{{0}, {0}}}, 127}, trn2_with_lnc(2)), 1);
}

TEST(Numbering, WhereBothMakeSenseTheListedIdsDecideElseTheFile) {
  const core::NumberingEvidence::Given low = {{0, 1}, {0}};
  EXPECT_EQ(core::lnc_in_use({{low}, 63}, trn2_with_lnc(1)), 2) << "with LNC 1 there would have been 128";
  for (const int now : {1, 2}) EXPECT_EQ(core::lnc_in_use({{low}, std::nullopt}, trn2_with_lnc(now)), now);
}

TEST(Numbering, ContradictionsAndNothingHeldLeaveItAtTheFile) {
  const core::NumberingEvidence both = {{{{4, 5, 6, 7}, {1}}, {{8, 9}, {1}}}, 63};
  for (const int now : {1, 2}) {
    EXPECT_EQ(core::lnc_in_use(both, trn2_with_lnc(now)), now);
    EXPECT_EQ(core::lnc_in_use({{}, 63}, trn2_with_lnc(now)), now);
  }
}

TEST(Numbering, WhileTheFileIsUnreadOnlyEvidenceTells) {
  model::HostScan scan = trn2_with_lnc(1);
  scan.lnc.reset();
  scan.lnc_is_unread = true;
  EXPECT_FALSE(core::lnc_in_use({}, scan)) << "the default is not assumed";
  const core::NumberingEvidence::Given low = {{0, 1}, {0}};
  EXPECT_FALSE(core::lnc_in_use({{low}, std::nullopt}, scan)) << "either is possible";
  EXPECT_EQ(core::lnc_in_use({{low}, 63}, scan), 2);
  EXPECT_EQ(core::lnc_in_use({{{{8, 9}, {1}}}, std::nullopt}, scan), 1);
}

TEST(Numbering, ChipsWithoutAChoiceHaveNone) {
  EXPECT_EQ(core::lnc_in_use({{{{3}, {3}}}, 15}, scan_of("trn1.32xlarge")), 1);
}

TEST(Numbering, WithoutDevicesTheInstanceTypeTells) {
  model::HostScan scan;
  scan.instance_type = "trn2.48xlarge";
  EXPECT_EQ(core::lnc_in_use({}, scan), 2);
  EXPECT_EQ(core::lnc_in_use({{{{8}, {1}}}, std::nullopt}, scan), 1);
  scan.instance_type = "nobody.knows";
  EXPECT_FALSE(core::lnc_in_use({{{{8}, {1}}}, std::nullopt}, scan));
}

}  // namespace
}  // namespace neuron::test
