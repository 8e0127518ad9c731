#include "agent/core/assess.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/core/make_host.h"

namespace neuron::core::test {
namespace {

using model::HealthState;
using model::HostScan;
using model::Presence;

TEST(Assess, AVanishedDeviceStaysListedUntilItIsBack) {
  AssessMemory memory;
  const HostScan sound = scan_of("trn1.32xlarge");
  (void)assess(sound, memory, {});
  for (int again = 0; again < 2; ++again) {
    HostScan scan = sound;
    scan.devices.erase(scan.devices.begin() + 3);
    const Assessment node = assess(std::move(scan), memory, {});
    ASSERT_EQ(node.host.devices.size(), 16U);
    ASSERT_EQ(node.devices.size(), 16U);
    const model::NeuronDevice& gone = node.host.devices[3];
    EXPECT_EQ(gone.index, 3);
    EXPECT_EQ(gone.presence, Presence::vanished);
    EXPECT_FALSE(gone.node_present);
    EXPECT_FALSE(gone.signals.sram_ecc_uncorrected) << "no stale numbers";
    EXPECT_EQ(gone.physical_cores, sound.devices[3].physical_cores);
    EXPECT_EQ(node.devices[3].reason, "device_vanished");
    EXPECT_EQ(node.devices[3].state, HealthState::unhealthy);
    EXPECT_EQ(node.devices[2].state, HealthState::healthy);
  }
  const Assessment back = assess(sound, memory, {});
  EXPECT_EQ(back.devices[3].state, HealthState::healthy);
  EXPECT_EQ(back.host.devices[3].presence, Presence::present);
}

TEST(Assess, AVanishedEfaStaysListedAndNoPeerMemoryIsFineWithoutNeuron) {
  AssessMemory memory;
  const HostScan sound = scan_of("p4d.24xlarge");
  HostScan scan = sound;
  scan.efas[0].p2p = "";
  EXPECT_EQ(assess(scan, memory, {}).efas[0].state, HealthState::healthy);
  scan = sound;
  scan.efas.erase(scan.efas.begin() + 2);
  const Assessment node = assess(std::move(scan), memory, {});
  ASSERT_EQ(node.host.efas.size(), 4U);
  EXPECT_EQ(node.host.efas[2].name, sound.efas[2].name);
  EXPECT_EQ(node.host.efas[2].presence, Presence::vanished);
  EXPECT_EQ(node.efas[2].reason, "efa_vanished");
  EXPECT_EQ(node.efas[1].state, HealthState::healthy);
}

TEST(Assess, AnInterfaceThatLosesItsDriverKeepsItsName) {
  AssessMemory memory;
  const HostScan sound = scan_of("trn1.32xlarge");
  (void)assess(sound, memory, {});
  HostScan scan = sound;
  scan.efas[0].driver_bound = false;
  scan.efas[0].name.clear();
  const Assessment node = assess(std::move(scan), memory, {});
  EXPECT_EQ(node.host.efas[0].name, sound.efas[0].name) << "the kubelet must see the same id turn unhealthy";
  EXPECT_EQ(node.efas[0].reason, "efa_driver_unbound");
}

}  // namespace
}  // namespace neuron::core::test
