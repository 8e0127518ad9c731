#include "agent/holdings/listed_holders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace neuron::holdings {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

model::Allocation claim(const std::string& pod, std::vector<std::string> devices) {
  return {"team", pod, "main", "neuron.aws.com", std::move(devices), "", "chips"};
}

const model::Allocation kAgent{"neuron-agent", "neuron-agent-x7k2p", "", "", {}};
const model::Allocation kStatic{"kube-system", "proxy-node-1", "", "", {}};

struct ListedHoldersTest : testing::Test {
  SteadyTime now = SteadyTime{} + seconds(1000);
  ListedHolders holders{"neuron-agent-x7k2p"};

  // What is held after an answer that comes so much later.
  std::vector<std::string> after(milliseconds later, const std::vector<model::Allocation>& answer) {
    now += later;
    holders.set_listed(
        answer, [](const model::Allocation& one) { return !one.ids.empty(); }, now);
    std::vector<std::string> all;
    for (const auto& one : holders.held()) all.insert(all.end(), one.ids.begin(), one.ids.end());
    return all;
  }
};

TEST_F(ListedHoldersTest, TwoAnswersApartThatShowTheOwnPodEndWhatBothLeaveOut) {
  EXPECT_FALSE(holders.is_whole());
  EXPECT_THAT(after(seconds(0), {kAgent, claim("a", {"d1"}), claim("b", {"d2"})}), ElementsAre("d1", "d2"));
  EXPECT_TRUE(holders.is_whole());
  EXPECT_FALSE(holders.in_doubt());
  EXPECT_THAT(after(seconds(60), {kAgent, claim("b", {"d2"})}), ElementsAre("d2", "d1"));
  EXPECT_TRUE(holders.in_doubt());
  EXPECT_THAT(after(ListedHolders::kApart - milliseconds(1), {kAgent, claim("b", {"d2"})}), ElementsAre("d2", "d1"));
  EXPECT_THAT(after(milliseconds(1), {kAgent, claim("b", {"d2"})}), ElementsAre("d2"));
  EXPECT_FALSE(holders.in_doubt());
}

// The API server is away: for minutes nothing but static pods.
TEST_F(ListedHoldersTest, AnswersWithoutTheOwnPodEndNothingHoweverLongTheyGoOn) {
  static_cast<void>(after(seconds(0), {kAgent, claim("a", {"d1"})}));
  for (int i = 0; i < 10; ++i) {
    EXPECT_THAT(after(seconds(60), {}), ElementsAre("d1"));
    EXPECT_THAT(after(seconds(60), {kStatic}), ElementsAre("d1"));
    EXPECT_FALSE(holders.is_whole());
  }
  EXPECT_THAT(after(seconds(1), {kStatic, kAgent}), ElementsAre("d1")) << "the first of two";
  EXPECT_THAT(after(seconds(1), {kStatic, kAgent, claim("a", {"d1"})}), ElementsAre("d1"));
  EXPECT_THAT(after(seconds(60), {kStatic, kAgent}), ElementsAre("d1")) << "it was shown since";
  EXPECT_THAT(after(seconds(1), {kStatic, kAgent}), IsEmpty());
}

TEST_F(ListedHoldersTest, WhereTheOwnPodIsNotKnownTheAnswersAreFurtherApart) {
  holders = ListedHolders();
  EXPECT_THAT(after(seconds(0), {claim("a", {"d1"})}), ElementsAre("d1"));
  EXPECT_TRUE(holders.is_whole());
  EXPECT_THAT(after(seconds(60), {}), ElementsAre("d1"));
  EXPECT_THAT(after(ListedHolders::kApart, {}), ElementsAre("d1"));
  EXPECT_THAT(after(ListedHolders::kApartBlind - ListedHolders::kApart, {}), IsEmpty());
}

TEST_F(ListedHoldersTest, AnOwnPodThatIsNeverShownGoesByAnotherName) {
  static_cast<void>(after(seconds(0), {}));
  static_cast<void>(after(seconds(600), {kStatic, claim("a", {"d1"})}));
  EXPECT_FALSE(holders.is_whole());
  EXPECT_THAT(after(ListedHolders::kOwnPodDue, {kStatic}), ElementsAre("d1"));
  EXPECT_TRUE(holders.is_whole());
  EXPECT_THAT(after(ListedHolders::kApartBlind, {kStatic}), IsEmpty());
}

TEST_F(ListedHoldersTest, WhatAnotherSourceHasCountsUntilTheListHasItsSay) {
  holders.add({{"", "", "main", "aws.amazon.com/neuron", {"3", "4"}, "uid-1"}});
  EXPECT_THAT(after(seconds(0), {}), ElementsAre("3", "4"));
  EXPECT_THAT(after(seconds(9), {kAgent, {"team", "a", "main", "aws.amazon.com/neuron", {"4"}}}),
              ElementsAre("4", "3"));
  EXPECT_THAT(after(seconds(1), {kAgent, {"team", "a", "main", "aws.amazon.com/neuron", {"4"}}}), ElementsAre("4"));
}

TEST_F(ListedHoldersTest, AdminAccessHoldsNothingAndEndsNoHolder) {
  model::Allocation monitor = claim("monitor", {"d1", "d2"});
  monitor.admin_access = true;
  EXPECT_THAT(after(seconds(0), {kAgent, monitor}), IsEmpty());
  EXPECT_FALSE(holders.in_doubt());
  EXPECT_THAT(after(seconds(1), {kAgent, claim("a", {"d1"}), monitor}), ElementsAre("d1"));
  EXPECT_THAT(after(seconds(1), {kAgent, monitor}), ElementsAre("d1")) << "a kubelet that takes its pods up again";
  EXPECT_EQ(holders.held().at(0).pod, "a");
  EXPECT_THAT(after(seconds(1), {kAgent, monitor}), IsEmpty());
}

TEST_F(ListedHoldersTest, ADeviceThatPassesToAnotherHolderIsHeldOnce) {
  static_cast<void>(after(seconds(0), {kAgent, claim("a", {"d1", "d2"})}));
  EXPECT_THAT(after(seconds(1), {kAgent, claim("b", {"d1"})}), ElementsAre("d1", "d2"));
  EXPECT_EQ(holders.held().at(0).pod, "b");
  EXPECT_EQ(holders.held().at(1).pod, "a");
  EXPECT_THAT(after(seconds(1), {kAgent, claim("b", {"d1"})}), ElementsAre("d1"));
}

}  // namespace
}  // namespace neuron::holdings
