#include "agent/health/kernel_errors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/health/assess.h"
#include "agent/model/snapshot.h"
#include "test/unit/core/make_host.h"

namespace neuron::health {
namespace {

using model::Health;
using model::HealthState;
using model::HostScan;
using model::KernelErrorKind;
using model::KernelLogError;
using model::KernelLogState;
using ::testing::HasSubstr;

constexpr std::size_t kDevice = 5;

KernelLogError error_of(KernelErrorKind kind, std::optional<int> device = 5, std::optional<int> core = std::nullopt) {
  KernelLogError error;
  error.kind = kind;
  error.name = "NAME";
  error.device = device;
  error.core = core;
  error.lines = 1;
  return error;
}

HostScan with(KernelLogError error, const std::string& type = "trn1.32xlarge") {
  HostScan scan = test::scan_of(type);
  scan.kernel_log.state = KernelLogState::reading;
  scan.kernel_log.errors = {std::move(error)};
  return scan;
}

HostScan assessed(HostScan scan, SteadyTime now = {}) {
  AssessMemory memory;
  return assess(std::move(scan), memory, now).host;
}

Health verdict_of(KernelErrorKind kind, const std::string& action = "") {
  KernelLogError error = error_of(kind);
  error.action = action;
  const HostScan host = assessed(with(std::move(error)));
  EXPECT_EQ(host.devices[kDevice + 1].health, (Health{HealthState::healthy, "", "", ""}));
  EXPECT_EQ(host.kernel_log.node_health.state, HealthState::healthy);
  return host.devices[kDevice].health;
}

// The reasons, and with them the advice, are those of the files that say the same.
TEST(KernelVerdicts, SayWhatTheFilesSay) {
  const auto reason = [](KernelErrorKind kind) {
    const Health health = verdict_of(kind);
    EXPECT_EQ(health.state, HealthState::unhealthy);
    EXPECT_THAT(health.sentence, HasSubstr("neuron5: the kernel log reports NEURON_HW_ERR=NAME"));
    return health.reason + ": " + health.action.substr(0, health.action.find(' '));
  };
  EXPECT_EQ(reason(KernelErrorKind::sram), "sram_ecc_uncorrected: replace");
  EXPECT_EQ(reason(KernelErrorKind::core), "hw_nc_ue_error: replace");
  EXPECT_EQ(reason(KernelErrorKind::hbm), "mem_ecc_uncorrected: replace");
  EXPECT_EQ(reason(KernelErrorKind::hbm_repairable), "mem_ecc_repairable_uncorrected: drain");
  EXPECT_EQ(reason(KernelErrorKind::dma), "hw_dma_abort_error: replace");
}

TEST(KernelVerdicts, AKindThatIsNotKnownCountsByItsAction) {
  EXPECT_EQ(verdict_of(KernelErrorKind::other).reason, "kernel_log_error");
  EXPECT_EQ(verdict_of(KernelErrorKind::other).state, HealthState::degraded);
  EXPECT_EQ(verdict_of(KernelErrorKind::other, "TERMINATE_INSTANCE").reason, "hw_error");
  EXPECT_THAT(verdict_of(KernelErrorKind::other, "TERMINATE_INSTANCE").sentence,
              HasSubstr("(action=TERMINATE_INSTANCE)"));
}

TEST(KernelVerdicts, AHangOfCollectivesWithholdsNothingAndPasses) {
  KernelLogError error = error_of(KernelErrorKind::collectives);
  error.last_at = std::chrono::hours(1);
  const SteadyTime at(error.last_at);
  EXPECT_EQ(assessed(with(error), at).devices[kDevice].health.reason, "hang_on_collectives");
  EXPECT_EQ(assessed(with(error), at).devices[kDevice].health.state, HealthState::degraded);
  EXPECT_EQ(assessed(with(error), at + kHangHolds).devices[kDevice].health.state, HealthState::degraded);
  EXPECT_EQ(assessed(with(error), at + kHangHolds + std::chrono::seconds(1)).devices[kDevice].health.state,
            HealthState::healthy);
}

TEST(KernelVerdicts, OnlyWithOneCoreEachIsTheNumberThatOfACore) {
  const HostScan one = assessed(with(error_of(KernelErrorKind::core, 5, 1)));
  EXPECT_EQ(one.devices[kDevice].health.state, HealthState::unhealthy);
  EXPECT_EQ(one.devices[kDevice].core_health[0].state, HealthState::healthy);
  EXPECT_EQ(one.devices[kDevice].core_health[1].reason, "hw_nc_ue_error");
  EXPECT_THAT(one.devices[kDevice].core_health[1].sentence, HasSubstr("of core 1"));
  const HostScan two = assessed(with(error_of(KernelErrorKind::core, 5, 1), "trn2.48xlarge"));
  for (const Health& core : two.devices[kDevice].core_health) EXPECT_EQ(core.state, HealthState::unhealthy);
}

// What is advised for the others, a reload, would hide it.
TEST(KernelVerdicts, AFaultThatOnlyAnotherInstanceCuresComesFirst) {
  HostScan scan = with(error_of(KernelErrorKind::sram));
  scan.devices[kDevice].signals.mem_ecc_repairable_uncorrected = 1;
  EXPECT_EQ(assessed(scan).devices[kDevice].health.reason, "sram_ecc_uncorrected");
  scan.devices[kDevice].node_present = false;
  EXPECT_EQ(assessed(scan).devices[kDevice].health.reason, "sram_ecc_uncorrected");
  scan.devices[kDevice].presence = model::Presence::vanished;
  EXPECT_EQ(assessed(scan).devices[kDevice].health.reason, "sram_ecc_uncorrected");
}

TEST(KernelVerdicts, SoItDoesAmongWhatTheFilesSay) {
  HostScan scan = test::scan_of("trn2.48xlarge");
  auto& device = scan.devices[kDevice];
  device.signals.mem_ecc_repairable_uncorrected = 1;
  device.signals.unhealthy_components = {{"link_efa"}};
  EXPECT_EQ(assessed(scan).devices[kDevice].health.reason, "unhealthy_components");
  device.signals = {};
  device.signals.unreachable = true;
  device.node_present = false;
  EXPECT_EQ(assessed(scan).devices[kDevice].health.reason, "device_unreachable");
}

TEST(KernelVerdicts, SoItDoesOfACoreWithoutAFolder) {
  HostScan scan = with(error_of(KernelErrorKind::core, 5, 1));
  auto& device = scan.devices[kDevice];
  std::erase_if(device.cores, [](const model::CoreSignals& core) { return core.physical_index == 1; });
  ASSERT_EQ(device.cores.size(), 1U);
  const auto seen = assessed(scan).devices[kDevice];
  EXPECT_EQ(seen.health.reason, "hw_nc_ue_error");
  EXPECT_EQ(seen.core_health[0].state, HealthState::healthy);
  EXPECT_EQ(seen.core_health[1].reason, "hw_nc_ue_error");
}

TEST(KernelVerdicts, SoItDoesOfTheNode) {
  HostScan scan = with(error_of(KernelErrorKind::hbm_repairable, std::nullopt));
  scan.kernel_log.errors.push_back(error_of(KernelErrorKind::dma, std::nullopt));
  EXPECT_EQ(assessed(scan).kernel_log.node_health.reason, "hw_dma_abort_error");
}

// Also in the first scan of a process: the log is older.
TEST(KernelVerdicts, ADeviceThatIsNotThereKeepsAFaultThatOnlyAnotherInstanceCures) {
  HostScan scan = with(error_of(KernelErrorKind::core, 5, 1));
  scan.devices[kDevice].presence = model::Presence::vanished;
  const auto device = assessed(scan).devices[kDevice];
  EXPECT_EQ(device.health.reason, "hw_nc_ue_error");
  EXPECT_THAT(device.health.sentence, HasSubstr("neuron5 vanished from sys/class/neuron_device; before that: "));
  for (const Health& core : device.core_health) EXPECT_EQ(core.state, HealthState::unhealthy) << "they left with it";
}

TEST(KernelVerdicts, SoDoesADeviceOffTheBus) {
  KernelLogError error = error_of(KernelErrorKind::sram);
  error.serial = "19fcda00f5ff6eb9";
  HostScan scan = with(error);
  scan.devices[kDevice].serial = model::kSerialOfOnes;
  scan.devices[kDevice].serial_all_ones = true;
  scan.devices[kDevice].signals.sram_ecc_uncorrected = 65535;
  const auto device = assessed(scan).devices[kDevice];
  EXPECT_EQ(device.health.reason, "sram_ecc_uncorrected");
  EXPECT_THAT(device.health.sentence, HasSubstr("neuron5 is off the bus"));
  EXPECT_THAT(device.health.sentence, HasSubstr("; before that: neuron5: the kernel log reports"));
  EXPECT_THAT(device.health.action, HasSubstr("replace the instance (terminate"));
}

TEST(KernelVerdicts, ADeviceThatIsNotThereHasNoLesserFault) {
  HostScan scan = with(error_of(KernelErrorKind::hbm_repairable));
  scan.devices[kDevice].presence = model::Presence::vanished;
  EXPECT_EQ(assessed(scan).devices[kDevice].health.reason, "device_vanished");
}

TEST(KernelVerdicts, DegradedIsToldBeforeUnknown) {
  HostScan scan = test::scan_of("trn2.48xlarge");
  scan.layout = model::DriverLayout::unknown;
  scan.devices[kDevice].signals.reset_state = 0;
  EXPECT_EQ(assessed(scan).devices[kDevice].health.reason, "resetting");
  EXPECT_EQ(assessed(scan).devices[kDevice + 1].health.reason, "unknown_layout");
}

TEST(KernelVerdicts, OfACoreItComesBeforeAReloadOfTheDevice) {
  HostScan scan = with(error_of(KernelErrorKind::core, 5, 1));
  scan.devices[kDevice].signals.mem_ecc_repairable_uncorrected = 1;
  const auto device = assessed(scan).devices[kDevice];
  EXPECT_EQ(device.health.reason, "hw_nc_ue_error");
  EXPECT_EQ(device.core_health[0].reason, "mem_ecc_repairable_uncorrected");
  EXPECT_EQ(device.core_health[1].reason, "hw_nc_ue_error");
}

TEST(KernelVerdicts, TheFilesAreHeardFirst) {
  HostScan scan;
  scan = with(error_of(KernelErrorKind::collectives));
  scan.devices[kDevice].signals.sram_ecc_uncorrected = 1;
  EXPECT_EQ(assessed(scan).devices[kDevice].health.reason, "sram_ecc_uncorrected");
}

TEST(KernelVerdicts, AnotherChipInItsPlaceIsHealthy) {
  KernelLogError error = error_of(KernelErrorKind::sram);
  error.serial = "19fcda00f5ff6eb9";
  HostScan scan = with(error);
  scan.devices[kDevice].serial = "19FCDA00F5FF6EB9";
  EXPECT_EQ(assessed(scan).devices[kDevice].health.state, HealthState::unhealthy);
  scan.devices[kDevice].serial = "19fcda00f5ff6eb8";
  EXPECT_EQ(assessed(scan).devices[kDevice].health.state, HealthState::healthy);
}

TEST(KernelVerdicts, ALineWithoutADeviceIsTheNodes) {
  const HostScan host = assessed(with(error_of(KernelErrorKind::sram, std::nullopt)));
  for (const auto& device : host.devices) EXPECT_EQ(device.health.state, HealthState::healthy);
  EXPECT_EQ(host.kernel_log.node_health.reason, "sram_ecc_uncorrected");
  EXPECT_THAT(host.kernel_log.node_health.sentence, HasSubstr("names no device"));
  const auto changes = model::diff(assessed(test::scan_of("trn1.32xlarge")), host);
  ASSERT_EQ(changes.units.size(), 1U);
  EXPECT_EQ(changes.units[0].name, "node");
}

TEST(KernelVerdicts, OfTheNodeThereIsNoneWhereNobodyReads) {
  HostScan scan = test::scan_of("trn1.32xlarge");
  for (const auto state : {KernelLogState::off, KernelLogState::denied, KernelLogState::broken}) {
    scan.kernel_log.state = state;
    EXPECT_FALSE(model::is_assessed(assessed(scan).kernel_log.node_health));
  }
  scan.kernel_log.state = KernelLogState::reading;
  const auto changes = model::diff(test::scan_of("trn1.32xlarge"), assessed(scan));
  for (const auto& unit : changes.units) EXPECT_NE(unit.name, "node");
}

}  // namespace
}  // namespace neuron::health
