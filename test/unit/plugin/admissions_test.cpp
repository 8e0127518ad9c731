#include "plugin/device/admission_gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace neuron::plugin {
namespace {

using model::Resource;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;

using Outcome = Admissions::Outcome;

// Times in milliseconds; the checkpoint's version is a number that the test raises with each write.
struct AdmissionsTest : testing::Test {
  Admissions admissions;
  SteadyTime now = SteadyTime{} + std::chrono::hours(1);
  holdings::CheckpointVersion version = 1;
  Admissions::Ticket ticket = 0;

  void pass(int ms) { now += milliseconds{ms}; }
  void written() {
    ++version;
    admissions.checkpoint_written();
  }
  bool begin(Resource resource = Resource::neuron) { return admissions.begin_answer(++ticket, resource, version, now); }
  void give(Resource resource = Resource::neuron) {
    ASSERT_TRUE(begin(resource));
    admissions.answered(Outcome::given, version, now);
  }
  auto due() { return admissions.due(admissions.progress(version), now); }
  void publish_lists(int count) {
    for (int i = 0; i < count; ++i) admissions.list_published(now);
  }
};

TEST_F(AdmissionsTest, AnAnswerBeginsAtOnceWhenNothingIsOnItsWay) {
  EXPECT_TRUE(begin());
  EXPECT_FALSE(admissions.answers_wait());
}

TEST_F(AdmissionsTest, AnAnswerWaitsForEveryListToBeWritten) {
  publish_lists(2);
  ASSERT_FALSE(begin());
  written();
  EXPECT_THAT(admissions.ready(now), IsEmpty());
  written();
  EXPECT_THAT(admissions.ready(now), ElementsAre(1));
  EXPECT_TRUE(admissions.open()) << "it has begun";
}

// The hole between the decision that a list may go and its way to gRPC.
TEST_F(AdmissionsTest, NoAnswerBeginsWhileListsAreBeingHandedOut) {
  admissions.want_lists(now);
  ASSERT_TRUE(due().lists);
  ASSERT_FALSE(begin()) << "nothing is on its way yet, but soon";
  admissions.list_published(now);
  admissions.lists_sent();
  EXPECT_THAT(admissions.ready(now), IsEmpty());
  written();
  EXPECT_THAT(admissions.ready(now), ElementsAre(1));
}

TEST_F(AdmissionsTest, WhenNoListHadChangedNobodyWaitsAfterwards) {
  admissions.want_lists(now);
  ASSERT_TRUE(due().lists);
  ASSERT_FALSE(begin());
  admissions.lists_sent();
  EXPECT_THAT(admissions.ready(now), ElementsAre(1));
}

// The other half of it: the answer is being made, and is not in the ledger yet.
TEST_F(AdmissionsTest, NoListGoesOutWhileAnAnswerIsBeingMade) {
  admissions.want_lists(now);
  ASSERT_TRUE(begin());
  pass(1000);
  EXPECT_FALSE(due().lists);
  admissions.answered(Outcome::refused, version, now);
  pass(250);
  EXPECT_TRUE(due().lists) << "a refused container writes no checkpoint";
}

TEST_F(AdmissionsTest, NoListGoesOutBetweenTwoAnswersOfAContainer) {
  give(Resource::neuron);
  pass(999);
  EXPECT_FALSE(due().lists);
  give(Resource::efa);
  pass(999);
  EXPECT_FALSE(due().lists);
  written();
  EXPECT_TRUE(due().lists) << "nobody has called for long";
}

TEST_F(AdmissionsTest, AListWaitsForAnIdleKubelet) {
  give();
  written();
  EXPECT_FALSE(due().lists);
  pass(200);
  admissions.called(now);
  pass(249);
  EXPECT_FALSE(due().lists);
  pass(1);
  EXPECT_TRUE(due().lists);
  EXPECT_FALSE(due().lists) << "once";
}

// A node that is never idle, from the first answer of a container until just before 3 s.
struct BusyNode : AdmissionsTest {
  BusyNode() {
    for (int i = 0; i < 15; ++i) {
      give(Resource::neuron);
      pass(199);
      EXPECT_FALSE(due().lists) << i;
      if (i < 14) written();
    }
  }
};

// Its write would look like the end of the container, whose second name could get other hardware.
TEST_F(BusyNode, AnOverdueListWaitsForTheSecondAnswerOfAContainer) {
  pass(100);
  EXPECT_FALSE(due().lists);
  EXPECT_TRUE(begin(Resource::neuroncore));
}

TEST_F(BusyNode, AnOverdueListGoesOutBeforeTheNextContainersFirstAnswer) {
  pass(100);
  written();
  ASSERT_FALSE(begin());
  EXPECT_EQ(admissions.next(), now);
  EXPECT_THAT(admissions.ready(now), IsEmpty()) << "the list first";
  const auto due = this->due();
  ASSERT_TRUE(due.lists);
  EXPECT_THAT(due.begun, IsEmpty());
  admissions.list_published(now);
  admissions.lists_sent();
  EXPECT_THAT(admissions.ready(now), IsEmpty());
  written();
  EXPECT_THAT(admissions.ready(now), ElementsAre(ticket));
}

TEST_F(BusyNode, AnAnswerWaitsForNothingWhenTheOverdueListHadNotChanged) {
  pass(100);
  written();
  ASSERT_FALSE(begin());
  ASSERT_TRUE(due().lists);
  admissions.lists_sent();
  EXPECT_THAT(admissions.ready(now), ElementsAre(ticket));
  admissions.answered(Outcome::given, version, now);
  written();
  EXPECT_TRUE(begin()) << "the list has gone";
}

TEST_F(BusyNode, AnAnswerDoesNotWaitForAnOverdueListForEver) {
  pass(100);
  written();
  ASSERT_FALSE(begin());
  pass(999);
  EXPECT_THAT(admissions.ready(now), IsEmpty());
  pass(1);
  EXPECT_THAT(admissions.ready(now), ElementsAre(ticket));
}

TEST_F(BusyNode, AnAnswerDoesNotWaitForTheListOfAKubeletWithoutCheckpoint) {
  publish_lists(1);
  pass(1000);
  EXPECT_TRUE(begin());
}

TEST_F(AdmissionsTest, AListThatWaitedLongestGoesInMidAdmission) {
  give();
  for (int i = 0; i < 29; ++i) {
    pass(200);
    admissions.called(now);
    EXPECT_FALSE(due().lists);
  }
  pass(200);
  EXPECT_TRUE(due().lists);
}

// A pod that the kubelet refused for another reason leaves no checkpoint, and List does not say that it is gone.
TEST_F(AdmissionsTest, AnAdmissionThatStopsHalfWayGetsACheckpointOfOurs) {
  give();
  pass(999);
  EXPECT_FALSE(due().lists);
  pass(1);
  const auto due = this->due();
  EXPECT_TRUE(due.lists);
  EXPECT_TRUE(due.same_list);
}

TEST_F(AdmissionsTest, OnANodeThatIsNeverIdleAnAdmissionIsNotTakenForStalled) {
  for (int i = 0; i < 20; ++i) {
    give();
    pass(200);
    EXPECT_TRUE(admissions.open()) << i;
    if (due().lists) admissions.lists_sent();  // kMaxIdleWait is over
    EXPECT_TRUE(admissions.open()) << i;
    written();
    if (due().lists) admissions.lists_sent();
  }
}

// The kubelet's next question lies in the socket.
TEST_F(AdmissionsTest, AnAdmissionIsNotOverBecauseTheProcessStoodStill) {
  give();
  pass(60000);
  admissions.woke(now);
  EXPECT_FALSE(due().lists);
  EXPECT_TRUE(admissions.open());
  pass(999);
  EXPECT_FALSE(due().lists);
  pass(1);
  EXPECT_TRUE(due().lists);
}

TEST_F(AdmissionsTest, AnAnswerThatWasGivenAfterTheLookKeepsItsAdmissionOpen) {
  give();
  const auto before = admissions.progress(version);
  written();
  give(Resource::efa);
  pass(900);
  EXPECT_FALSE(admissions.due(before, now).lists) << "the version is not that of the newest answer, but older";
  EXPECT_TRUE(admissions.open());
}

TEST_F(AdmissionsTest, AnAdmissionThatEndsNeedsNoCheckpointOfOurs) {
  give();
  written();
  pass(250);
  const auto due = this->due();
  EXPECT_TRUE(due.lists);
  EXPECT_FALSE(due.same_list);
}

TEST_F(AdmissionsTest, AContainersWriteIsNoDebtOfTheNextList) {
  written();
  publish_lists(1);
  EXPECT_FALSE(begin());
}

TEST_F(AdmissionsTest, AListThatIsNeverWrittenCostsItsWaitOnce) {
  publish_lists(1);
  ASSERT_FALSE(begin());
  EXPECT_EQ(admissions.next(), now + Admissions::kMaxWriteWait);
  pass(1000);
  EXPECT_THAT(due().begun, ElementsAre(1));
  admissions.answered(Outcome::given, version, now);
  publish_lists(1);
  ASSERT_TRUE(begin()) << "a kubelet that keeps no checkpoint";
  admissions.answered(Outcome::given, version, now);
  written();
  publish_lists(1);
  EXPECT_FALSE(begin()) << "it keeps one after all";
}

TEST_F(AdmissionsTest, ListsThatKeepComingHoldNobodyForLonger) {
  publish_lists(1);
  ASSERT_FALSE(begin());
  for (int i = 0; i < 3; ++i) {
    pass(250);
    publish_lists(1);
    EXPECT_THAT(due().begun, IsEmpty());
  }
  pass(250);
  EXPECT_THAT(due().begun, ElementsAre(1));
}

TEST_F(AdmissionsTest, WithoutWaitersALateListIsForgotten) {
  publish_lists(1);
  pass(1000);
  EXPECT_TRUE(begin());
}

TEST_F(AdmissionsTest, AnAnswerThatNeedsAFreshCheckpointWaitsForALaterListToBeWritten) {
  ASSERT_TRUE(begin());
  admissions.wait_for_checkpoint(9, Resource::neuron, now);
  EXPECT_TRUE(admissions.open());
  written();
  EXPECT_THAT(admissions.ready(now), IsEmpty()) << "written before the list was offered";
  publish_lists(1);
  EXPECT_THAT(admissions.ready(now), IsEmpty());
  written();
  EXPECT_THAT(admissions.ready(now), ElementsAre(9));
  admissions.answered(Outcome::given, version, now);
  ASSERT_TRUE(begin());
  admissions.wait_for_checkpoint(10, Resource::neuron, now);
  pass(1000);
  EXPECT_THAT(due().begun, ElementsAre(10)) << "nobody was there to send it to";
}

TEST_F(AdmissionsTest, TheListForACheckpointThatIsToBeLateEnoughWaitsForItsTime) {
  ASSERT_TRUE(begin());
  admissions.wait_for_checkpoint(9, Resource::neuron, now + milliseconds{700});
  EXPECT_FALSE(due().same_list);
  EXPECT_EQ(admissions.next(), now + milliseconds{700});
  pass(699);
  publish_lists(1);
  written();
  EXPECT_FALSE(due().same_list);
  EXPECT_THAT(admissions.ready(now), IsEmpty()) << "it is too early to say anything";
  pass(1);
  ASSERT_TRUE(due().same_list);
  publish_lists(1);
  admissions.lists_sent();
  written();
  EXPECT_THAT(admissions.ready(now), ElementsAre(9));
}

TEST_F(AdmissionsTest, AnotherKubeletOwesNothing) {
  give();
  publish_lists(1);
  ASSERT_FALSE(begin());
  admissions.kubelet_is_new();
  EXPECT_THAT(admissions.ready(now), ElementsAre(2));
  admissions.answered(Outcome::refused, version, now);
  EXPECT_FALSE(admissions.open());
}

TEST_F(AdmissionsTest, AServerThatGoesAwayTakesItsWaitersAlong) {
  publish_lists(1);
  ASSERT_FALSE(begin(Resource::neuron));
  ASSERT_FALSE(begin(Resource::efa));
  EXPECT_THAT(admissions.release(Resource::efa), ElementsAre(2));
  written();
  EXPECT_THAT(admissions.ready(now), ElementsAre(1));
}

TEST_F(AdmissionsTest, ANewStreamShowsItsFirstListAfterTheAdmission) {
  give();
  ASSERT_FALSE(admissions.begin_stream(7, Resource::efa, now));
  EXPECT_THAT(due().begun, IsEmpty());
  written();
  EXPECT_THAT(due().begun, ElementsAre(7));
  EXPECT_FALSE(begin()) << "the list is being handed out";
  admissions.lists_sent();
  EXPECT_TRUE(begin() || !admissions.ready(now).empty());
}

TEST_F(AdmissionsTest, ANewStreamDoesNotWaitForEver) {
  give();
  ASSERT_FALSE(admissions.begin_stream(7, Resource::efa, now));
  pass(3000);
  EXPECT_THAT(due().begun, ElementsAre(7));
}

TEST_F(AdmissionsTest, AnAnswerWaitsForANewStreamsFirstList) {
  ASSERT_TRUE(admissions.begin_stream(7, Resource::efa, now));
  EXPECT_FALSE(begin());
  admissions.list_published(now);
  admissions.lists_sent();
  EXPECT_THAT(admissions.ready(now), IsEmpty());
  written();
  EXPECT_THAT(admissions.ready(now), ElementsAre(1));
}

TEST_F(AdmissionsTest, HoldersAreAskedForAfterAnAnswerAndNotWhileOneWaits) {
  give();
  written();
  pass(499);
  EXPECT_FALSE(due().holders);
  pass(1);
  EXPECT_TRUE(due().holders);
  admissions.want_holders(now);
  publish_lists(1);
  ASSERT_FALSE(begin());
  pass(500);
  EXPECT_FALSE(due().holders);
}

TEST_F(AdmissionsTest, HoldersAreNotAskedForInMidAdmission) {
  admissions.want_holders(now);
  give();
  pass(999);
  EXPECT_FALSE(due().holders);
  written();
  EXPECT_TRUE(due().holders);
}

TEST_F(AdmissionsTest, WhatIsWantedByATimeReplacesOnlyWhatIsLater) {
  admissions.want_holders(now + milliseconds{100});
  admissions.want_holders_by(now + milliseconds{500});
  EXPECT_EQ(admissions.next(), now + milliseconds{100});
  admissions.want_holders_by(now + milliseconds{50});
  EXPECT_EQ(admissions.next(), now + milliseconds{50});
}

}  // namespace
}  // namespace neuron::plugin
