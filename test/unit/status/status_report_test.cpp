#include "agent/status/status_report.h"

#include <gmock/gmock.h>

#include "test/unit/status/nodes.h"

namespace neuron::status {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

TEST(StatusReport, LabelsSayWhatTheNodeHas) {
  EXPECT_THAT(report(well_host(), {}).labels,
              UnorderedElementsAre(Pair("neuron.amazonaws.com/present", "true"), Pair("neuron-agent/family", "trn1"),
                                   Pair("neuron-agent/devices", "16"), Pair("neuron-agent/cores", "32"),
                                   Pair("neuron-agent/lnc", "1"), Pair("neuron-agent/driver", "2.21.37.0"),
                                   Pair("neuron-agent/efas", "8"), Pair("neuron-agent/health", "healthy")));
}

TEST(StatusReport, WhatIsNotKnownHasNoLabel) {
  model::HostScan host = well_host(2, 0);
  host.instance_type = "";
  host.driver_version = "";
  host.lnc.reset();
  host.devices[1].physical_cores.reset();
  EXPECT_THAT(report(host, {}).labels,
              UnorderedElementsAre(Pair("neuron.amazonaws.com/present", "true"), Pair("neuron-agent/devices", "2"),
                                   Pair("neuron-agent/health", "healthy")));
}

TEST(StatusReport, ANodeWithoutHardwareSaysNothing) {
  EXPECT_EQ(report({}, {.hardware_ready = true}), StatusReport{});
  model::HostScan other;
  other.instance_type = "m5.large";
  EXPECT_EQ(report(other, {}), StatusReport{});
}

TEST(StatusReport, OnlyInterfacesAreNoNeuronNode) {
  model::HostScan host = well_host(0, 2);
  host.instance_type = "p5.48xlarge";
  const StatusReport said = report(host, {.hardware_ready = true});
  EXPECT_THAT(said.labels, UnorderedElementsAre(Pair("neuron-agent/family", "p5"), Pair("neuron-agent/efas", "2"),
                                                Pair("neuron-agent/health", "healthy")));
  EXPECT_THAT(said.conditions, IsEmpty());
}

TEST(StatusReport, DevicesThatShouldBeThereAreUnknown) {
  const StatusReport said = report(well_host(0, 8), {.hardware_ready = true});
  ASSERT_EQ(said.conditions.size(), 2U);
  for (const Condition& one : said.conditions) {
    EXPECT_EQ(one.status, "Unknown");
    EXPECT_EQ(one.reason, "NoNeuronDevice");
    EXPECT_THAT(one.message, HasSubstr("none of 16"));
  }
}

TEST(StatusReport, UltraServerHasAwsNames) {
  model::HostScan host = well_host();
  host.ultraserver = model::UltraServer{false, {1, 2, 4}, {{2, "00112233445566aa", 1}, {4, "ffeeddccbbaa9988", 3}}};
  const auto labels = report(host, {}).labels;
  EXPECT_EQ(labels.at("neuron.amazonaws.com/ultraserver-mode"), "1_2_4");
  EXPECT_EQ(labels.at("neuron.amazonaws.com/ultraserver-server-id-2"), "00112233445566aa");
  EXPECT_EQ(labels.at("neuron.amazonaws.com/ultraserver-node-id-2"), "1");
  EXPECT_EQ(labels.at("neuron.amazonaws.com/ultraserver-server-id-4"), "ffeeddccbbaa9988");
  EXPECT_EQ(labels.at("neuron.amazonaws.com/ultraserver-node-id-4"), "3");
  host.ultraserver = model::UltraServer{false, {1, 3, 4}, {{4, "00112233445566aa", 2}}, 4};
  EXPECT_EQ(report(host, {}).labels.at("neuron.amazonaws.com/ultraserver-server-id-4"), "00112233445566aa")
      << "a partition, whose size node_cnt says";
  host.ultraserver = model::UltraServer{true, {}, {{0, "00112233445566aa", 1}}};
  EXPECT_EQ(report(host, {}).labels, report(well_host(), {}).labels);
}

// It names no device, so none is withheld, and what is broken is somewhere on the node.
TEST(StatusReport, WhatTheKernelLogSaysOfNoDeviceIsTheNodes) {
  model::HostScan host = well_host();
  host.kernel_log.node_health = {model::HealthState::unhealthy, "hw_dma_abort_error", "node: the kernel log says so",
                                 "replace the instance"};
  const StatusReport said = report(host, {});
  EXPECT_TRUE(said.problem);
  ASSERT_EQ(said.conditions.size(), 1U);
  EXPECT_EQ(said.conditions[0].status, "True");
  EXPECT_EQ(said.conditions[0].reason, "HwDmaAbortError");
  EXPECT_THAT(said.conditions[0].message, HasSubstr("node: the kernel log says so; what to do: replace the instance"));
  EXPECT_THAT(said.conditions[0].message, Not(HasSubstr("0 of 16")));
  EXPECT_EQ(said.labels.at("neuron-agent/health"), "unhealthy");
  host.kernel_log.node_health.state = model::HealthState::unknown;  // as where the log is not read
  EXPECT_EQ(report(host, {}).labels.at("neuron-agent/health"), "healthy");
  host.kernel_log.node_health.state = model::HealthState::degraded;
  EXPECT_EQ(report(host, {}).conditions[0].status, "False");
}

TEST(StatusReport, AllWellHasAwsWords) {
  EXPECT_THAT(report(well_host(), {.hardware_ready = true}).conditions,
              ElementsAre(Condition{"NeuronHealth", "False", "NeuronHasNoError", "Neuron has no error"},
                          Condition{"AcceleratedHardwareReady", "True", "NeuronAcceleratedHardwareIsReady",
                                    "Monitoring for the Neuron AcceleratedHardware system is active"}));
  EXPECT_EQ(report(well_host(), {}).conditions.size(), 1U);
}

TEST(StatusReport, OneOfSixteenIsNotTheNode) {
  model::HostScan host = well_host();
  set_health(host, 3, repairable(3));
  const StatusReport said = report(host, {.hardware_ready = true});
  EXPECT_TRUE(said.problem);
  EXPECT_EQ(said.labels.at("neuron-agent/health"), "unhealthy");
  EXPECT_EQ(said.conditions[0].status, "False");
  EXPECT_EQ(said.conditions[0].reason, "BelowThreshold");
  EXPECT_EQ(said.conditions[0].message,
            "1 of 16 devices is unhealthy: neuron3; the node counts as unhealthy from 8 on. neuron3: 1 repairable HBM "
            "errors; what to do: drain the node, then reload the Neuron driver or reboot");
  EXPECT_EQ(said.conditions[1].status, "True");
}

// Half of the devices, at least one; or as many as is said.
TEST(StatusReport, FromTheThresholdOnItIsTheNode) {
  const auto status = [](int devices, int unhealthy, int threshold) {
    model::HostScan host = well_host(devices);
    for (int i = 0; i < unhealthy; ++i) set_health(host, i, repairable(i));
    const StatusReport said = report(host, {.hardware_ready = true, .unhealthy_devices = threshold});
    EXPECT_NE(said.conditions[0].status, said.conditions[1].status);
    return said.conditions[0].status;
  };
  EXPECT_EQ(status(16, 7, 0), "False");
  EXPECT_EQ(status(16, 8, 0), "True");
  EXPECT_EQ(status(1, 1, 0), "True");
  EXPECT_EQ(status(3, 1, 0), "False");
  EXPECT_EQ(status(3, 2, 0), "True");
  EXPECT_EQ(status(16, 1, 1), "True");
  EXPECT_EQ(status(16, 8, 16), "False");
}

TEST(StatusReport, WhatNeedsAnotherInstanceIsTheNode) {
  model::HostScan host = well_host();
  set_health(host, 2, repairable(2));
  set_health(host, 5, broken(5));
  const Condition said = report(host, {}).conditions[0];
  EXPECT_EQ(said.status, "True");
  EXPECT_EQ(said.reason, "SramEccUncorrected");
  EXPECT_THAT(said.message, HasSubstr("neuron5: 1 uncorrected SRAM errors; what to do: replace the instance"));
  EXPECT_THAT(said.message, HasSubstr("2 of 16 devices are unhealthy: neuron2, neuron5"));
}

// By which EKS's nodeRepairConfigOverrides select; docs/node-status.md has the same pairs.
TEST(StatusReport, HardwareReadyHasTheReasonsOfAwsAgent) {
  model::HostScan host = well_host();
  set_health(host, 5, broken(5));
  const StatusReport said = report(host, {.hardware_ready = true});
  EXPECT_EQ(said.conditions[0].reason, "SramEccUncorrected");
  EXPECT_EQ(said.conditions[1].reason, "NeuronSRAMUncorrectableError");
  EXPECT_EQ(said.conditions[1].message, said.conditions[0].message);
  EXPECT_EQ(hardware_reason("MemEccUncorrected"), "NeuronHBMUncorrectableError");
  EXPECT_EQ(hardware_reason("HwHbmUeError"), "NeuronHBMUncorrectableError");
  EXPECT_EQ(hardware_reason("HwNcUeError"), "NeuronNCUncorrectableError");
  EXPECT_EQ(hardware_reason("HwDmaAbortError"), "NeuronDMAError");
  EXPECT_EQ(hardware_reason("DeviceVanished"), "DeviceVanished") << "AWS's agent has none";
}

TEST(StatusReport, UnknownIsNeverHealthy) {
  model::HostScan host = well_host(2);
  const model::Health unknown = health::verdict(health::reasons::kNoSignals, "the driver shows no health files");
  set_health(host, 0, unknown);
  EXPECT_EQ(report(host, {}).conditions[0].reason, "SomeDevicesNotHealthy");
  EXPECT_EQ(report(host, {}).labels.at("neuron-agent/health"), "unknown");
  set_health(host, 1, unknown);
  EXPECT_EQ(report(host, {}).conditions[0].status, "Unknown");
  EXPECT_EQ(report(host, {}).conditions[0].reason, "NoSignals");
  set_health(host, 0, {});
  set_health(host, 1, {});
  EXPECT_EQ(report(host, {}).conditions[0].reason, "NotAssessed");
}

TEST(StatusReport, WhatVanishedIsNotCountedButIll) {
  model::HostScan host = well_host();
  host.devices[7].presence = model::Presence::vanished;
  set_health(host, 7,
             health::verdict(health::reasons::kDeviceVanished, "neuron7 vanished from sys/class/neuron_device"));
  const StatusReport said = report(host, {});
  EXPECT_EQ(said.labels.at("neuron-agent/devices"), "15");
  EXPECT_EQ(said.labels.at("neuron-agent/cores"), "30");
  EXPECT_THAT(said.conditions[0].message, HasSubstr("1 of 16 devices is unhealthy: neuron7"));
}

TEST(StatusReport, AListThatWasNeverReadIsNoAbsence) {
  model::HostScan host = well_host();
  host.devices.clear();
  EXPECT_EQ(report(host, {}).conditions[0].reason, "NoNeuronDevice");
  host.unread_lists = {{model::ScanPart::Kind::devices}};
  EXPECT_EQ(report(host, {}).conditions[0].status, "Unknown");
  EXPECT_EQ(report(host, {}).conditions[0].reason, "Unread");
}

TEST(StatusReport, UltraServerFilesThatAreUnreadLeaveItsLabels) {
  model::HostScan host = well_host();
  EXPECT_FALSE(report(host, {}).keeps_ultraserver);
  host.ultraserver_is_unread = true;
  EXPECT_TRUE(report(host, {}).keeps_ultraserver);
}

TEST(StatusReport, EveryReasonIsAValidReasonOfAConditionAndAnEvent) {
  for (const health::Reason& reason : health::all_reasons()) {
    EXPECT_THAT(camel_case(reason.code), testing::MatchesRegex("[A-Z][A-Za-z0-9]*")) << reason.code;
  }
  EXPECT_EQ(camel_case("mem_ecc_uncorrected"), "MemEccUncorrected");
}

TEST(StatusReport, LabelValuesAreValid) {
  EXPECT_EQ(label_value("2.21.37.0"), "2.21.37.0");
  EXPECT_EQ(label_value("2.x.7693.0 (dirty)"), "2.x.7693.0__dirty");
  EXPECT_EQ(label_value("\xC3\xA4-1"), "1");
  EXPECT_EQ(label_value("--"), "");
  EXPECT_EQ(label_value(""), "");
  EXPECT_EQ(label_value(std::string(80, 'a')).size(), 63U);
  EXPECT_EQ(label_value(std::string(62, 'a') + "-b"), std::string(62, 'a'));
}

TEST(StatusReport, ForeignTextStaysWithinBounds) {
  model::HostScan host = well_host(1);
  set_health(host, 0, {model::HealthState::unhealthy, "hw_error", std::string(5000, 'x') + "\x1b[2J\n", ""});
  const std::string message = report(host, {}).conditions[0].message;
  EXPECT_LE(message.size(), 1100U);
  EXPECT_EQ(message.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace neuron::status
