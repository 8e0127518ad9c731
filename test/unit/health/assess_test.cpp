#include "agent/health/assess.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/health/reasons.h"
#include "test/unit/core/make_host.h"

namespace neuron::test {
namespace {

using model::HealthState;
using model::HostScan;
using model::Presence;
using model::ScanPart;
using Kind = ScanPart::Kind;

// A scan that leaves the parts out as the scanner does; of a device that is left out it knows the index.
HostScan scan_without(HostScan scan, const std::vector<ScanPart>& parts) {
  for (const ScanPart& part : parts) {
    scan.unanswered.push_back({part, "2026-01-31T23:59:59Z"});
    if (part.kind == Kind::device) {
      model::NeuronDevice& device = scan.devices[static_cast<std::size_t>(part.index)];
      device = {};
      device.index = part.index;
      device.presence = Presence::not_answering;
    }
    if (part.kind == Kind::devices) {
      scan.devices.clear();
      scan.layout = model::DriverLayout::none;
    }
    if (part.kind == Kind::efa_classes || part.kind == Kind::pci) scan.efas.clear();
    if (part.kind == Kind::host) scan.instance_type = scan.driver_version = "";
  }
  return scan;
}

TEST(Assess, AVanishedDeviceStaysListedUntilItIsBack) {
  health::AssessMemory memory;
  const HostScan sound = scan_of("trn1.32xlarge");
  (void)health::assess(sound, memory, {});
  for (int again = 0; again < 2; ++again) {
    HostScan scan = sound;
    scan.devices.erase(scan.devices.begin() + 3);
    const health::Assessment node = health::assess(std::move(scan), memory, {});
    ASSERT_EQ(node.host.devices.size(), 16U);
    const model::NeuronDevice& gone = node.host.devices[3];
    EXPECT_EQ(gone.index, 3);
    EXPECT_EQ(gone.presence, Presence::vanished);
    EXPECT_FALSE(gone.node_present);
    EXPECT_FALSE(gone.signals.sram_ecc_uncorrected) << "no stale numbers";
    EXPECT_EQ(gone.physical_cores, sound.devices[3].physical_cores);
    EXPECT_EQ(node.host.devices[3].health.reason, "device_vanished");
    EXPECT_EQ(node.host.devices[3].health.state, HealthState::unhealthy);
    EXPECT_EQ(node.host.devices[2].health.state, HealthState::healthy);
  }
  const health::Assessment back = health::assess(sound, memory, {});
  EXPECT_EQ(back.host.devices[3].health.state, HealthState::healthy);
  EXPECT_EQ(back.host.devices[3].presence, Presence::present);
}

// Else the node's condition would fall back from "replace the instance" the moment that a broken device leaves the bus.
TEST(Assess, AMissingDeviceKeepsAFaultThatOnlyAnotherInstanceCures) {
  const HostScan sound = scan_of("trn1.32xlarge");
  HostScan broken = sound, gone = sound, silent = scan_without(sound, {{Kind::device, 3}}), off_the_bus = sound;
  broken.devices[3].signals.sram_ecc_uncorrected = 2;
  gone.devices.erase(gone.devices.begin() + 3);
  off_the_bus.devices[3].serial_all_ones = true;
  off_the_bus.devices[3].signals.sram_ecc_uncorrected = 65535;
  for (const HostScan& missing : {gone, silent, off_the_bus}) {
    health::AssessMemory memory;
    EXPECT_EQ(health::assess(broken, memory, {}).host.devices[3].health.reason, "sram_ecc_uncorrected");
    for (int again = 0; again < 2; ++again) {
      const auto device = health::assess(missing, memory, {}).host.devices[3];
      EXPECT_EQ(device.presence == Presence::present, device.serial_all_ones);
      EXPECT_EQ(device.health.reason, "sram_ecc_uncorrected");
      EXPECT_EQ(device.health.action, health::reasons::kReplace);
      EXPECT_THAT(device.health.sentence, testing::EndsWith("; before that: neuron3: 2 uncorrected SRAM errors "
                                                            "(stats/hardware/sram_ecc_uncorrected)"));
      EXPECT_EQ(device.health.sentence.find("before that"), device.health.sentence.rfind("before that"));
      for (const auto& core : device.core_health) EXPECT_EQ(core.state, HealthState::unhealthy);
    }
    EXPECT_EQ(health::assess(sound, memory, {}).host.devices[3].health.state, HealthState::healthy);
    EXPECT_NE(health::assess(missing, memory, {}).host.devices[3].health.reason, "sram_ecc_uncorrected")
        << "it was healthy since";
  }
}

TEST(Assess, AMissingDeviceKeepsNoLesserFault) {
  health::AssessMemory memory;
  HostScan sound = scan_of("trn1.32xlarge"), repairable = sound;
  repairable.devices[3].signals.mem_ecc_repairable_uncorrected = 2;
  (void)health::assess(repairable, memory, {});
  sound.devices.erase(sound.devices.begin() + 3);
  EXPECT_EQ(health::assess(sound, memory, {}).host.devices[3].health.reason, "device_vanished");
}

TEST(Assess, AVanishedEfaStaysListedAndNoPeerMemoryIsFineWithoutNeuron) {
  health::AssessMemory memory;
  const HostScan sound = scan_of("p4d.24xlarge");
  HostScan scan = sound;
  scan.efas[0].p2p = "";
  EXPECT_EQ(health::assess(scan, memory, {}).host.efas[0].health.state, HealthState::healthy);
  scan = sound;
  scan.efas.erase(scan.efas.begin() + 2);
  const health::Assessment node = health::assess(std::move(scan), memory, {});
  ASSERT_EQ(node.host.efas.size(), 4U);
  EXPECT_EQ(node.host.efas[2].name, sound.efas[2].name);
  EXPECT_EQ(node.host.efas[2].presence, Presence::vanished);
  EXPECT_EQ(node.host.efas[2].health.reason, "efa_vanished");
  EXPECT_EQ(node.host.efas[1].health.state, HealthState::healthy);
}

TEST(Assess, AnInterfaceThatLosesItsDriverKeepsItsName) {
  health::AssessMemory memory;
  const HostScan sound = scan_of("trn1.32xlarge");
  (void)health::assess(sound, memory, {});
  HostScan scan = sound;
  scan.efas[0].driver_bound = false;
  scan.efas[0].name.clear();
  const health::Assessment node = health::assess(std::move(scan), memory, {});
  EXPECT_EQ(node.host.efas[0].name, sound.efas[0].name) << "the kubelet must see the same id turn unhealthy";
  EXPECT_EQ(node.host.efas[0].health.reason, "efa_driver_unbound");
}

TEST(Assess, ADeviceThatDoesNotAnswerKeepsItsFactsAndIsUnhealthy) {
  health::AssessMemory memory;
  const HostScan sound = scan_of("trn1.32xlarge");
  (void)health::assess(sound, memory, {});
  for (int again = 0; again < 2; ++again) {
    const health::Assessment node = health::assess(scan_without(sound, {{Kind::device, 3}}), memory, {});
    const model::NeuronDevice& silent = node.host.devices[3];
    EXPECT_EQ(silent.presence, Presence::not_answering);
    EXPECT_EQ(silent.neighbours, sound.devices[3].neighbours);
    EXPECT_FALSE(silent.signals.sram_ecc_uncorrected) << "no stale numbers";
    EXPECT_EQ(node.host.devices[3].health.state, HealthState::unhealthy);
    EXPECT_EQ(node.host.devices[3].health.reason, "not_answering");
    EXPECT_EQ(node.host.devices[3].health.sentence,
              "neuron3: reading sys/class/neuron_device/neuron3 has not returned since 2026-01-31T23:59:59Z");
    EXPECT_EQ(node.host.devices[2].health.state, HealthState::healthy);
  }
  EXPECT_EQ(health::assess(sound, memory, {}).host.devices[3].health.state, HealthState::healthy);
}

TEST(Assess, ADeviceThatNeverAnsweredHasItsPlaceFromTheTables) {
  health::AssessMemory memory;
  const HostScan silent = scan_without(silent_scan("trn1.32xlarge"), {{Kind::device, 3}});
  const health::Assessment node = health::assess(silent, memory, {});
  EXPECT_EQ(node.host.devices[3].physical_cores->value, 2);
  EXPECT_EQ(node.host.devices[3].health.reason, "not_answering");
  HostScan gone = silent_scan("trn1.32xlarge");
  gone.devices.erase(gone.devices.begin() + 3);
  EXPECT_EQ(health::assess(std::move(gone), memory, {}).host.devices.at(3).health.reason, "device_vanished");
}

TEST(Assess, ADriverThatDoesNotAnswerIsItsDevicesFault) {
  health::AssessMemory memory;
  HostScan sound = scan_of("trn2.48xlarge");
  sound.devices[3].logical_to_physical = {7, 6, 5, 4, 3, 2, 1, 0};
  (void)health::assess(sound, memory, {});
  HostScan scan = scan_without(sound, {{Kind::driver, 3}});
  scan.devices[3].presence = Presence::not_answering;
  scan.devices[3].logical_to_physical.reset();
  const health::Assessment node = health::assess(std::move(scan), memory, {});
  EXPECT_EQ(node.host.devices[3].logical_to_physical, sound.devices[3].logical_to_physical);
  EXPECT_EQ(node.host.devices[3].health.sentence,
            "neuron3: asking the driver and PCI about neuron3 has not returned since 2026-01-31T23:59:59Z");
}

TEST(Assess, ListsThatDoNotAnswer) {
  health::AssessMemory memory;
  const HostScan sound = scan_of("trn1.32xlarge");
  (void)health::assess(sound, memory, {});
  const health::Assessment devices = health::assess(scan_without(sound, {{Kind::devices}}), memory, {});
  ASSERT_EQ(devices.host.devices.size(), 16U);
  EXPECT_EQ(devices.host.devices[15].health.reason, "not_answering");
  EXPECT_EQ(devices.host.layout, sound.layout);
  EXPECT_EQ(devices.host.efas[0].health.state, HealthState::healthy);
  const health::Assessment classes = health::assess(scan_without(sound, {{Kind::efa_classes}}), memory, {});
  ASSERT_EQ(classes.host.efas.size(), 8U);
  EXPECT_EQ(classes.host.efas[7].health.reason, "not_answering");
  EXPECT_EQ(classes.host.devices[0].health.state, HealthState::healthy);
}

TEST(Assess, FactsOfTheHostThatDoNotAnswerStandAsLastSeen) {
  health::AssessMemory memory;
  const HostScan sound = scan_of("trn1.32xlarge");
  const HostScan first = health::assess(sound, memory, {}).host;
  const health::Assessment node = health::assess(scan_without(sound, {{Kind::host}, {Kind::pci}}), memory, {});
  EXPECT_EQ(node.host.instance_type, "trn1.32xlarge");
  EXPECT_EQ(node.host.driver_version, sound.driver_version);
  EXPECT_EQ(node.host.efas, first.efas);
  EXPECT_EQ(node.host.efas[0].health.state, HealthState::healthy);
  EXPECT_THAT(sentences(node.host.problems),
              testing::Contains(
                  "reading sys/bus/pci/devices has not returned since 2026-01-31T23:59:59Z; the last values are kept"));
}

TEST(Assess, AnInterfaceThatDoesNotAnswer) {
  health::AssessMemory memory;
  const HostScan sound = scan_of("trn1.32xlarge");
  (void)health::assess(sound, memory, {});
  HostScan scan = scan_without(sound, {{Kind::efa, 0, sound.efas[1].bdf}});
  scan.efas[1].presence = Presence::not_answering;
  scan.efas[1].driver_bound = false;
  const health::Assessment node = health::assess(std::move(scan), memory, {});
  EXPECT_EQ(node.host.efas[1].health.reason, "not_answering");
  EXPECT_EQ(node.host.efas[1].uverbs, sound.efas[1].uverbs);
  EXPECT_EQ(node.host.efas[0].health.state, HealthState::healthy);

  scan = scan_without(sound, {{Kind::verbs, 1}});
  scan.efas[1].uverbs.reset();
  const health::Assessment verbs = health::assess(std::move(scan), memory, {});
  EXPECT_EQ(verbs.host.efas[1].health.reason, "not_answering");
  EXPECT_THAT(verbs.host.efas[1].health.sentence,
              testing::HasSubstr("reading sys/class/infiniband_verbs/uverbs1 has not returned"));
}

}  // namespace
}  // namespace neuron::test
