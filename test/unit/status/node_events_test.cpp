#include "agent/status/node_events.h"

#include <gmock/gmock.h>

#include "test/unit/status/nodes.h"

namespace neuron::status {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<NodeEvent> between(const model::HostScan& before, const model::HostScan& after) {
  return events_of(model::diff(before, after), Since::before);
}

TEST(NodeEvents, AFaultAndItsEnd) {
  const model::HostScan well = well_host(2, 1);
  model::HostScan ill = well;
  set_health(ill, 1, broken(1));
  EXPECT_THAT(between(well, ill),
              ElementsAre(NodeEvent{true, "neuron1", "SramEccUncorrected",
                                    "neuron1: 1 uncorrected SRAM errors; what to do: replace the instance (terminate, "
                                    "or stop and start)"}));
  EXPECT_THAT(between(ill, well), ElementsAre(NodeEvent{false, "neuron1", "Healthy",
                                                        "neuron1 is healthy again, after sram_ecc_uncorrected"}));
}

TEST(NodeEvents, AnotherReasonIsAnEventAndAnotherCountIsNone) {
  model::HostScan one = well_host(1, 0), two = one, other = one;
  set_health(one, 0, repairable(0, 1));
  set_health(two, 0, repairable(0, 2));
  set_health(other, 0, broken(0));
  EXPECT_THAT(between(one, two), IsEmpty());
  ASSERT_EQ(between(two, other).size(), 1U);
  EXPECT_EQ(between(two, other)[0].reason, "SramEccUncorrected");
}

TEST(NodeEvents, WhatIsWellAtTheStartIsNotWorthAWord) {
  model::HostScan host = well_host();
  EXPECT_THAT(events_of(model::diff({}, host), Since::start), IsEmpty());
  set_health(host, 2, broken(2));
  ASSERT_EQ(events_of(model::diff({}, host), Since::start).size(), 1U);
}

TEST(NodeEvents, LeavesAndComesBack) {
  const model::HostScan well = well_host(1, 1);
  model::HostScan gone = well;
  gone.efas[0].presence = model::Presence::vanished;
  gone.efas[0].health = health::verdict(health::reasons::kEfaVanished, "rdmap16s25 left the PCI bus");
  ASSERT_EQ(between(well, gone).size(), 1U);
  EXPECT_EQ(between(well, gone)[0].reason, "EfaVanished");
  EXPECT_THAT(between(gone, well), ElementsAre(NodeEvent{false, "rdmap16s25", "Healthy",
                                                         "rdmap16s25 is there and healthy again, after efa_vanished"}));
  model::HostScan unlisted = well;
  unlisted.efas.clear();
  EXPECT_THAT(between(well, unlisted),
              ElementsAre(NodeEvent{true, "rdmap16s25", "Gone", "rdmap16s25 is not listed any more"}));
}

TEST(NodeEvents, WhatNobodyCanActOnIsNoWarning) {
  const model::HostScan well = well_host(1, 0);
  model::HostScan silent = well, log = well, resets = well;
  set_health(silent, 0, health::verdict(health::reasons::kNoSignals, "neuron0: no health files"));
  set_health(log, 0, health::verdict(health::reasons::kReadsAllOnes, "neuron0: 65535"));
  set_health(resets, 0, health::verdict(health::reasons::kResetting, "neuron0: reset reads 0"));
  EXPECT_FALSE(between(well, silent)[0].is_warning);
  EXPECT_TRUE(between(well, log)[0].is_warning);
  EXPECT_TRUE(between(well, resets)[0].is_warning);
}

}  // namespace
}  // namespace neuron::status
