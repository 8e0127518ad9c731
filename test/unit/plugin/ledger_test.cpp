#include "plugin/device/ledger.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>

namespace neuron::test {
namespace {

using std::chrono::seconds;

holdings::Holding cores(model::Resource resource, std::vector<int> ids, holdings::CheckpointVersion version,
                        int second = 0, std::string holder = "") {
  std::vector<int> units = ids;
  holdings::Holding holding{
      resource, std::move(units), std::move(ids), {}, std::move(holder), version, SteadyTime{} + seconds(second)};
  for (const int core : holding.cores) {
    if (holding.devices.empty() || holding.devices.back() != core / 2) holding.devices.push_back(core / 2);
  }
  return holding;
}

constexpr auto kCore = model::Resource::neuroncore;
constexpr auto kDevice = model::Resource::neuron;
constexpr auto kAlias = model::Resource::neurondevice;

TEST(Ledger, ACoreHeldThroughOneResourceConflictsInEveryOther) {
  plugin::Ledger ledger;
  ledger.record(cores(kDevice, {2, 3}, 7));
  ASSERT_TRUE(ledger.conflict(kCore, {1, 2}, {1, 2}, 8));
  EXPECT_EQ(ledger.conflict(kCore, {1, 2}, {1, 2}, 8)->core, 2);
  EXPECT_TRUE(ledger.conflict(kAlias, {2, 3}, {2, 3}, 8));
  EXPECT_FALSE(ledger.conflict(kCore, {0, 1}, {0, 1}, 8));
  EXPECT_FALSE(ledger.conflict(kDevice, {2, 3}, {2, 3}, 8)) << "the kubelet alone counts within one resource";
}

// The kubelet's device manager knows nothing of claims: it gives and writes as if the hardware were free.
TEST(Ledger, OnlyTheNextWordOfClaimsEndsThem) {
  plugin::Ledger ledger;
  holdings::Holding claim = cores(kCore, {2, 3}, 0, 0, "team/train/main");
  claim.claim = "chips";
  ledger.set_claimed({claim});
  for (const auto resource : {kCore, kDevice, kAlias}) {
    ASSERT_TRUE(ledger.conflict(resource, {3}, {3, 4}, 8));
    EXPECT_EQ(ledger.blocked_cores(resource), (std::vector<int>{2, 3}));
    EXPECT_EQ(ledger.held_units(resource), std::vector<int>{}) << "not through this resource";
  }
  EXPECT_EQ(ledger.conflict(kCore, {3}, {3, 4}, 8)->describe(),
            "core 3 is held by team/train/main through claim chips");
  const auto at = [](int second) { return SteadyTime{} + seconds(second); };
  ledger.available(kCore, {2, 3}, at(9), at(9));
  ledger.confirm({}, at(9));
  ledger.reconcile({{}, at(20), {}, 0});
  EXPECT_TRUE(ledger.conflict(kCore, {3}, {3}, 8));
  ledger.set_claimed({});
  EXPECT_FALSE(ledger.conflict(kCore, {3}, {3}, 8));
}

// A checkpoint that is written after units became available makes the newest List count again, which may have been
// asked before it.
TEST(Ledger, AvailableUnitsAreNotBroughtBackByAListFromBefore) {
  plugin::Ledger ledger;
  const auto at = [](int second) { return SteadyTime{} + seconds(second); };
  const std::vector<holdings::Holding> listed = {cores(kDevice, {0, 1}, 0, 10, "a"),
                                                 cores(kDevice, {2, 3}, 0, 10, "b")};
  ledger.reconcile({listed, at(10), {}, 0});
  ASSERT_EQ(ledger.holdings().size(), 2U);
  ledger.available(kDevice, {2, 3}, at(11), at(12));
  ledger.reconcile({listed, at(10), {}, 0});
  ASSERT_EQ(ledger.holdings().size(), 1U);
  EXPECT_EQ(ledger.holdings()[0].holder, "a");
  ledger.reconcile({listed, at(13), {}, 0});
  EXPECT_EQ(ledger.holdings().size(), 2U) << "a List asked later knows better";
}

TEST(Ledger, OneAdmissionMayAskForBoth) {
  plugin::Ledger ledger;
  ledger.record(cores(kDevice, {0, 1}, 7));
  ASSERT_NE(ledger.cores_of_admission(kCore, 7), nullptr);
  EXPECT_FALSE(ledger.conflict(kCore, {0, 1}, {0, 1}, 7));
  EXPECT_EQ(ledger.cores_of_admission(kCore, 8), nullptr) << "another container";
  EXPECT_EQ(ledger.cores_of_admission(kDevice, 7), nullptr) << "a container asks for a resource once";
}

TEST(Ledger, AnUnknownVersionNeverMakesTwoContainersOne) {
  plugin::Ledger ledger;
  ledger.record(cores(kDevice, {0, 1}, 0));
  EXPECT_EQ(ledger.cores_of_admission(kCore, 0), nullptr);
  EXPECT_TRUE(ledger.conflict(kCore, {0, 1}, {0, 1}, 0));
}

TEST(Ledger, BlockedCoresLeaveOutWhatTheSameContainerHoldsThroughBoth) {
  plugin::Ledger ledger;
  ledger.record(cores(kDevice, {0, 1}, 7));
  EXPECT_EQ(ledger.blocked_cores(kCore), (std::vector<int>{0, 1}));
  EXPECT_TRUE(ledger.blocked_cores(kDevice).empty());
  ledger.record(cores(kCore, {0, 1}, 7));
  EXPECT_TRUE(ledger.blocked_cores(kCore).empty());
  EXPECT_TRUE(ledger.blocked_cores(kDevice).empty());
  ledger.record(cores(kCore, {4}, 9));
  EXPECT_EQ(ledger.blocked_cores(kDevice), (std::vector<int>{4}));
}

TEST(Ledger, GivingAUnitAgainEndsItsEarlierHolding) {
  plugin::Ledger ledger;
  ledger.record(cores(kCore, {0, 1}, 7));
  ledger.record(cores(kCore, {1, 2}, 8, 60));
  ASSERT_EQ(ledger.holdings().size(), 1U);
  EXPECT_EQ(ledger.holdings()[0].cores, (std::vector<int>{1, 2}));
}

TEST(Ledger, AnInitContainerKeepsWhatTheNextContainerDoesNotUseAgain) {
  plugin::Ledger ledger;
  ledger.record(cores(kCore, {0, 1, 8}, 7, 1));
  ledger.record(cores(kDevice, {0, 1}, 7, 1));
  ledger.record(cores(kCore, {1}, 8, 2));
  EXPECT_TRUE(ledger.conflict(kDevice, {4}, {8, 9}, 9)) << "the init container runs for a while yet";
  EXPECT_FALSE(ledger.conflict(kDevice, {3}, {6, 7}, 9));
  EXPECT_EQ(ledger.holdings().size(), 3U);
}

TEST(Ledger, AContainerWhoseUnitIsGivenAgainIsOverInEveryResource) {
  plugin::Ledger ledger;
  ledger.record(cores(kDevice, {0, 1, 2, 3}, 7));
  ledger.record(cores(kCore, {0, 1, 2, 3}, 7));
  ASSERT_EQ(ledger.holdings().size(), 2U) << "one container, two resources";
  EXPECT_FALSE(ledger.conflict(kCore, {0}, {0}, 8)) << "the kubelet gives core 0 again, so its old container has ended";
  EXPECT_TRUE(ledger.conflict(kAlias, {0, 1}, {0, 1}, 8));
  ledger.record(cores(kCore, {0}, 8, 60));
  ASSERT_EQ(ledger.holdings().size(), 1U);
  EXPECT_FALSE(ledger.conflict(kDevice, {2, 3}, {2, 3}, 9));
}

TEST(Ledger, AvailableUnitsAreFreeAndTheirOldContainerHasEnded) {
  plugin::Ledger ledger;
  ledger.record(cores(kDevice, {0, 1}, 7, 1));
  ledger.record({model::Resource::efa, {3}, {}, {}, "", 7, SteadyTime{} + seconds(1)});
  ledger.record(cores(kDevice, {2, 3}, 8, 5));
  ledger.record({model::Resource::efa, {4}, {}, {}, "", 8, SteadyTime{} + seconds(5)});
  ledger.available(model::Resource::efa, {3, 4}, SteadyTime{} + seconds(4), SteadyTime{} + seconds(5));
  ASSERT_EQ(ledger.holdings().size(), 2U) << "the NIC is free, so its container and the container's device are too";
  EXPECT_EQ(ledger.holdings()[0].version, 8U) << "too young: the kubelet may count as free what it has just given";
}

TEST(Ledger, AVersionInheritedFromARefusedPodDoesNotEndItsHeir) {
  plugin::Ledger ledger;
  ledger.record(cores(kCore, {4, 5}, 7, 1));    // its pod was refused by the kubelet: no checkpoint, the version stays
  ledger.record(cores(kDevice, {4, 5}, 7, 3));  // the next pod
  EXPECT_TRUE(ledger.conflict(kCore, {4}, {4}, 8)) << "core 4 is in use, though available to the kubelet";
  ledger.available(kCore, {4, 5}, SteadyTime{} + seconds(9), SteadyTime{} + seconds(10));
  EXPECT_TRUE(ledger.conflict(kCore, {4}, {4}, 8));
}

TEST(Ledger, NicsAndHardwareOfOneAdmissionAreFoundOnceEach) {
  plugin::Ledger ledger;
  ledger.record({model::Resource::efa, {3}, {}, {}, "", 7, SteadyTime{}});
  ASSERT_NE(ledger.efas_of_admission(kDevice, 7), nullptr);
  EXPECT_EQ(ledger.efas_of_admission(kDevice, 7)->units, (std::vector<int>{3}));
  EXPECT_EQ(ledger.cores_of_admission(kDevice, 7), nullptr);
  ledger.record(cores(kDevice, {0, 1}, 7));
  EXPECT_EQ(ledger.efas_of_admission(kDevice, 7), nullptr) << "asked twice: this is the next container";
  ASSERT_NE(ledger.cores_of_admission(model::Resource::efa, 7), nullptr) << "those NICs may have been a refused pod's";
  EXPECT_FALSE(ledger.conflict(kCore, {9}, {9}, 8));
}

TEST(Ledger, UnderARefusedPodsVersionWhatCameAfterItsAnswersIsTheNextContainers) {
  plugin::Ledger ledger;
  ledger.record(cores(kCore, {28, 29}, 7, 1));  // refused for want of a NIC
  ledger.record(cores(kDevice, {28, 29}, 7, 2));
  ASSERT_NE(ledger.cores_of_admission(kCore, 7), nullptr);
  EXPECT_EQ(ledger.cores_of_admission(kCore, 7)->resource, kDevice);
}

TEST(Ledger, ReconcileNamesKeepsAndDrops) {
  plugin::Ledger ledger;
  ledger.record(cores(kDevice, {0, 1}, 7, 1));
  ledger.record(cores(kDevice, {2, 3}, 8, 1));
  ledger.record(cores(kDevice, {4, 5}, 9, 5));
  ledger.reconcile({{cores(kDevice, {0, 1}, 0, 3, "default/train/worker"), cores(kCore, {8}, 0, 3, "a/b/c")},
                    SteadyTime{} + seconds(3),
                    {},
                    0});
  EXPECT_FALSE(ledger.conflict(kCore, {2, 3}, {2, 3}, 0)) << "recorded before the question, not shown: over";
  EXPECT_TRUE(ledger.conflict(kCore, {4}, {4}, 0)) << "recorded after the question: cannot be in the answer yet";
  EXPECT_TRUE(ledger.conflict(kDevice, {8}, {8}, 0)) << "held since before our time";
  const auto conflict = ledger.conflict(kCore, {0}, {0}, 0);
  ASSERT_TRUE(conflict);
  EXPECT_EQ(conflict->describe(), "core 0 is held by default/train/worker through aws.amazon.com/neuron");
  EXPECT_NE(ledger.cores_of_admission(kCore, 7), nullptr) << "its admission may still go on";
}

TEST(Ledger, AnAnswerIsNotLostToAnOlderEntryThatItReuses) {
  plugin::Ledger ledger;
  ledger.record(cores(kCore, {1, 2, 3}, 8, 5));
  ledger.reconcile({{}, SteadyTime{} + seconds(3), {cores(kCore, {0, 1, 2, 3, 4}, 0, 3, "pod u1/init")}, 9});
  ASSERT_EQ(ledger.holdings().size(), 2U) << "the init container's, and what the next one uses again";
  ASSERT_NE(ledger.cores_of_admission(kDevice, 8), nullptr);
  EXPECT_EQ(ledger.cores_of_admission(kDevice, 8)->cores, (std::vector<int>{1, 2, 3}));
}

// List shows a container only once the kubelet has all of its answers. Between two of them the agent may have been
// stopped for seconds, or another vendor's plugin may take its time.
TEST(Ledger, AnAnswerIsNotLostToAListWhileItsAdmissionGoesOn) {
  const auto at = [](int ms) { return SteadyTime{} + std::chrono::milliseconds(ms); };
  plugin::Ledger ledger;
  holdings::Holding given = cores(kDevice, {10, 11}, 7, 0);
  given.since = at(1000);
  ledger.record(given);
  ledger.reconcile({{}, at(3000), {}, 7});
  EXPECT_TRUE(ledger.conflict(kCore, {10}, {10}, 8)) << "the checkpoint is still that of before the answer";
  ledger.reconcile({{}, at(3000), {}, 8});
  EXPECT_FALSE(ledger.conflict(kCore, {10}, {10}, 8)) << "written since, and neither source shows it: refused";
}

// A list of ours makes the kubelet write its checkpoint at any time, and it may look before it has read our answer.
TEST(Ledger, AnAnswerOnItsWayIsNotLostToACheckpointThatDoesNotShowIt) {
  const auto at = [](int ms) { return SteadyTime{} + std::chrono::milliseconds(ms); };
  plugin::Ledger ledger;
  holdings::Holding given = cores(kDevice, {10, 11}, 7, 0);
  given.since = at(1000);
  ledger.record(given);
  ledger.reconcile({{}, at(1001), {}, 8});
  EXPECT_TRUE(ledger.conflict(kCore, {10}, {10}, 8));
  ledger.reconcile({{}, at(1100), {}, 8});
  EXPECT_FALSE(ledger.conflict(kCore, {10}, {10}, 8)) << "the pod was refused";
}

TEST(Ledger, WhatOnlyTheCheckpointShowedIsOverWithANewerCheckpointOfTheSameList) {
  const auto asked = SteadyTime{} + seconds(3);
  plugin::Ledger ledger;
  holdings::Holding stored = cores(kDevice, {14, 15}, 0, 0, "pod u1/init");
  stored.since = asked - SteadyTime::duration{1};
  ledger.reconcile({{}, asked, {stored}, 7});
  ledger.reconcile({{}, asked, {}, 8});
  EXPECT_TRUE(ledger.holdings().empty());
}

// A write of the kubelet that another has overtaken shows what was up to a second before it landed.
TEST(Ledger, WhatACheckpointLeavesOutIsOpenWhileItMayBeOlder) {
  const auto at = [](int ms) { return SteadyTime{} + std::chrono::milliseconds(ms); };
  plugin::Ledger ledger;
  holdings::Holding given = cores(kCore, {18}, 7, 0);
  given.since = at(1000);
  ledger.record(given);
  ledger.reconcile({{}, at(1500), {}, 8, at(1950)});
  EXPECT_TRUE(ledger.conflict(kDevice, {9}, {18, 19}, 9));
  EXPECT_TRUE(ledger.needs_newer_checkpoint());
  ledger.reconcile({{}, at(3000), {}, 8, at(1950)});
  EXPECT_TRUE(ledger.conflict(kDevice, {9}, {18, 19}, 9)) << "the same checkpoint says no more than before";
  ledger.reconcile({{}, at(3000), {}, 9, at(1951)});
  EXPECT_FALSE(ledger.conflict(kDevice, {9}, {18, 19}, 9));
  EXPECT_FALSE(ledger.needs_newer_checkpoint());
}

TEST(Ledger, WhileAnAnswerWaitsTheFilesTimeDecidesWhatACheckpointProves) {
  const auto at = [](int ms) { return SteadyTime{} + std::chrono::milliseconds(ms); };
  plugin::Ledger ledger;
  holdings::Holding given = cores(kCore, {18}, 7, 0);
  given.since = at(1000);
  ledger.record(given);
  for (const int late : {1001, 1500, 1950}) {
    ledger.confirm({}, at(late));
    ASSERT_EQ(ledger.holdings().size(), 1U) << "as often as that may be";
    EXPECT_TRUE(ledger.holdings()[0].doubtful);
  }
  const SteadyTime decided_at = ledger.decided_at();
  EXPECT_GT(decided_at, at(1950));
  ledger.confirm({given}, decided_at);
  ASSERT_EQ(ledger.holdings().size(), 1U);
  EXPECT_FALSE(ledger.holdings()[0].doubtful) << "it is shown";
  ledger.confirm({}, decided_at);
  EXPECT_TRUE(ledger.holdings().empty());
}

// An agent starts on a checkpoint that is older than the pod which now has the device.
TEST(Ledger, AHoldingThatTheNewerCheckpointLacksDoesNotHideAnotherContainers) {
  const auto at = [](int ms) { return SteadyTime{} + std::chrono::milliseconds(ms); };
  plugin::Ledger ledger;
  holdings::Holding ended = cores(kDevice, {8, 9}, 0, 0, "pod u1/c");
  ended.since = at(999);
  ledger.reconcile({{}, at(1000), {ended}, 7, at(1000)});
  holdings::Holding next = cores(kCore, {8, 9}, 0, 0, "pod u2/init");
  next.since = at(999);
  ledger.reconcile({{}, at(1000), {next}, 8, at(1010)});
  EXPECT_EQ(ledger.blocked_cores(kDevice), (std::vector<int>{8, 9}));
  ledger.reconcile({{}, at(-3900), {next}, 8, at(1010)});
  EXPECT_EQ(ledger.blocked_cores(kDevice), (std::vector<int>{8, 9})) << "while List fails";
  EXPECT_TRUE(ledger.needs_newer_checkpoint());
  holdings::Holding both = cores(kDevice, {8, 9}, 0, 0, "pod u2/init");
  ledger.reconcile({{}, at(3000), {next, both}, 9, at(3000)});
  EXPECT_TRUE(ledger.blocked_cores(kDevice).empty());
}

// Found by model_check, seed 2825: another vendor's plugin took seconds between the two answers.
TEST(Ledger, AnAnswerWhileListIsOpenDoesNotEndWhatItsOwnContainerHadBefore) {
  plugin::Ledger ledger;
  ledger.record(cores(kCore, {0, 1}, 7, 1));
  ledger.record(cores(kDevice, {0, 1}, 8, 6));
  const auto seen = {cores(kCore, {0, 1}, 0, 5, "a/b/c"), cores(kDevice, {0, 1}, 0, 5, "a/b/c")};
  ledger.reconcile({seen, SteadyTime{} + seconds(5), {}, 9});
  EXPECT_EQ(ledger.held_units(kCore), (std::vector<int>{0, 1}));
  EXPECT_EQ(ledger.held_units(kDevice), (std::vector<int>{0, 1}));
}

TEST(Ledger, WhatWasGivenAfterTheQuestionEndsTheListedHolder) {
  plugin::Ledger ledger;
  ledger.record(cores(kCore, {0, 1}, 8, 5));
  const auto stale = [](SteadyTime asked) {
    return plugin::Ledger::Shown{
        {cores(kDevice, {0, 1}, 0, 3, "a/old/c"), cores(kCore, {0, 1}, 0, 3, "a/old/c")}, asked, {}, 0};
  };
  ledger.reconcile(stale(SteadyTime{} + seconds(3)));
  EXPECT_TRUE(ledger.conflict(kDevice, {0}, {0, 1}, 9)) << "the old pod's device is free, its cores are another's";
  ledger.reconcile(stale(SteadyTime{} + seconds(6)));
  EXPECT_FALSE(ledger.conflict(kDevice, {0}, {0, 1}, 9)) << "asked later: the truth";
}

TEST(Ledger, ACheckpointOlderThanAnAnswerSaysNothingAboutItsUnits) {
  plugin::Ledger ledger;
  ledger.record(cores(kCore, {0, 1}, 8, 5));
  const std::vector<holdings::Holding> old = {cores(kDevice, {0, 1}, 0, 0, "pod u1/c"),
                                              cores(kCore, {0, 1}, 0, 0, "pod u1/c"),
                                              cores(kDevice, {6, 7}, 0, 0, "pod u2/c")};
  ledger.reconcile({{}, SteadyTime{}, old, 8});
  EXPECT_TRUE(ledger.conflict(kDevice, {0}, {0, 1}, 9));
  EXPECT_TRUE(ledger.conflict(kCore, {6}, {6}, 9)) << "of others it speaks";
}

TEST(Ledger, WhenTheCheckpointAloneSpeaksWhatItLeavesOutIsOverUnlessItIsOlder) {
  plugin::Ledger ledger;
  ledger.record(cores(kDevice, {0, 1}, 7, 1));
  ledger.record(cores(kDevice, {2, 3}, 7, 2));
  ledger.record(cores(kDevice, {4, 5}, 8, 3));
  ledger.record(cores(kDevice, {6, 7}, 9, 12));
  const auto shown = [](holdings::CheckpointVersion version) {
    return plugin::Ledger::Shown{{}, SteadyTime{} + seconds(10), {cores(kDevice, {0, 1}, 0, 10, "pod u1/c")}, version};
  };
  ledger.reconcile(shown(8));
  EXPECT_TRUE(ledger.conflict(kCore, {0}, {0}, 0)) << "shown";
  EXPECT_FALSE(ledger.conflict(kCore, {2}, {2}, 0)) << "not shown: over";
  EXPECT_TRUE(ledger.conflict(kCore, {4}, {4}, 0)) << "given after this checkpoint was written: it cannot say";
  EXPECT_TRUE(ledger.conflict(kCore, {6}, {6}, 0)) << "too young";
  ledger.reconcile(shown(10));
  EXPECT_FALSE(ledger.conflict(kCore, {4}, {4}, 0)) << "a newer checkpoint";
}

TEST(Ledger, AfterReconcileOneContainerWithBothResourcesBlocksNothing) {
  plugin::Ledger ledger;
  ledger.reconcile({{cores(kDevice, {0, 1}, 0, 0, "a/b/c"), cores(kCore, {0, 1}, 0, 0, "a/b/c")}, {}, {}, 0});
  EXPECT_TRUE(ledger.blocked_cores(kCore).empty());
  EXPECT_TRUE(ledger.blocked_cores(kDevice).empty());
}

std::vector<holdings::Holding> many(int count) {
  std::vector<holdings::Holding> all;
  for (int i = 0; i < count; ++i) all.push_back(cores(kCore, {i}, 0, 0, "pod u" + std::to_string(i) + "/c"));
  return all;
}

// The processor time of what a checkpoint of `entries` costs under the lock, the least of three.
double cost_of(int entries) {
  double least = 0;
  for (int round = 0; round < 3; ++round) {
    plugin::Ledger ledger;
    const std::clock_t begin = std::clock();
    ledger.reconcile({{}, SteadyTime{}, many(entries), 1});
    ledger.reconcile({many(entries), SteadyTime{} + seconds(1), many(entries), 2});
    static_cast<void>(ledger.conflict(kDevice, {0, 1}, {0, 1}, 0));
    const auto ticks = static_cast<double>(std::clock() - begin);
    if (round == 0 || ticks < least) least = ticks;
  }
  return std::max(least, 1.0);
}

TEST(Ledger, TwentyTimesTheEntriesCostAboutTwentyTimesTheTime) {
  constexpr int kFew = 400;
  constexpr double kTimes = 20;
  const double few = cost_of(kFew);
  EXPECT_LT(cost_of(kFew * static_cast<int>(kTimes)) / few, kTimes * 6) << "400 times would be quadratic";
}

TEST(Ledger, OfAnAbsurdNumberOfEntriesOnlyWhatCoversEveryUnitIsKept) {
  plugin::Ledger ledger;
  std::vector<holdings::Holding> absurd;
  for (int i = 0; i < 20000; ++i) absurd.push_back(cores(kCore, {i % 128}, 0, 0, "pod u" + std::to_string(i) + "/c"));
  absurd.push_back(cores(kCore, {3, 200}, 0, 0, "pod last/c"));
  ledger.reconcile({{}, SteadyTime{}, absurd, 1});
  EXPECT_EQ(ledger.holdings().size(), plugin::Ledger::kMostShown + 1);
  EXPECT_EQ(ledger.blocked_cores(kDevice).size(), 129U);
}

}  // namespace
}  // namespace neuron::test
