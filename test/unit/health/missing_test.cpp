#include "agent/health/assess.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "test/unit/core/make_host.h"

namespace neuron::test {
namespace {

using model::HealthState;
using model::HostScan;
using model::NeuronDevice;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

void drop_hardware(NeuronDevice& device) {
  const auto reset = device.signals.reset_state;
  device.signals = {};
  device.signals.reset_state = reset;
}
void drop_status(NeuronDevice& device) {
  for (model::CoreSignals& core : device.cores) core = {core.physical_index, 0, {}, {}, {}, {}, {}};
}
void drop_health_status(NeuronDevice& device) {
  device.signals.unhealthy_components.reset();
  device.signals.heartbeat.reset();
  device.signals.unreachable.reset();
}

// All devices of a machine after the same change.
HostScan changed(const std::string& type, const std::string& driver, const std::function<void(NeuronDevice&)>& change) {
  HostScan scan = silent_scan(type);
  scan.driver_version = driver;
  for (NeuronDevice& device : scan.devices) change(device);
  return scan;
}

struct Case {
  const char* type;
  const char* driver;
  void (*change)(NeuronDevice&);
  const char* path;  // in what is said
};

class WhatAllLack : public ::testing::TestWithParam<Case> {};

TEST_P(WhatAllLack, MakesHealthUnknownAndIsSaidOnce) {
  health::AssessMemory memory;
  const Case& one = GetParam();
  const health::Assessment node = health::assess(changed(one.type, one.driver, one.change), memory, {});
  ASSERT_FALSE(node.host.devices.empty());
  for (const NeuronDevice& device : node.host.devices) {
    const model::Health& health = device.health;
    EXPECT_EQ(health.state, HealthState::unknown);
    EXPECT_EQ(health.reason, "signals_missing");
    EXPECT_EQ(health, node.host.devices.front().health) << "one sentence for all";
  }
  EXPECT_THAT(node.host.devices.front().health.sentence, HasSubstr(one.path));
  ASSERT_THAT(node.host.problems, SizeIs(1));
  EXPECT_THAT(sentence(node.host.problems[0]), HasSubstr("neuron*/"));
  EXPECT_THAT(sentence(node.host.problems[0]), HasSubstr(one.path));
}

INSTANTIATE_TEST_SUITE_P(
    HealthMissing, WhatAllLack,
    ::testing::Values(Case{"trn1.32xlarge", "2.30.2.0", drop_hardware, "stats/hardware/sram_ecc_uncorrected"},
                      Case{"trn1.32xlarge", "2.24.7.0", drop_hardware, "stats/hardware/sram_ecc_uncorrected"},
                      Case{"inf2.48xlarge", "2.30.2.0", drop_hardware, "stats/hardware/sram_ecc_uncorrected"},
                      Case{"trn2.48xlarge", "2.30.2.0", drop_hardware, "stats/hardware/sram_ecc_uncorrected"},
                      Case{"trn1.32xlarge", "2.30.2.0", drop_status, "neuron_core*/stats/status/hw_nc_ue_error/total"},
                      Case{"trn2.48xlarge", "2.30.2.0", drop_health_status, "unhealthy_components"},
                      // No number: what other files show counts.
                      Case{"trn1.32xlarge", "2.x.8072.0", drop_hardware, "stats/hardware/sram_ecc_uncorrected"},
                      Case{"trn1.32xlarge", "", drop_status, "neuron_core*/stats/status/hw_nc_ue_error/total"}));

TEST(HealthMissing, WhatADriverNeverHadIsNotMissed) {
  const std::vector<Case> sound = {
      {"trn1.32xlarge", "2.13.0.0", drop_hardware, ""},       // ECC came with 2.14.5
      {"trn2.48xlarge", "2.27.4.0", drop_health_status, ""},  // health_status with 2.28
      {"trn2.48xlarge", "2.29.0.0", drop_health_status, ""},  // on Trainium2 perhaps with 2.30.2 only
      {"trn1.32xlarge", "2.30.2.0", drop_health_status, ""},  // never on Trainium1
  };
  for (const Case& one : sound) {
    health::AssessMemory memory;
    HostScan scan = changed(one.type, one.driver, one.change);
    scan.layout = model::DriverLayout::stats;
    const health::Assessment node = health::assess(std::move(scan), memory, {});
    for (const NeuronDevice& device : node.host.devices) {
      const model::Health& health = device.health;
      EXPECT_EQ(health.state, HealthState::healthy) << one.type << ' ' << one.driver << ' ' << health.sentence;
    }
    EXPECT_THAT(node.host.problems, IsEmpty());
  }
}

TEST(HealthMissing, OneFileOfAGenerationAnswersForTheOthers) {
  const auto first_health_files = [](NeuronDevice& device) {
    drop_health_status(device);
    device.signals.hbm_ecc_errors = 0;
    device.signals.repairable_hbm_ecc_errors = 0;
  };
  const HostScan scan = changed("trn2.48xlarge", "2.29.0.0", first_health_files);
  const auto missing = health::missing_everywhere(scan);
  ASSERT_THAT(missing, SizeIs(1));
  EXPECT_THAT(missing[0].paths, ::testing::ElementsAre("stats/hardware/health_status/sram_ecc_err_count"));
  EXPECT_THAT(missing[0].devices, SizeIs(16));
}

TEST(HealthMissing, ADriverThatMovedItsFilesAsksForAnotherAgent) {
  HostScan scan = changed("trn1.32xlarge", "2.31.7.0", drop_hardware);
  EXPECT_THAT(health::action_for_missing(scan), HasSubstr("update the agent"));
  health::HealthMemory memory;
  scan = core::complete(std::move(scan));
  EXPECT_THAT(health::evaluate(scan, memory).devices[0].action, HasSubstr("update the agent"));
  scan.layout = model::DriverLayout::unknown;
  EXPECT_THAT(health::missing_everywhere(scan), IsEmpty()) << "that is said of the layout as a whole";
}

TEST(HealthMissing, ALoneDeviceLacksItsOwnFiles) {
  health::AssessMemory memory;
  const health::Assessment node = health::assess(changed("trn1.2xlarge", "2.30.2.0", drop_status), memory, {});
  EXPECT_EQ(node.host.devices.at(0).health.reason, "signal_unreadable");
  ASSERT_THAT(node.host.problems, SizeIs(1));
  EXPECT_THAT(sentence(node.host.problems[0]), HasSubstr("neuron0/neuron_core*/stats/status/"));
}

TEST(HealthMissing, WhatIsBrokenIsStillSeen) {
  health::AssessMemory memory;
  HostScan scan = changed("trn1.32xlarge", "2.30.2.0", drop_status);
  scan.devices[3].signals.mem_ecc_uncorrected = 1;
  scan.devices[4].signals.sram_ecc_uncorrected.reset();
  const health::Assessment node = health::assess(std::move(scan), memory, {});
  EXPECT_EQ(node.host.devices[3].health.reason, "mem_ecc_uncorrected");
  EXPECT_EQ(node.host.devices[4].health.reason, "signal_unreadable") << "its own file first";
  EXPECT_EQ(node.host.devices[5].health.reason, "signals_missing");
}

TEST(HealthMissing, WhatIsThereWithoutAValueIsNotMissing) {
  health::AssessMemory memory;
  HostScan scan = silent_scan("trn2.3xlarge");
  drop_health_status(scan.devices[0]);
  scan.devices[0].signals.unreachable = true;
  scan.devices[0].signals.mem_ecc_uncorrected.reset();
  scan.devices[0].problems = {{model::ProblemKind::health_file,
                               "sys/class/neuron_device/neuron0/stats/hardware/mem_ecc_uncorrected", "not a number"}};
  const health::Assessment node = health::assess(std::move(scan), memory, {});
  EXPECT_EQ(node.host.devices.at(0).health.reason, "device_unreachable");
  EXPECT_THAT(node.host.problems, IsEmpty());
}

}  // namespace
}  // namespace neuron::test
