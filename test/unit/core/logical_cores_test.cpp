#include "agent/core/logical_cores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/core/make_host.h"

namespace neuron::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(LogicalCores, DefaultLncOfTrainium2PairsCores) {
  const model::HostScan scan = scan_of("trn2.48xlarge");
  EXPECT_EQ(core::logical_cores_of(scan.devices[3], scan), 4);
  EXPECT_EQ(core::cores_per_device(scan), 4);
  EXPECT_THAT(core::core_ids_of(scan.devices[3], scan), ElementsAre(12, 13, 14, 15));
}

TEST(LogicalCores, Lnc1ShowsEveryPhysicalCore) {
  model::HostScan scan = silent_scan("trn2.48xlarge");
  scan.lnc = model::Sourced<int>{1, model::Origin::live};
  scan = core::complete(scan);
  EXPECT_EQ(core::cores_per_device(scan), 8);
  EXPECT_THAT(core::core_ids_of(scan.devices[15], scan), ElementsAre(120, 121, 122, 123, 124, 125, 126, 127));
}

TEST(LogicalCores, AMissingDeviceLeavesAHole) {
  model::HostScan scan = scan_of("trn1.32xlarge");
  scan.devices.erase(scan.devices.begin() + 3);
  EXPECT_THAT(core::core_ids_of(scan.devices[2], scan), ElementsAre(4, 5));
  EXPECT_THAT(core::core_ids_of(scan.devices[3], scan), ElementsAre(8, 9));
}

TEST(LogicalCores, TheStrideIsThatOfTheLargestDevice) {
  model::HostScan scan = scan_of("inf2.24xlarge");
  scan.devices[0].physical_cores = model::Sourced<int>{1, model::Origin::live};
  EXPECT_THAT(core::core_ids_of(scan.devices[0], scan), ElementsAre(0));
  EXPECT_THAT(core::core_ids_of(scan.devices[1], scan), ElementsAre(2, 3));
}

TEST(LogicalCores, UnknownCountsGiveNone) {
  model::HostScan scan = scan_of("trn1.2xlarge");
  const model::HostScan good = scan;
  scan.lnc.reset();
  EXPECT_FALSE(core::logical_cores_of(scan.devices[0], scan));
  EXPECT_EQ(core::cores_per_device(scan), 0);
  EXPECT_THAT(core::core_ids_of(scan.devices[0], scan), IsEmpty());
  for (const int nonsense : {0, -1, 3, 1 << 30}) {
    scan.lnc = model::Sourced<int>{nonsense, model::Origin::live};
    EXPECT_FALSE(core::logical_cores_of(scan.devices[0], scan)) << nonsense;
  }
  scan = good;
  for (const int nonsense : {0, -5, 1 << 30}) {
    scan.devices[0].physical_cores->value = nonsense;
    EXPECT_FALSE(core::logical_cores_of(scan.devices[0], scan)) << nonsense;
  }
  EXPECT_EQ(core::cores_per_device({}), 0);
}

TEST(LogicalCores, PhysicalOnesFollowTheDriverElseTheFamily) {
  model::HostScan scan = scan_of("trn2.48xlarge");
  model::NeuronDevice& device = scan.devices[0];
  EXPECT_EQ(core::physical_cores_of(device, scan, 0), (std::vector<int>{4, 5}));
  EXPECT_EQ(core::physical_cores_of(device, scan, 3), (std::vector<int>{0, 1}));
  EXPECT_TRUE(core::physical_cores_of(device, scan, 4).empty());
  EXPECT_TRUE(core::physical_cores_of(device, scan, -1).empty());
  device.logical_to_physical = {7, 6, 5, 4, 3, 2, 1, 0};
  EXPECT_EQ(core::physical_cores_of(device, scan, 0), (std::vector<int>{7, 6}));
  device.logical_to_physical = {7, 6};
  EXPECT_EQ(core::physical_cores_of(device, scan, 0), (std::vector<int>{4, 5})) << "an answer for some cores only";
  device.physical_cores.reset();
  EXPECT_TRUE(core::physical_cores_of(device, scan, 0).empty());
  const model::HostScan trn1 = scan_of("trn1.32xlarge");
  EXPECT_EQ(core::physical_cores_of(trn1.devices[3], trn1, 1), (std::vector<int>{1}));
}

}  // namespace
}  // namespace neuron::test
