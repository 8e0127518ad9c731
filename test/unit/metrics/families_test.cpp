// What is in a scrape, and what is left out because nobody could say.
#include "agent/metrics/families.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "agent/health/reasons.h"
#include "test/unit/metrics/loaded_node.h"
#include "test/unit/metrics/series.h"

namespace neuron::test {
namespace {

using metrics::MetricsInput;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;
using namespace std::chrono_literals;

TEST(Families, CoresHaveTheIdsThatTheKubeletIsToldOf) {
  const Series series(loaded_node("trn2.48xlarge", 2));
  EXPECT_THAT(series.of("neuroncore_utilization_ratio"), SizeIs(64));
  EXPECT_THAT(series.of("neuroncore_utilization_ratio", {R"(neuroncore="63")"}), ElementsAre("0.75"));
  EXPECT_THAT(series.of("neuroncore_utilization_ratio", {R"(neuroncore="64")"}), IsEmpty());
  EXPECT_THAT(series.of("neuron_hardware_info", {R"(neuron_device_count="16")", R"(neuroncore_per_device_count="4")"}),
              ElementsAre("1"));
  // Two physical cores behind one id: counts and memory are added up, shares of time are not.
  EXPECT_THAT(series.of("neuroncore_memory_usage_tensors", {R"(neuroncore="5")"}), ElementsAre("3600000"));
  EXPECT_THAT(series.of("neuron_core_busy_seconds_total", {R"(neuroncore="5")"}), ElementsAre("15"));
  EXPECT_THAT(series.of("execution_status_total", {R"(neuroncore="5")", R"(status_type="completed")"}),
              ElementsAre("120"));
  EXPECT_THAT(series.of("neuron_core_info", {R"(neuroncore="5")", R"(neuron_device_index="1")"}), SizeIs(1));
}

TEST(Families, IdleIsZeroWhereTheDriverCounts) {
  const Series series(idle_node("trn1.2xlarge"));
  EXPECT_THAT(series.of("neuroncore_utilization_ratio"), ElementsAre("0", "0"));
  EXPECT_THAT(series.of("neuron_runtime_memory_used_bytes", {R"(runtime_tag="")"}), ElementsAre("0", "0"));
  EXPECT_THAT(series.of("neuron_runtime_vcpu_usage_ratio"), IsEmpty());
}

TEST(Families, WithoutASampleNothingThatNeedsOne) {
  MetricsInput input = loaded_node("trn1.32xlarge", 1);
  input.now = input.before = nullptr;
  const Series series(input);
  for (const char* name : {"neuroncore_utilization_ratio", "neuroncore_memory_usage_tensors", "execution_status_total",
                           "neuron_runtime_memory_used_bytes", "system_vcpu_count", "neuron_core_memory_used_bytes",
                           "neuron_device_power_ratio", "node_amazonefa_tx_bytes"}) {
    EXPECT_THAT(series.of(name), IsEmpty()) << name;
  }
  EXPECT_THAT(series.of("neuron_agent_usage_age_seconds"), ElementsAre("1.5")) << "since it was first asked for";
  EXPECT_THAT(series.of("neuron_device_healthy"), SizeIs(16));
  EXPECT_THAT(series.of("hardware_ecc_events_total"), SizeIs(64));
}

// A hung driver makes samples old. What is shown then would look like the present.
TEST(Families, AnOldSampleIsAsGoodAsNone) {
  MetricsInput input = loaded_node("trn1.32xlarge", 1);
  input.usage_age = metrics::kOldestUsage;
  EXPECT_THAT(Series(input).of("neuroncore_utilization_ratio"), SizeIs(32));
  *input.usage_age += 1ms;
  EXPECT_THAT(Series(input).of("neuroncore_utilization_ratio"), IsEmpty());
  EXPECT_THAT(Series(input).of("neuron_agent_usage_age_seconds"), SizeIs(1));
}

TEST(Families, OneSampleHasNoRates) {
  MetricsInput input = loaded_node("trn1.32xlarge", 1);
  input.before = input.now;
  const Series series(input);
  EXPECT_THAT(series.of("neuroncore_utilization_ratio"), IsEmpty());
  EXPECT_THAT(series.of("system_vcpu_usage_ratio"), IsEmpty());
  EXPECT_THAT(series.of("neuroncore_memory_usage_tensors"), SizeIs(32));
  EXPECT_THAT(series.of("system_vcpu_count"), SizeIs(1));
}

TEST(Families, BeforeTheFirstScan) {
  MetricsInput input;
  input.agent.version = "0.1.0";
  const Series series(input);
  EXPECT_THAT(series.of("neuron_agent_build_info", {R"(version="0.1.0")"}), ElementsAre("1"));
  EXPECT_THAT(series.of("neuron_agent_scans_total"), ElementsAre("0"));
  EXPECT_THAT(series.of("neuron_hardware_info"), IsEmpty());
  EXPECT_THAT(series.of("neuron_agent_scan_problems"), IsEmpty());
  EXPECT_THAT(series.of("neuron_agent_usage_age_seconds"), IsEmpty());
}

TEST(Families, WhatOneCoreDoesNotTellIsUnknownOfTheLogicalCore) {
  MetricsInput input = loaded_node("trn2.48xlarge", 2);
  usage_of(input).devices[0].cores[1].device_memory_bytes.reset();
  host_of(input).devices[0].cores[1].hw_error.reset();
  const Series series(input);
  const std::string kind = R"(kind="hw_error")";
  EXPECT_THAT(series.of("neuron_core_hw_errors_total", {R"(neuron_device_index="0")", kind}), SizeIs(3));
  EXPECT_THAT(series.of("neuron_core_memory_used_bytes", {R"(neuron_device_index="0")", "memory_location=\"neuron"}),
              SizeIs(3));
  EXPECT_THAT(series.of("neuron_device_memory_used_bytes"), SizeIs(15));
  EXPECT_THAT(series.of("execution_errors_total", {"error_type=\"hardware"}), SizeIs(63));
}

TEST(Families, HealthForAlerts) {
  MetricsInput input = loaded_node("trn1.32xlarge", 1);
  model::HostScan& host = host_of(input);
  host.devices[3].health = health::verdict(health::reasons::kMemEccRepairable, "2 of them");
  host.devices[3].core_health.assign(2, host.devices[3].health);
  host.devices[4].health = health::verdict(health::reasons::kResetting, "it is");
  host.devices[5].health = health::verdict(health::reasons::kSignalUnreadable, "it cannot");
  host.devices[6].health = {};
  const Series series(input);
  const auto healthy = [&](const char* device) { return series.of("neuron_device_healthy", {device}); };
  const auto info = [&](const char* device, const char* state, const char* reason) {
    return series.of("neuron_device_health_info", {device, state, reason});
  };
  EXPECT_THAT(healthy(R"(neuron_device_index="2")"), ElementsAre("1"));
  EXPECT_THAT(info(R"(neuron_device_index="2")", R"(state="healthy")", R"(reason="")"), ElementsAre("1"));
  EXPECT_THAT(healthy(R"(neuron_device_index="3")"), ElementsAre("0"));
  EXPECT_THAT(info(R"(neuron_device_index="3")", R"(state="unhealthy")", R"(reason="mem_ecc_repairable_uncorrected")"),
              ElementsAre("1"));
  EXPECT_THAT(series.of("neuron_core_healthy", {R"(neuron_device_index="3")"}), ElementsAre("0", "0"));
  EXPECT_THAT(healthy(R"(neuron_device_index="4")"), ElementsAre("1"));
  EXPECT_THAT(info(R"(neuron_device_index="4")", R"(state="degraded")", R"(reason="resetting")"), ElementsAre("1"));
  EXPECT_THAT(healthy(R"(neuron_device_index="5")"), IsEmpty());
  EXPECT_THAT(info(R"(neuron_device_index="5")", R"(state="unknown")", R"(reason="signal_unreadable")"),
              ElementsAre("1"));
  EXPECT_THAT(healthy(R"(neuron_device_index="6")"), IsEmpty());
  EXPECT_THAT(series.of("neuron_device_health_info", {R"(neuron_device_index="6")"}), IsEmpty());
}

TEST(Families, WhatHasLeftIsGoneAndWhatHangsIsUnknown) {
  MetricsInput input = loaded_node("trn1.32xlarge", 1);
  host_of(input).devices[0].presence = model::Presence::vanished;
  host_of(input).devices[1].presence = model::Presence::not_answering;
  host_of(input).efas[7].presence = model::Presence::vanished;
  const Series series(input);
  EXPECT_THAT(series.of("neuron_device_present", {R"(neuron_device_index="0")"}), ElementsAre("0"));
  EXPECT_THAT(series.of("neuron_device_present"), SizeIs(15));
  EXPECT_THAT(series.of("efa_present"), UnorderedElementsAre("1", "1", "1", "1", "1", "1", "1", "0"));
}

TEST(Families, EccOfBothGenerationsOfTheDriver) {
  MetricsInput input = loaded_node("trn2.48xlarge", 2);
  model::DeviceSignals& signals = host_of(input).devices[0].signals;
  signals.mem_ecc_repairable_uncorrected = 3;
  signals.hbm_ecc_errors = 4;
  signals.mem_ecc_corrected.reset();
  const Series series(input);
  const std::string device = R"(neuron_device_index="0")";
  EXPECT_THAT(series.of("neuron_device_ecc_events_total", {device, "event_type=\"mem_ecc_rep"}), ElementsAre("3"));
  EXPECT_THAT(series.of("neuron_device_ecc_events_total", {device, "event_type=\"hbm_ecc"}), ElementsAre("4"));
  EXPECT_THAT(series.of("hardware_ecc_events_total", {device}), SizeIs(3));
}

TEST(Families, KernelLog) {
  MetricsInput input = loaded_node("trn1.2xlarge", 1);
  EXPECT_THAT(Series(input).of("neuron_kernel_log_reading"), IsEmpty());
  model::KernelLog& log = host_of(input).kernel_log;
  log.state = model::KernelLogState::denied;
  EXPECT_THAT(Series(input).of("neuron_kernel_log_reading"), ElementsAre("0"));
  EXPECT_THAT(Series(input).of("neuron_kernel_log_healthy"), IsEmpty());
  log.state = model::KernelLogState::reading;
  log.lost_records = 7;
  log.node_health = health::verdict(health::reasons::kKernelLogError, "it said so");
  log.errors.push_back({model::KernelErrorKind::hbm_repairable, "SOME_REPAIRABLE", 0, 1, {}, "", 2, {}, {}});
  log.errors.push_back({model::KernelErrorKind::other, "NEW_WORD", {}, {}, {}, "", 1, {}, {}});
  const Series series(input);
  EXPECT_THAT(series.of("neuron_kernel_log_reading"), ElementsAre("1"));
  EXPECT_THAT(series.of("neuron_kernel_log_lost_records_total"), ElementsAre("7"));
  EXPECT_THAT(series.of("neuron_kernel_log_errors_total",
                        {R"(neuron_device_index="0")", R"(physical_core="1")", R"(kind="hbm_repairable")"}),
              ElementsAre("2"));
  EXPECT_THAT(series.of("neuron_kernel_log_errors_total", {R"(neuron_device_index="")", R"(kind="other")"}),
              ElementsAre("1"));
  EXPECT_THAT(series.of("neuron_kernel_log_health_info", {R"(reason="kernel_log_error")"}), SizeIs(1));
}

TEST(Families, WhatIsNoNumberHasNoSample) {
  MetricsInput input = loaded_node("trn1.2xlarge", 1);
  usage_of(input).devices[0].power->max_percent = std::numeric_limits<double>::quiet_NaN();
  input.agent.last_scan_seconds = std::numeric_limits<double>::infinity();
  const Series series(input);
  EXPECT_THAT(series.of("neuron_device_power_ratio"), SizeIs(2));
  EXPECT_THAT(series.of("neuron_agent_last_scan_seconds"), IsEmpty());
}

TEST(Families, ADriversUnknownCountersAreLeftOut) {
  MetricsInput input = loaded_node("trn1.32xlarge", 1);
  usage_of(input).efas[0].counters["new_counter"] = 5;
  EXPECT_THAT(Series(input).of("node_amazonefa_new_counter"), IsEmpty());
  EXPECT_THAT(Series(input).of("node_amazonefa_tx_bytes", {R"(port="1")"}), SizeIs(8));
}

TEST(Families, ADurationThatDoesNotAddUpIsLeftOut) {
  MetricsInput input = loaded_node("trn1.2xlarge", 1);
  EXPECT_THAT(Series(input).of("neuron_agent_call_seconds_count", {R"(method="Allocate")"}), ElementsAre("14"));
  EXPECT_THAT(Series(input).of("neuron_agent_call_seconds_bucket", {R"(method="Allocate")", R"(le="0.005")"}),
              ElementsAre("12"));
  input.agent.calls["Allocate"].counts.pop_back();
  EXPECT_THAT(Series(input).of("neuron_agent_call_seconds_count", {R"(method="Allocate")"}), IsEmpty());
}

}  // namespace
}  // namespace neuron::test
