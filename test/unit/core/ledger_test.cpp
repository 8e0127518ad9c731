#include "agent/core/ledger.h"

#include <gtest/gtest.h>

namespace neuron::core {
namespace {

using std::chrono::seconds;

Holding cores(SiliconResource resource, std::vector<int> ids, AdmissionMark mark, int second = 0,
              std::string holder = "") {
  Holding holding{resource, std::move(ids), {}, std::move(holder), mark, SteadyTime{} + seconds(second)};
  for (const int core : holding.cores) {
    if (holding.devices.empty() || holding.devices.back() != core / 2) holding.devices.push_back(core / 2);
  }
  return holding;
}

constexpr auto kCore = SiliconResource::neuroncore;
constexpr auto kDevice = SiliconResource::neuron;
constexpr auto kAlias = SiliconResource::neurondevice;

TEST(Ledger, ACoreHeldThroughOneResourceConflictsInEveryOther) {
  Ledger ledger;
  ledger.record(cores(kDevice, {2, 3}, 7));
  ASSERT_TRUE(ledger.conflict(kCore, {1, 2}, 8));
  EXPECT_EQ(ledger.conflict(kCore, {1, 2}, 8)->core, 2);
  EXPECT_TRUE(ledger.conflict(kAlias, {2, 3}, 8));
  EXPECT_FALSE(ledger.conflict(kCore, {0, 1}, 8));
  EXPECT_FALSE(ledger.conflict(kDevice, {2, 3}, 8)) << "the kubelet alone counts within one resource";
}

TEST(Ledger, OneAdmissionMayAskForBoth) {
  Ledger ledger;
  ledger.record(cores(kDevice, {0, 1}, 7));
  ASSERT_NE(ledger.same_admission(kCore, 7), nullptr);
  EXPECT_FALSE(ledger.conflict(kCore, {0, 1}, 7));
  EXPECT_EQ(ledger.same_admission(kCore, 8), nullptr) << "another container";
  EXPECT_EQ(ledger.same_admission(kDevice, 7), nullptr) << "a container asks for a resource once";
}

TEST(Ledger, AnUnknownMarkNeverMakesTwoContainersOne) {
  Ledger ledger;
  ledger.record(cores(kDevice, {0, 1}, 0));
  EXPECT_EQ(ledger.same_admission(kCore, 0), nullptr);
  EXPECT_TRUE(ledger.conflict(kCore, {0, 1}, 0));
}

TEST(Ledger, BlockedCoresLeaveOutWhatTheSameContainerHoldsThroughBoth) {
  Ledger ledger;
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
  Ledger ledger;
  ledger.record(cores(kCore, {0, 1}, 7));
  ledger.record(cores(kCore, {1, 2}, 8));
  ASSERT_EQ(ledger.holdings().size(), 1U);
  EXPECT_EQ(ledger.holdings()[0].cores, (std::vector<int>{1, 2}));
}

TEST(Ledger, AContainerWhoseUnitIsGivenAgainIsOverInEveryResource) {
  Ledger ledger;
  ledger.record(cores(kDevice, {0, 1, 2, 3}, 7));
  ledger.record(cores(kCore, {0, 1, 2, 3}, 7));
  ASSERT_EQ(ledger.holdings().size(), 2U) << "one container, two resources";
  EXPECT_FALSE(ledger.conflict(kCore, {0}, 8)) << "the kubelet gives core 0 anew, so its old container has ended";
  EXPECT_TRUE(ledger.conflict(kAlias, {0, 1}, 8));
  ledger.record(cores(kCore, {0}, 8));
  ASSERT_EQ(ledger.holdings().size(), 1U);
  EXPECT_FALSE(ledger.conflict(kDevice, {2, 3}, 9));
}

TEST(Ledger, ReconcileNamesKeepsAndDrops) {
  Ledger ledger;
  ledger.record(cores(kDevice, {0, 1}, 7, 1));
  ledger.record(cores(kDevice, {2, 3}, 8, 1));
  ledger.record(cores(kDevice, {4, 5}, 9, 5));
  ledger.reconcile({cores(kDevice, {0, 1}, 0, 3, "default/train/worker"), cores(kCore, {8}, 0, 3, "a/b/c")},
                   SteadyTime{} + seconds(3));
  EXPECT_FALSE(ledger.conflict(kCore, {2, 3}, 0)) << "recorded before the question, not shown: over";
  EXPECT_TRUE(ledger.conflict(kCore, {4}, 0)) << "recorded after the question: cannot be in the answer yet";
  EXPECT_TRUE(ledger.conflict(kDevice, {8}, 0)) << "held since before our time";
  const auto conflict = ledger.conflict(kCore, {0}, 0);
  ASSERT_TRUE(conflict);
  EXPECT_EQ(conflict->describe(), "core 0 is held by default/train/worker through aws.amazon.com/neuron");
  EXPECT_NE(ledger.same_admission(kCore, 7), nullptr) << "its admission may still go on";
}

TEST(Ledger, AfterReconcileOneContainerWithBothResourcesBlocksNothing) {
  Ledger ledger;
  ledger.reconcile({cores(kDevice, {0, 1}, 0, 0, "a/b/c"), cores(kCore, {0, 1}, 0, 0, "a/b/c")}, SteadyTime{});
  EXPECT_TRUE(ledger.blocked_cores(kCore).empty());
  EXPECT_TRUE(ledger.blocked_cores(kDevice).empty());
}

}  // namespace
}  // namespace neuron::core
