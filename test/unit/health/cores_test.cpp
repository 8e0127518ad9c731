#include "agent/health/assess.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/core/make_host.h"

namespace neuron::test {
namespace {

using model::CoreSignals;
using model::Health;
using model::HealthState;
using model::HostScan;
using ::testing::HasSubstr;

constexpr std::size_t kDevice = 5;

// The verdicts after core 3 of one device counted one error more.
health::HealthResult after_growth(std::optional<std::uint64_t> CoreSignals::*counter) {
  health::HealthMemory memory;
  const HostScan sound = scan_of("trn2.48xlarge");
  HostScan scan = sound;
  (void)health::evaluate(scan, memory);
  scan = sound;
  scan.devices[kDevice].cores[3].*counter = 1;
  return health::evaluate(scan, memory);
}

TEST(HealthCores, AComputeErrorIsTheCoresOwn) {
  for (const auto counter : {&CoreSignals::hw_nc_ue_error, &CoreSignals::hw_error}) {
    const health::HealthResult result = after_growth(counter);
    EXPECT_EQ(result.devices[kDevice].state, HealthState::unhealthy) << "the device as a whole is not whole";
    ASSERT_EQ(result.cores[kDevice].size(), 8U);
    for (std::size_t core = 0; core < 8; ++core) {
      EXPECT_EQ(result.cores[kDevice][core].state, core == 3 ? HealthState::unhealthy : HealthState::healthy) << core;
    }
    EXPECT_THAT(result.cores[kDevice][3].sentence, HasSubstr("neuron5: core 3"));
    EXPECT_EQ(result.cores[kDevice + 1][3].state, HealthState::healthy);
  }
}

TEST(HealthCores, ErrorsInWhatAllShareAreTheDevices) {
  for (const auto counter :
       {&CoreSignals::hw_hbm_ue_error, &CoreSignals::hw_dma_abort_error, &CoreSignals::hw_repairable_hbm_ue_error}) {
    const health::HealthResult result = after_growth(counter);
    EXPECT_EQ(result.devices[kDevice].state, HealthState::unhealthy);
    for (const Health& core : result.cores[kDevice]) EXPECT_EQ(core, result.devices[kDevice]);
  }
}

TEST(HealthCores, ABrokenDeviceBreaksAllOfThem) {
  health::HealthMemory memory;
  HostScan scan = scan_of("trn2.48xlarge");
  scan.devices[kDevice].signals.sram_ecc_uncorrected = 1;
  scan.devices[kDevice].cores.erase(scan.devices[kDevice].cores.begin() + 3);
  const health::HealthResult result = health::evaluate(scan, memory);
  for (const Health& core : result.cores[kDevice]) EXPECT_EQ(core.reason, "sram_ecc_uncorrected");
}

TEST(HealthCores, ACoreWithoutItsFolderIsNotThere) {
  health::HealthMemory memory;
  HostScan scan = scan_of("trn2.48xlarge");
  scan.devices[kDevice].cores.erase(scan.devices[kDevice].cores.begin() + 3);
  const health::HealthResult result = health::evaluate(scan, memory);
  EXPECT_EQ(result.devices[kDevice].reason, "core_missing");
  EXPECT_EQ(result.cores[kDevice][3].reason, "core_missing");
  EXPECT_EQ(result.cores[kDevice][3].state, HealthState::unhealthy);
  EXPECT_EQ(result.cores[kDevice][2].state, HealthState::healthy);
  EXPECT_EQ(result.devices[kDevice + 1].state, HealthState::healthy);
}

TEST(HealthCores, AVanishedDeviceHasNoCoreLeft) {
  health::AssessMemory memory;
  HostScan scan = silent_scan("trn2.48xlarge");
  (void)health::assess(scan, memory, {});
  scan.devices.erase(scan.devices.begin() + kDevice);
  const health::Assessment node = health::assess(std::move(scan), memory, {});
  ASSERT_EQ(node.host.devices.size(), 16U);
  EXPECT_EQ(node.host.devices[kDevice].core_health.size(), 8U);
  for (const Health& core : node.host.devices[kDevice].core_health) EXPECT_EQ(core.reason, "device_vanished");
}

}  // namespace
}  // namespace neuron::test
