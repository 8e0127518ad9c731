// Values that are no measurements: registers that read ones, and health files that nothing fills.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "agent/health/assess.h"
#include "test/unit/core/make_host.h"

namespace neuron::test {
namespace {

using model::Health;
using model::HealthState;
using model::HostScan;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using D = model::NeuronDevice;

// Registers that read ones, as each driver prints them (docs/reference/driver.md#off-the-bus).
struct OffTheBus {
  std::string name;
  std::string type;
  std::string driver;
  std::function<void(D&)> apply;
};

std::vector<OffTheBus> off_the_bus() {
  const auto read_ones = [](std::uint64_t uncorrected, std::uint64_t repairable) {
    return [=](D& d) {
      d.serial_all_ones = true;
      d.signals.sram_ecc_uncorrected = 65535;
      d.signals.mem_ecc_uncorrected = uncorrected;
      d.signals.mem_ecc_repairable_uncorrected = repairable;
    };
  };
  return {
      {"v2_14_5", "trn1.32xlarge", "2.14.5.0",
       [](D& d) {
         d.signals.sram_ecc_uncorrected = 65535;
         d.signals.mem_ecc_uncorrected = 131070;
       }},
      {"v2_22_2", "trn2.48xlarge", "2.22.2.0", read_ones(262140, 0)},
      {"v2_24_7", "trn2.48xlarge", "2.24.7.0", read_ones(0, 0)},
      {"v2_24_7_trn1", "trn1.32xlarge", "2.24.7.0", read_ones(131070, 0)},
      {"v2_26_5", "trn2.48xlarge", "2.26.5.0", read_ones(60, 16380)},
      {"v2_26_5_trn1", "trn1.32xlarge", "2.26.5.0", read_ones(30, 0)},
      {"v2_26_5_trn3", "trn3p.48xlarge", "2.26.5.0", read_ones(60, 16380)},
      {"v2_29", "trn3p.48xlarge", "2.29.1.0",
       [](D& d) {
         d.serial_all_ones = true;
         d.signals.sram_ecc_uncorrected = d.signals.sram_ecc_errors = 65535;
         d.signals.mem_ecc_uncorrected = d.signals.hbm_ecc_errors = 60;
         d.signals.mem_ecc_repairable_uncorrected = d.signals.repairable_hbm_ecc_errors = 16380;
       }},
      {"v2_30_2", "trn2.48xlarge", "2.30.2.0",
       [](D& d) {
         d.serial_all_ones = true;
         d.signals.sram_ecc_uncorrected = d.signals.sram_ecc_corrected = d.signals.mem_ecc_corrected = 65535;
         d.signals.mem_ecc_uncorrected = 60;
         d.signals.mem_ecc_repairable_uncorrected = 16380;
         d.signals.heartbeat = 255;
         d.signals.unhealthy_components = {{"hbm", "firmware_service_api", "sram", "link_host"}};
       }},
  };
}

void PrintTo(const OffTheBus& row, std::ostream* out) {
  *out << row.type << " with " << row.driver;
}

class EveryDriverOffTheBus : public ::testing::TestWithParam<OffTheBus> {};

TEST_P(EveryDriverOffTheBus, IsSaidToBeSoAndGivesNoNumbers) {
  health::HealthMemory memory;
  const HostScan sound = scan_of(GetParam().type);
  HostScan scan = sound;
  scan.driver_version = GetParam().driver;
  GetParam().apply(scan.devices[3]);
  const health::HealthResult result = health::evaluate(scan, memory);
  const Health& health = result.devices[3];
  EXPECT_EQ(health.reason, "reads_all_ones") << health.sentence;
  EXPECT_EQ(health.state, HealthState::unhealthy) << "it must not be offered";
  EXPECT_THAT(health.sentence, HasSubstr("neuron3 is off the bus"));
  EXPECT_THAT(health.sentence, Not(AnyOf(HasSubstr("errors"), HasSubstr(" 60"), HasSubstr(" 30"))));
  EXPECT_THAT(health.action, HasSubstr("replace the instance"));
  EXPECT_THAT(result.bases[3].all_ones, Not(IsEmpty()));
  const model::DeviceSignals& left = scan.devices[3].signals;
  model::DeviceSignals expected;
  expected.unreachable = left.unreachable;
  expected.reset_state = left.reset_state;
  EXPECT_EQ(left, expected) << "no such number may reach a metric";
}

INSTANTIATE_TEST_SUITE_P(NoMeasurement, EveryDriverOffTheBus, ::testing::ValuesIn(off_the_bus()),
                         [](const auto& suite) { return suite.param.name; });

TEST(NoMeasurement, OneRegisterOfOnesAloneDoesNotProveThatADeviceIsGone) {
  health::HealthMemory memory;
  HostScan scan = scan_of("trn2.48xlarge");
  scan.devices[1].serial_all_ones = true;
  scan.devices[2].signals.mem_ecc_uncorrected = 60;
  scan.devices[2].signals.mem_ecc_repairable_uncorrected = 16380;
  scan.devices[4].signals.mem_ecc_uncorrected = 131070;
  const health::HealthResult result = health::evaluate(scan, memory);
  for (const std::size_t i : {1U, 2U, 4U}) {
    EXPECT_EQ(result.devices[i].reason, "reads_all_ones") << i;
    EXPECT_EQ(result.devices[i].state, HealthState::unknown) << i;
    EXPECT_FALSE(result.bases[i].off_the_bus) << i;
  }
  EXPECT_FALSE(scan.devices[2].signals.mem_ecc_uncorrected);
  EXPECT_FALSE(scan.devices[2].signals.mem_ecc_repairable_uncorrected);
  EXPECT_FALSE(scan.devices[4].signals.mem_ecc_uncorrected);
}

// nmetric_log_posts=0: the driver never starts the thread that reads the health registers.
TEST(NoMeasurement, WithoutTheDriversThreadHealthIsNotMeasured) {
  health::HealthMemory memory;
  HostScan scan = scan_of("trn2.48xlarge");
  scan.driver_settings.posts_metrics = false;
  for (D& device : scan.devices) {
    device.signals.heartbeat = device.signals.hw_error_events = 0;
  }
  scan.devices[7].signals.sram_ecc_uncorrected = 2;  // read at the moment, whatever the thread does
  const health::HealthResult result = health::evaluate(scan, memory);
  const Health& health = result.devices[3];
  EXPECT_EQ(health.reason, "health_not_measured");
  EXPECT_EQ(health.state, HealthState::unknown);
  EXPECT_THAT(health.sentence, HasSubstr("nmetric_log_posts is 0"));
  EXPECT_THAT(health.sentence, Not(HasSubstr("neuron3"))) << "the same words for all";
  EXPECT_THAT(health.action, HasSubstr("nmetric_log_posts=1"));
  EXPECT_EQ(result.devices[4], health);
  EXPECT_EQ(result.devices[7].reason, "sram_ecc_uncorrected");
  for (const D& device : scan.devices) {
    EXPECT_FALSE(device.signals.heartbeat) << "not measured is not 0";
    EXPECT_FALSE(device.signals.unhealthy_components);
    EXPECT_FALSE(device.signals.hw_error_events);
  }
}

TEST(NoMeasurement, AThreadThatRanMeasuresWhateverTheParameterSaysSince) {
  health::HealthMemory memory;
  HostScan scan = scan_of("trn2.48xlarge");
  scan.driver_settings.posts_metrics = false;  // written while the driver runs: no effect until it is loaded anew
  EXPECT_EQ(health::evaluate(scan, memory).devices[3].state, HealthState::healthy);
  scan.devices[3].signals.heartbeat = 0;  // after 255
  scan.devices[3].signals.hw_error_events = 1;
  EXPECT_EQ(health::evaluate(scan, memory).devices[3].state, HealthState::healthy);
  for (D& device : scan.devices) device.signals.heartbeat = device.signals.hw_error_events = 0;
  scan.driver_settings.posts_metrics.reset();  // a zero that every heartbeat passes
  EXPECT_EQ(health::evaluate(scan, memory).devices[3].state, HealthState::healthy);
}

TEST(NoMeasurement, CachedCountsOfOlderDriversAreNotMeasuredEither) {
  health::HealthMemory memory;
  HostScan scan = scan_of("trn3p.48xlarge");
  scan.driver_version = "2.29.1.0";
  scan.driver_settings.posts_metrics = false;
  for (D& device : scan.devices) {
    device.signals.heartbeat.reset();
    device.signals.unhealthy_components.reset();
    device.signals.hbm_ecc_errors = device.signals.repairable_hbm_ecc_errors = device.signals.sram_ecc_errors = 0;
  }
  EXPECT_EQ(health::evaluate(scan, memory).devices[3].reason, "health_not_measured");
  EXPECT_FALSE(scan.devices[3].signals.hbm_ecc_errors);
  EXPECT_EQ(scan.devices[3].signals.mem_ecc_uncorrected, 0U) << "read at the moment";
}

// enable_sysfs_health_status_nodes=0: no reload helps that keeps the parameter.
TEST(NoMeasurement, FilesThatAParameterTakesAwayAreNotMeasured) {
  health::HealthMemory memory;
  HostScan scan = scan_of("trn2.48xlarge");
  for (D& device : scan.devices) {
    device.signals.heartbeat.reset();
    device.signals.unhealthy_components.reset();
  }
  HostScan unexplained = scan;
  scan.driver_settings.shows_health_files = false;
  const health::HealthResult result = health::evaluate(scan, memory);
  EXPECT_EQ(result.devices[3].reason, "health_not_measured");
  EXPECT_THAT(result.devices[3].sentence, HasSubstr("enable_sysfs_health_status_nodes is 0"));
  EXPECT_THAT(result.devices[3].action, HasSubstr("enable_sysfs_health_status_nodes=1"));
  EXPECT_THAT(result.missing, IsEmpty());
  EXPECT_EQ(health::evaluate(unexplained, memory).devices[3].reason, "signals_missing");
  HostScan trn1 = scan_of("trn1.32xlarge");  // has no such files anyway
  trn1.driver_settings.shows_health_files = trn1.driver_settings.posts_metrics = false;
  for (D& device : trn1.devices) {
    device.signals.heartbeat.reset();
    device.signals.unhealthy_components.reset();
  }
  EXPECT_EQ(health::evaluate(trn1, memory).devices[3].state, HealthState::healthy);
}

}  // namespace
}  // namespace neuron::test
