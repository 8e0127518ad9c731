#include "agent/model/snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>

namespace neuron::model {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Kind = PartChange::Kind;

const Health kWell{HealthState::healthy, "", "", ""};
const Health kBroken{HealthState::unhealthy, "sram_ecc_uncorrected", "neuron1: 3 uncorrected SRAM errors",
                     "replace it"};
const Health kGone{HealthState::unhealthy, "device_vanished", "neuron1 left", "look at the log"};

// Two devices, an interface with a name and one that was never bound.
HostScan node() {
  HostScan host;
  for (int i = 0; i < 2; ++i) {
    NeuronDevice& device = host.devices.emplace_back();
    device.index = i;
    device.health = kWell;
    device.core_health = {kWell, kWell};
    device.cores.resize(2);
    device.processes.emplace().push_back({4290, 3, 100, 200});
  }
  for (const std::uint8_t bus : std::array<std::uint8_t, 2>{0x10, 0x20}) {
    EfaInterface& efa = host.efas.emplace_back();
    efa.bdf = {0, bus, 0x19, 0};
    efa.health = kWell;
  }
  host.efas[0].name = "rdmap16s25";
  return host;
}

TEST(Diff, OfTheSameIsNothing) {
  EXPECT_EQ(diff(node(), node()), SnapshotDiff{});
  EXPECT_EQ(diff({}, {}), SnapshotDiff{});
}

TEST(Diff, AtFirstEverythingAppears) {
  EXPECT_THAT(diff({}, node()).units, ElementsAre(PartChange{Kind::appeared, "neuron0", {}, kWell},
                                                  PartChange{Kind::appeared, "neuron1", {}, kWell},
                                                  PartChange{Kind::appeared, "rdmap16s25", {}, kWell},
                                                  PartChange{Kind::appeared, "0000:20:19.0", {}, kWell}));
}

TEST(Diff, HealthChangesWithReasonSentenceAndAction) {
  HostScan after = node();
  after.devices[1].health = kBroken;
  EXPECT_THAT(diff(node(), after).units, ElementsAre(PartChange{Kind::health, "neuron1", kWell, kBroken}));
  EXPECT_THAT(diff(after, node()).units, ElementsAre(PartChange{Kind::health, "neuron1", kBroken, kWell}));
}

TEST(Diff, WhatVanishesLeavesWhetherOrNotItStaysListed) {
  HostScan listed = node();
  listed.devices[1].presence = Presence::vanished;
  listed.devices[1].health = kGone;
  EXPECT_THAT(diff(node(), listed).units, ElementsAre(PartChange{Kind::left, "neuron1", kWell, kGone}));
  EXPECT_THAT(diff(listed, node()).units, ElementsAre(PartChange{Kind::appeared, "neuron1", kGone, kWell}));
  EXPECT_THAT(diff(listed, listed).units, IsEmpty());
  HostScan dropped = node();
  dropped.efas.erase(dropped.efas.begin());
  EXPECT_THAT(diff(node(), dropped).units, ElementsAre(PartChange{Kind::left, "rdmap16s25", kWell, {}}));
}

TEST(Diff, WhatDoesNotAnswerIsStillThere) {
  HostScan after = node();
  after.efas[0].presence = Presence::not_answering;
  after.efas[0].health = {HealthState::unhealthy, "not_answering", "it hangs", "look"};
  EXPECT_EQ(diff(node(), after).units.at(0).kind, Kind::health);
}

TEST(Diff, TellsThatProblemsChanged) {
  const ReadProblem problem{ProblemKind::file, "sys/x", "not a number"};
  HostScan of_host = node();
  of_host.problems = {problem};
  HostScan of_device = node();
  of_device.devices[0].problems = {problem};
  HostScan of_efa = node();
  of_efa.efas[1].problems = {problem};
  for (const HostScan& after : {of_host, of_device, of_efa}) {
    EXPECT_TRUE(diff(node(), after).problems);
    EXPECT_TRUE(diff(after, node()).problems);
    EXPECT_TRUE(diff({}, after).problems);
    EXPECT_FALSE(diff(after, after).problems);
    EXPECT_THAT(diff(node(), after).units, IsEmpty());
  }
  EXPECT_TRUE(diff(of_host, of_device).problems);
}

TEST(WithoutCounters, OnlyCountersAreDropped) {
  HostScan counted = node();
  counted.devices[0].signals.heartbeat = 7;
  counted.devices[0].signals.sram_ecc_corrected = 7;
  counted.devices[0].cores[1].hw_error = 7;
  counted.devices[0].cores[1].device_memory_bytes = 7;
  counted.devices[0].processes->front().device_memory_bytes = 7;
  counted.efas[0].no_completion_cmds = 7;
  EXPECT_EQ(without_counters(counted), without_counters(node()));
  const std::vector<std::function<void(HostScan&)>> changes = {
      [](HostScan& host) { host.devices.pop_back(); },
      [](HostScan& host) { host.devices[0].health = kBroken; },
      [](HostScan& host) { host.devices[0].core_health[1] = kBroken; },
      [](HostScan& host) { host.devices[0].node_present = true; },
      [](HostScan& host) { host.devices[0].cores.pop_back(); },
      [](HostScan& host) { host.devices[0].cores[1].physical_index = 5; },
      [](HostScan& host) { host.devices[0].processes->front().pid = 1; },
      [](HostScan& host) { host.devices[0].problems.emplace_back(); },
      [](HostScan& host) { host.efas[0].health = kBroken; },
      [](HostScan& host) { host.efas[0].driver_bound = true; },
      [](HostScan& host) {
        host.lnc = {2, Origin::live};
      },
      [](HostScan& host) { host.problems.emplace_back(); },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    HostScan changed = node();
    changes[i](changed);
    EXPECT_NE(without_counters(changed), without_counters(node())) << i;
  }
}

TEST(WithoutCounters, MoreLinesOfTheSameKernelErrorAreNoNews) {
  HostScan once = node();
  once.kernel_log.errors.resize(1);
  once.kernel_log.errors[0].lines = 1;
  HostScan again = once;
  again.kernel_log.errors[0].lines = 7;
  again.kernel_log.errors[0].last_at = std::chrono::seconds(9);
  again.kernel_log.lost_records = 3;
  once.kernel_log.ignored_lines = 2;
  again.kernel_log.ignored_lines = 3;
  EXPECT_EQ(without_counters(once), without_counters(again));
  again.kernel_log.ignored_lines = 4;
  EXPECT_NE(without_counters(once), without_counters(again)) << "told when they have doubled";
  again.kernel_log.ignored_lines = 3;
  again.kernel_log.errors[0].device = 3;
  EXPECT_NE(without_counters(once), without_counters(again));
}

}  // namespace
}  // namespace neuron::model
