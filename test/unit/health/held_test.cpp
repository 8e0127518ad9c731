
#include <gtest/gtest.h>

#include <algorithm>

#include "agent/health/assess.h"
#include "test/unit/core/make_host.h"

namespace neuron::test {
namespace {

using health::note_held_device;
using health::note_held_efa;
using health::with_held;
using model::HealthState;
using model::HostScan;
using model::Presence;
using model::Snapshot;

Snapshot assessed(HostScan scan) {
  health::AssessMemory memory;
  return {1, 1, health::assess(std::move(scan), memory, SteadyTime{}).host};
}

template <typename Item>
std::vector<std::size_t> vanished(const std::vector<Item>& items) {
  std::vector<std::size_t> positions;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i].presence == Presence::vanished) positions.push_back(i);
  }
  return positions;
}

TEST(Held, ADeviceIsNotedOnceAndAsItsNeighboursAre) {
  core::SeenBefore held;
  HostScan host = scan_of("trn2.48xlarge");
  EXPECT_TRUE(note_held_device(held, 15, host));
  EXPECT_FALSE(note_held_device(held, 15, host));
  EXPECT_EQ(held.devices.at(15).index, 15);
  EXPECT_EQ(held.devices.at(15).family, model::Family::trainium2);
  core::SeenBefore of_unknown_type;
  host.instance_type = "nobody.knows";
  EXPECT_TRUE(note_held_device(of_unknown_type, 15, host));
  EXPECT_EQ(of_unknown_type.devices.at(15).family, model::Family::trainium2);
  host.instance_type = "trn2.48xlarge";
  host.devices.clear();
  EXPECT_TRUE(note_held_device(held, 3, host));
  EXPECT_EQ(held.devices.at(3).family, model::Family::trainium2) << "by the instance type";
  host.instance_type = "nobody.knows";
  EXPECT_TRUE(note_held_device(held, 4, host));
  EXPECT_FALSE(held.devices.at(4).family);
}

TEST(Held, ADeviceThatTheTypeDoesNotHaveIsNotNoted) {
  core::SeenBefore held;
  HostScan host = scan_of("trn1.32xlarge");
  for (const int index : {-1, 16, 63}) EXPECT_FALSE(note_held_device(held, index, host)) << index;
  host.instance_type = "nobody.knows";
  for (const int index : {-1, 64, 100000}) EXPECT_FALSE(note_held_device(held, index, host)) << index;
  EXPECT_TRUE(held.devices.empty());
  EXPECT_TRUE(note_held_device(held, 63, host));
}

TEST(Held, AnInterfacesNameTellsItsAddress) {
  core::SeenBefore held;
  EXPECT_TRUE(note_held_efa(held, "rdmap201s27"));
  EXPECT_FALSE(note_held_efa(held, "rdmap201s27"));
  ASSERT_EQ(held.efas.size(), 1U);
  EXPECT_EQ(held.efas.begin()->first, (model::Bdf{0, 201, 27, 0}));
  EXPECT_EQ(held.efas.begin()->second.name, "rdmap201s27");
  EXPECT_EQ(held.efas.begin()->second.bdf, held.efas.begin()->first);
}

TEST(Held, AnInterfaceWithAnotherNameIsNotNoted) {
  core::SeenBefore held;
  for (const char* name : {"", "rdmap", "rdmap1", "rdmaps1", "rdmap1s", "efa_0", "xrdmap1s1", "rdmap256s1", "rdmap1s32",
                           "rdmap01s1", "rdmap1s01", "rdmap-1s1", "rdmap1s1f0", "rdmap1s1 "}) {
    EXPECT_FALSE(note_held_efa(held, name)) << name;
  }
  EXPECT_TRUE(held.efas.empty());
}

TEST(Held, SixtyFourInterfacesAreTheMost) {
  core::SeenBefore held;
  for (int bus = 0; bus < 64; ++bus) EXPECT_TRUE(note_held_efa(held, "rdmap" + std::to_string(bus) + "s0"));
  EXPECT_FALSE(note_held_efa(held, "rdmap64s0"));
  EXPECT_EQ(held.efas.size(), 64U);
}

TEST(Held, AMissingDeviceIsAddedInItsPlaceAsVanished) {
  HostScan scan = scan_of("trn2.48xlarge");
  scan.devices.erase(scan.devices.begin() + 5);
  const Snapshot before = assessed(std::move(scan));
  ASSERT_EQ(before.host.devices.size(), 15U);
  core::SeenBefore held;
  for (const int index : {3, 5}) ASSERT_TRUE(note_held_device(held, index, before.host));
  const Snapshot after = with_held(before, held, std::nullopt);
  ASSERT_EQ(after.host.devices.size(), 16U);
  EXPECT_EQ(vanished(after.host.devices), std::vector<std::size_t>{5}) << "neuron3 is there";
  const model::NeuronDevice& device = after.host.devices[5];
  EXPECT_EQ(device.index, 5);
  EXPECT_EQ(device.health.state, HealthState::unhealthy);
  EXPECT_EQ(device.health.reason, "device_vanished");
  EXPECT_EQ(device.core_health.size(), 8U) << "completed from the tables";
  EXPECT_EQ(after.number, before.number);
  EXPECT_EQ(after.generation, before.generation);
  EXPECT_TRUE(vanished(before.host.devices).empty());
}

TEST(Held, AMissingInterfaceIsAddedInItsPlaceAsVanished) {
  HostScan scan = scan_of("trn1.32xlarge");
  const std::string name = scan.efas.at(2).name;
  scan.efas.erase(scan.efas.begin() + 2);
  const Snapshot before = assessed(std::move(scan));
  core::SeenBefore held;
  ASSERT_TRUE(note_held_efa(held, name));
  const Snapshot after = with_held(before, held, std::nullopt);
  ASSERT_EQ(after.host.efas.size(), 8U);
  EXPECT_EQ(vanished(after.host.efas), std::vector<std::size_t>{2});
  EXPECT_EQ(after.host.efas[2].name, name);
  EXPECT_EQ(after.host.efas[2].health.state, HealthState::unhealthy);
}

// As after a first scan without descriptors: that they are gone is not known.
TEST(Held, WhatIsOnAListThatWasNeverReadIsUnreadAndNotVanished) {
  using Kind = model::ScanPart::Kind;
  HostScan scan = scan_of("trn1.32xlarge");
  const std::string name = scan.efas.at(2).name;
  scan.devices.clear();
  scan.efas.clear();
  scan.unread_lists = {{Kind::devices}, {Kind::pci}};
  scan.problems = {{model::ProblemKind::file, "sys/class/neuron_device", "Too many open files"}};
  const Snapshot before = assessed(std::move(scan));
  core::SeenBefore held;
  ASSERT_TRUE(note_held_device(held, 5, before.host));
  ASSERT_TRUE(note_held_efa(held, name));
  Snapshot after = with_held(before, held, std::nullopt);
  ASSERT_EQ(after.host.devices.size(), 1U);
  ASSERT_EQ(after.host.efas.size(), 1U);
  EXPECT_EQ(after.host.devices[0].presence, Presence::unread);
  EXPECT_EQ(after.host.efas[0].presence, Presence::unread);
  for (const model::Health& health : {after.host.devices[0].health, after.host.efas[0].health}) {
    EXPECT_EQ(health.state, HealthState::unknown);
    EXPECT_EQ(health.reason, "unread");
    EXPECT_EQ(health.sentence.find("vanished"), std::string::npos);
  }
  EXPECT_NE(after.host.devices[0].health.sentence.find("Too many open files"), std::string::npos);
  EXPECT_EQ(after.host.devices[0].core_health.size(), 2U) << "completed from the tables";
  Snapshot read = before;
  read.host.unread_lists.clear();
  EXPECT_EQ(with_held(read, held, std::nullopt).host.devices[0].presence, Presence::vanished);
}

TEST(Held, AnInterfaceWithoutANameGetsTheHeldOneAndKeepsItsHealth) {
  Snapshot before = assessed(scan_of("trn1.32xlarge"));
  const std::string name = std::exchange(before.host.efas.at(2).name, "");
  before.host.efas[2].driver_bound = false;
  before.host.efas[2].health = {HealthState::unhealthy, "efa_driver_unbound", "of several scans", ""};
  core::SeenBefore held;
  ASSERT_TRUE(note_held_efa(held, name));
  const Snapshot after = with_held(before, held, std::nullopt);
  ASSERT_EQ(after.host.efas.size(), 8U);
  EXPECT_EQ(after.host.efas[2].name, name);
  EXPECT_EQ(after.host.efas[2].presence, Presence::present);
  EXPECT_EQ(after.host.efas[2].health, before.host.efas[2].health);
}

TEST(Held, AnInterfaceThatDoesNotAnswerKeepsItsHealth) {
  Snapshot before = assessed(scan_of("trn1.32xlarge"));
  const std::string name = before.host.efas.at(2).name;
  before.host.efas[2].presence = Presence::not_answering;
  before.host.efas[2].health = {HealthState::unhealthy, "not_answering", "since a while", ""};
  core::SeenBefore held;
  ASSERT_TRUE(note_held_efa(held, name));
  const Snapshot after = with_held(before, held, std::nullopt);
  EXPECT_EQ(after.host.efas[2].presence, Presence::not_answering);
  EXPECT_EQ(after.host.efas[2].health, before.host.efas[2].health);
}

// The snapshot's verdicts rest on more than one scan, of which with_held() sees the last.
TEST(Held, WhatTheSnapshotSaysOfHealthStays) {
  Snapshot before = assessed(scan_of("trn1.32xlarge"));
  before.host.devices.erase(before.host.devices.begin());
  const model::Health grown{HealthState::unhealthy, "hw_error", "of several scans", ""};
  for (auto& device : before.host.devices) {
    device.health = grown;
    device.core_health = {grown, grown};
  }
  for (auto& efa : before.host.efas) efa.health = grown;
  core::SeenBefore held;
  ASSERT_TRUE(note_held_device(held, 0, before.host));
  const Snapshot after = with_held(before, held, std::nullopt);
  ASSERT_EQ(after.host.devices.size(), 16U);
  EXPECT_EQ(after.host.devices[0].health.reason, "device_vanished");
  for (std::size_t i = 1; i < after.host.devices.size(); ++i) {
    EXPECT_EQ(after.host.devices[i].health, grown) << i;
    EXPECT_EQ(after.host.devices[i].core_health, (std::vector{grown, grown})) << i;
  }
  for (const model::EfaInterface& efa : after.host.efas) EXPECT_EQ(efa.health, grown);
}

TEST(Held, TheRestOfTheNodeIsNotAssessedAgain) {
  Snapshot before = assessed(scan_of("trn2.48xlarge"));
  before.host.devices.erase(before.host.devices.begin());
  before.host.kernel_log.node_health = {HealthState::degraded, "hang_on_collectives", "of a later time", ""};
  for (auto& device : before.host.devices) device.signals = {};  // as of a driver that does not measure health
  core::SeenBefore held;
  ASSERT_TRUE(note_held_device(held, 0, before.host));
  const Snapshot after = with_held(before, held, std::nullopt);
  ASSERT_EQ(after.host.devices.size(), 16U);
  EXPECT_EQ(after.host.kernel_log, before.host.kernel_log);
  EXPECT_EQ(after.host.problems, before.host.problems);
}

// What has not answered is in the snapshot as it was last seen: nothing of it is put in once more, and it is still
// told.
TEST(Held, WhatDidNotAnswerIsStillSaid) {
  Snapshot before = assessed(scan_of("trn1.32xlarge"));
  before.host.unanswered = {{{model::ScanPart::Kind::devices}, "2026-01-31T23:59:59Z"}};
  const std::size_t problems = before.host.problems.size();
  core::SeenBefore held;
  ASSERT_TRUE(note_held_device(held, 0, before.host));
  const Snapshot after = with_held(before, held, std::nullopt);
  EXPECT_EQ(after.host.unanswered, before.host.unanswered);
  EXPECT_EQ(after.host.problems.size(), problems);
  EXPECT_EQ(after.host.devices, before.host.devices);
}

TEST(Held, CoreIdsAreReadWithTheGivenSize) {
  HostScan scan = scan_of("trn2.48xlarge");
  scan.lnc = {1, model::Origin::live};
  const Snapshot before = assessed(std::move(scan));
  EXPECT_EQ(with_held(before, {}, 2).host.lnc->value, 2);
  EXPECT_EQ(with_held(before, {}, 1).host.lnc->value, 1);
  EXPECT_EQ(with_held(before, {}, std::nullopt).host.lnc->value, 1);
  Snapshot without = before;
  without.host.devices.clear();
  without.host.lnc.reset();
  EXPECT_EQ(with_held(without, {}, 2).host.lnc->value, 2);
}

}  // namespace
}  // namespace neuron::test
