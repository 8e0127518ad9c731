#include "agent/core/hardware.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/core/make_host.h"

namespace neuron::core {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct Named {
  std::vector<int> devices;
  std::vector<int> cores;  // global logical ids
  std::vector<std::string> efas;
  friend bool operator==(const Named&, const Named&) = default;
};

Named named(const std::string& text, const model::HostScan& host) {
  const auto name = parse_pool_name(text);
  EXPECT_TRUE(name) << text;
  const Hardware hardware = name ? hardware_of(*name, host) : Hardware{};
  return {hardware.device_indices(), core_ids_of(hardware, host), hardware.efas};
}

TEST(PoolHardware, NamesBecomeDevicesCoresAndInterfaces) {
  const model::HostScan host = test::scan_of("trn1.32xlarge");  // 16 devices of 2 cores
  EXPECT_EQ(named("neuron-device-3", host), (Named{{3}, {6, 7}, {}}));
  EXPECT_EQ(named("neuron-device-3-core-1", host), (Named{{3}, {7}, {}}));
  EXPECT_EQ(named("neuron-group-4-7", host), (Named{{4, 5, 6, 7}, test::range_of(8, 8), {}}));
  EXPECT_EQ(named("efa-rdmap16s25", host), (Named{{}, {}, {"rdmap16s25"}}));
  EXPECT_THAT(named("neuron-node", host).cores, SizeIs(32));
}

TEST(PoolHardware, WhatTheNodeDoesNotHaveIsNothing) {
  const model::HostScan host = test::scan_of("inf2.48xlarge");  // 12 devices of 2 cores
  for (const char* text :
       {"neuron-device-12", "neuron-device-3-core-2", "neuron-group-12-15", "neuron-group-8-12", "efa-rdmap16s25"}) {
    EXPECT_EQ(named(text, host), Named{}) << text;
  }
  EXPECT_THAT(named_devices(DeviceName{12}, host), ElementsAre(12));
  EXPECT_THAT(named_devices(GroupName{8, 12}, host), IsEmpty());
}

TEST(PoolHardware, ARingGoesOnAtItsFirstDevice) {
  model::HostScan host = test::scan_of("inf2.48xlarge");
  EXPECT_THAT(named("neuron-group-10-1", host).devices, ElementsAre(0, 1, 10, 11));
  host.devices.erase(host.devices.begin() + 11);  // the ring is the instance type's, whoever is missing
  EXPECT_THAT(named("neuron-group-10-1", host).devices, ElementsAre(0, 1, 10));
  EXPECT_THAT(named_devices(GroupName{10, 1}, host), ElementsAre(10, 11, 0, 1));
}

TEST(PoolHardware, ADeviceOfUnknownCoresIsHeldAllTheSame) {
  model::HostScan host;
  host.devices.push_back({});
  host.devices[0].index = 0;
  EXPECT_EQ(named("neuron-device-0", host), (Named{{0}, {}, {}}));
  EXPECT_EQ(named("neuron-device-0-core-5", host), (Named{{0}, {}, {}}));
}

TEST(PoolHardware, CoresFollowTheLogicalCoreSize) {
  model::HostScan host = test::scan_of("trn2.48xlarge");  // 8 physical cores per device
  EXPECT_THAT(named("neuron-device-2-core-3", host).cores, ElementsAre(11));
  host.lnc = {1, model::Origin::live};
  EXPECT_THAT(named("neuron-device-2-core-3", host).cores, ElementsAre(19));
}

TEST(PoolHardware, OddNamesOfInterfacesAreFoundByTheirLabel) {
  model::HostScan host = test::scan_of("trn1.32xlarge");
  host.efas[0].name = "EFA odd";
  EXPECT_THAT(named("efa-" + efa_label("EFA odd"), host).efas, ElementsAre("EFA odd"));
}

}  // namespace
}  // namespace neuron::core
