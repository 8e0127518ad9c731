#include "agent/status/node_events.h"

#include <gmock/gmock.h>

#include "test/unit/status/nodes.h"

namespace neuron::status {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// What becomes of a node, state by state, as "Warning SramEccUncorrected: <message>".
class NodeEventsTest : public ::testing::Test {
 protected:
  std::vector<std::string> now(const model::HostScan& host) {
    std::vector<std::string> said;
    for (const NodeEvent& event : events_of(before_, host, open_)) {
      said.push_back((event.is_warning ? "Warning " : "Normal ") + event.reason + ": " + message_of(event));
    }
    before_ = host;
    return said;
  }

 private:
  model::HostScan before_;
  OpenFaults open_;
};

model::Health no_driver(const model::EfaInterface& efa) {
  return health::verdict(health::reasons::kEfaDriverUnbound,
                         efa.name + " (" + to_string(efa.bdf) + "): no efa driver is bound to it");
}

TEST_F(NodeEventsTest, AFaultAndItsEnd) {
  const model::HostScan sound = well_host(2, 1);
  model::HostScan faulty = sound;
  set_health(faulty, 1, broken(1));
  EXPECT_THAT(now(sound), IsEmpty()) << "what is healthy at the start asks for nothing";
  EXPECT_THAT(now(faulty), ElementsAre("Warning SramEccUncorrected: neuron1: 1 uncorrected SRAM errors; what to do: "
                                       "replace the instance (terminate, or stop and start)"));
  EXPECT_THAT(now(sound), ElementsAre("Normal Healthy: neuron1: healthy again, after sram_ecc_uncorrected"));
  EXPECT_THAT(now(sound), IsEmpty());
}

TEST_F(NodeEventsTest, ACommonCauseIsOneEventThatNamesAllUnits) {
  const model::HostScan sound = well_host(16, 4);
  model::HostScan faulty = sound;
  for (int i = 0; i < 16; ++i) {
    if (i == 4) continue;
    const std::string name = "neuron" + std::to_string(i);
    set_health(faulty, i, health::verdict(health::reasons::kDeviceNodeMissing, "dev/" + name + " does not exist"));
  }
  for (model::EfaInterface& efa : faulty.efas) efa.health = no_driver(efa);
  EXPECT_THAT(now(faulty),
              ElementsAre("Warning DeviceNodeMissing: neuron0 to neuron3 and neuron5 to neuron15: dev/neuron* does not "
                          "exist; what to do: restart udev or reload the Neuron driver",
                          "Warning EfaDriverUnbound: rdmap16s25, rdmap17s25, rdmap18s25 and rdmap19s25: no efa driver "
                          "is bound to it; what to do: load the efa driver, or bind it to the function"));
  EXPECT_THAT(now(sound),
              ElementsAre("Normal Healthy: neuron0 to neuron3 and neuron5 to neuron15: healthy again, after "
                          "device_node_missing",
                          "Normal Healthy: rdmap16s25, rdmap17s25, rdmap18s25 and rdmap19s25: healthy again, after "
                          "efa_driver_unbound"));
}

TEST_F(NodeEventsTest, AnotherUnitWithTheSameFaultIsSaidWithTheFirst) {
  model::HostScan host = well_host(4, 0);
  set_health(host, 1, broken(1));
  EXPECT_THAT(now(host), SizeIs(1));
  set_health(host, 3, broken(3));
  EXPECT_THAT(now(host), ElementsAre("Warning SramEccUncorrected: neuron1 and neuron3: 1 uncorrected SRAM errors; what "
                                     "to do: replace the instance (terminate, or stop and start)"));
}

TEST_F(NodeEventsTest, SentencesThatDifferAreSaidEach) {
  model::HostScan host = well_host(4, 0);
  set_health(host, 0, repairable(0, 7));
  set_health(host, 1, repairable(1, 2));
  set_health(host, 2, repairable(2, 7));
  EXPECT_THAT(now(host), ElementsAre("Warning MemEccRepairableUncorrected: neuron0 and neuron2: 7 repairable HBM "
                                     "errors; neuron1: 2 repairable HBM errors; what to do: drain the node, then "
                                     "reload the Neuron driver or reboot"));
}

TEST_F(NodeEventsTest, ATooLongMessageKeepsAllNamesAndTheAction) {
  model::HostScan host = well_host(16, 0);
  for (int i = 0; i < 16; ++i) {
    const std::string words = ": " + std::string(100, static_cast<char>('a' + i));
    set_health(host, i, health::verdict(health::reasons::kMemEccRepairable, "neuron" + std::to_string(i) + words));
  }
  const auto said = now(host);
  ASSERT_THAT(said, SizeIs(1));
  EXPECT_LE(said[0].size(), 1024 + std::string("Warning MemEccRepairableUncorrected: ").size());
  EXPECT_THAT(said[0],
              testing::EndsWith(" to neuron15; what to do: drain the node, then reload the Neuron driver or reboot"));
  EXPECT_THAT(said[0], testing::HasSubstr("; likewise neuron"));
}

TEST_F(NodeEventsTest, AnotherReasonIsAnEventAndAnotherCountIsNone) {
  model::HostScan host = well_host(1, 0);
  set_health(host, 0, repairable(0, 1));
  EXPECT_THAT(now(host), SizeIs(1));
  set_health(host, 0, repairable(0, 2));
  EXPECT_THAT(now(host), IsEmpty());
  set_health(host, 0, broken(0));
  EXPECT_THAT(now(host), ElementsAre(testing::HasSubstr("SramEccUncorrected")));
}

TEST_F(NodeEventsTest, WhatAsksForNothingIsNoEvent) {
  const model::HostScan sound = well_host(1, 0);
  model::HostScan silent = sound, resets = sound, faulty = sound, ones = sound;
  set_health(silent, 0, health::verdict(health::reasons::kNoSignals, "neuron0: no health files"));
  set_health(resets, 0, health::verdict(health::reasons::kResetting, "neuron0: reset reads 0"));
  set_health(ones, 0, health::verdict(health::reasons::kReadsAllOnes, "neuron0: 65535"));
  set_health(faulty, 0, broken(0));
  EXPECT_THAT(now(silent), IsEmpty());
  EXPECT_THAT(now(sound), IsEmpty()) << "nothing was said that it ends";
  EXPECT_THAT(now(resets), IsEmpty());
  EXPECT_THAT(now(ones), SizeIs(1));
  EXPECT_THAT(now(faulty), SizeIs(1));
  EXPECT_THAT(now(resets), IsEmpty());
  EXPECT_THAT(now(faulty), IsEmpty()) << "the reset did not help: nothing new";
  EXPECT_THAT(now(resets), IsEmpty());
  EXPECT_THAT(now(sound), ElementsAre("Normal Healthy: neuron0: healthy again, after sram_ecc_uncorrected"));
}

TEST_F(NodeEventsTest, LeavesAndComesBack) {
  const model::HostScan sound = well_host(1, 1);
  model::HostScan gone = sound;
  gone.efas[0].presence = model::Presence::vanished;
  gone.efas[0].health = health::verdict(health::reasons::kEfaVanished, "rdmap16s25 vanished from the PCI bus");
  EXPECT_THAT(now(sound), IsEmpty());
  EXPECT_THAT(now(gone), ElementsAre("Warning EfaVanished: rdmap16s25 vanished from the PCI bus; what to do: inspect "
                                     "the kernel log; reboot or replace the instance"));
  EXPECT_THAT(now(sound), ElementsAre("Normal Healthy: rdmap16s25: back and healthy, after efa_vanished"));
  model::HostScan unlisted = sound;
  unlisted.efas.clear();
  EXPECT_THAT(now(unlisted), ElementsAre("Warning Gone: rdmap16s25: no longer listed"));
}

// Without a driver an interface is called by its address.
TEST_F(NodeEventsTest, AnInterfaceThatGetsItsNameIsHealthyAgain) {
  const model::HostScan sound = well_host(0, 1);
  model::HostScan unbound = sound;
  unbound.efas[0].name.clear();
  unbound.efas[0].health = no_driver(unbound.efas[0]);
  EXPECT_THAT(now(unbound), SizeIs(1));
  EXPECT_THAT(now(sound), ElementsAre("Normal Healthy: rdmap16s25: healthy again, after efa_driver_unbound"));
}

}  // namespace
}  // namespace neuron::status
