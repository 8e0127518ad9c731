// The JSON of --json.
#include "tools/screen/view_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "test/unit/top/moments.h"

namespace neuron::test {
namespace {

using nlohmann::json;

constexpr std::int64_t kTime = 1'700'000'000'123;

json report_of(const screen::Moment& moment) {
  const std::string line = screen::report_line(screen::make_view_model(moment), kTime);
  EXPECT_EQ(line.find('\n'), line.size() - 1) << "one line";
  return json::parse(line);
}

TEST(Report, HasTheShapeOfNeuronMonitor) {
  const json report = report_of(busy_moment("trn2.48xlarge"));
  const json& runtime = report["neuron_runtime_data"][0];
  EXPECT_EQ(runtime["pid"], 4290);
  EXPECT_EQ(runtime["neuron_runtime_tag"], "train-llama-70b");
  const json& counters = runtime["report"]["neuroncore_counters"];
  EXPECT_EQ(counters["neuroncores_in_use"].size(), 8U) << "the cores of devices 0 and 1";
  EXPECT_DOUBLE_EQ(counters["neuroncores_in_use"]["0"]["neuroncore_utilization"], 77.5);
  EXPECT_GT(counters["neuroncores_in_use"]["0"]["effective_flops"], 0);
  EXPECT_DOUBLE_EQ(counters["period"], 1);
  EXPECT_EQ(counters["error"], "");
  EXPECT_EQ(runtime["report"]["memory_used"]["neuron_runtime_used_bytes"]["neuron_device"], 12884901888);
  EXPECT_GT(runtime["report"]["neuron_runtime_vcpu_usage"]["vcpu_usage"]["user"], 0);
  const json& devices = report["system_data"]["neuron_hw_counters"]["neuron_devices"];
  EXPECT_EQ(devices.size(), 16U);
  EXPECT_EQ(devices[2]["mem_ecc_corrected"], 12);
  EXPECT_EQ(report["system_data"]["memory_info"]["memory_total_bytes"], 549755813888);
  EXPECT_EQ(report["instance_info"]["instance_type"], "trn2.48xlarge");
  EXPECT_EQ(report["neuron_hardware_info"]["logical_neuroncore_config"], 2);
  EXPECT_EQ(report["neuron_hardware_info"]["neuroncore_per_device_count"], 4);
}

TEST(Report, HasOurs) {
  screen::Moment moment = unhealthy_moment("trn2.48xlarge");
  add_pods(moment);
  const json ours = report_of(moment)["neuron_top"];
  EXPECT_EQ(ours["schema"], "neuron-top/1");
  EXPECT_EQ(ours["time_ms"], kTime);
  EXPECT_EQ(ours["devices"][3]["health"]["reason"], "sram_ecc_uncorrected");
  EXPECT_EQ(ours["devices"][3]["ecc"]["sram_uncorrected"], 2);
  EXPECT_DOUBLE_EQ(ours["devices"][0]["power"]["average_percent"], 48.5);
  EXPECT_EQ(ours["devices"][0]["pids"], json({4290}));
  EXPECT_EQ(ours["devices"][0]["cores"].size(), 4U);
  EXPECT_EQ(ours["devices"][0]["host_memory_kinds"]["app_memory"], 4294967296);
  EXPECT_DOUBLE_EQ(ours["efas"][0]["rx_bytes_per_second"], 12.5e9);
  EXPECT_EQ(ours["efas"][1]["errors_total"], 17);
  EXPECT_EQ(ours["pods"][0]["pod"], "team-a/train-0");
  EXPECT_TRUE(ours["pods"][0]["claim"].is_null());
  EXPECT_EQ(ours["pods"][1]["cores"], json({8, 9}));
  EXPECT_EQ(ours["no_pods"], "");
}

TEST(Report, HasClaimsOfOurDriver) {
  screen::Moment moment = busy_moment("trn1.32xlarge");
  add_claims(moment);
  const json pods = report_of(moment)["neuron_top"]["pods"];
  ASSERT_EQ(pods.size(), 4U);
  EXPECT_EQ(pods[2]["claim"], "infer-0-chips");
  EXPECT_EQ(pods[2]["claim_namespace"], "team-c");
  EXPECT_EQ(pods[2]["cores"], json({11}));
  EXPECT_EQ(pods[2]["efas"].size(), 1U);
  EXPECT_EQ(pods[3]["devices"], json({8, 9, 10, 11}));
}

// Unknown is null or absent, and never 0.
TEST(Report, UnknownIsNotZero) {
  const json report = report_of(old_driver_moment("trn1.32xlarge"));
  const json& ours = report["neuron_top"];
  EXPECT_TRUE(ours["utilization_percent"].is_null());
  EXPECT_TRUE(ours["devices"][0]["utilization_percent"].is_null());
  EXPECT_TRUE(ours["devices"][0]["cores"][0]["utilization_percent"].is_null());
  EXPECT_TRUE(ours["devices"][0]["power"].is_null());
  EXPECT_NE(ours["no_utilization"], "");
  EXPECT_TRUE(report["neuron_runtime_data"].empty());
  EXPECT_FALSE(report["system_data"]["neuron_hw_counters"]["neuron_devices"][0].contains("mem_ecc_corrected"));
}

// A process that is known from proc: what it holds nobody can say.
TEST(Report, OfAUserOfTheDeviceTheHoldingsAreUnknown) {
  screen::Moment moment = unhealthy_moment("trn2.48xlarge");
  const int pid = moment.sample.processes.at(0).pid;
  for (auto& device : moment.scan.devices) {
    for (auto& process : *device.processes) {
      if (process.pid != pid) continue;
      process = {};
      process.pid = pid;
    }
  }
  const json report = report_of(moment);
  const json& runtime = report["neuron_runtime_data"][0];
  EXPECT_EQ(runtime["pid"], pid);
  EXPECT_TRUE(runtime["report"]["memory_used"]["neuron_runtime_used_bytes"].empty());
  EXPECT_NE(runtime["report"]["memory_used"]["error"], "");
  EXPECT_TRUE(report["neuron_top"]["processes"][0]["cores"].is_null());
  EXPECT_FALSE(report["neuron_top"]["processes"][0]["devices"].empty());
}

TEST(Report, WithoutDevices) {
  const json report = report_of(idle_moment(0));
  EXPECT_EQ(report["neuron_hardware_info"]["neuron_device_count"], 0);
  EXPECT_NE(report["neuron_hardware_info"]["error"], "");
  EXPECT_TRUE(report["neuron_top"]["devices"].empty());
}

TEST(Report, ForeignTextStaysValid) {
  screen::Moment moment = busy_moment("trn1.32xlarge");
  moment.sample.processes[0].command = "a\xff\"\n\x01";
  moment.scan.instance_type = "\"}\xfe";
  EXPECT_TRUE(report_of(moment).is_object());
}

}  // namespace
}  // namespace neuron::test
