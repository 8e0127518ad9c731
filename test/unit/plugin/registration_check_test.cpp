#include "plugin/device/registration_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>

namespace neuron::plugin {
namespace {

using model::Resource;
using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr const char* kEfa = "vpc.amazonaws.com/efa";
constexpr milliseconds kPace{10'000};

UnitListPtr units(const std::set<std::string>& healthy, const std::set<std::string>& unhealthy = {}) {
  UnitList list;
  for (const auto& id : healthy) list.push_back({id, true, {}});
  for (const auto& id : unhealthy) list.push_back({id, false, {}});
  return std::make_shared<const UnitList>(std::move(list));
}

// One resource, registered an hour ago with two healthy units; the kubelet shows `shown`.
struct Check : testing::Test {
  std::set<std::string> dead;  // sockets on which nobody listens
  RegistrationCheck check{kPace, [this](const std::string& name) { return !dead.contains(name); }};
  SteadyTime start = SteadyTime{} + std::chrono::hours(1);
  SteadyTime now = start;
  std::set<std::string> shown = {"a", "b"};
  bool answers = true;
  RegistrationCheck::Registered registered{Resource::efa, SteadyTime{}, SteadyTime{}, units({"a", "b"})};
  int asked = 0;

  Check() { EXPECT_FALSE(check.due(now)) << "the first question comes after one pace"; }

  // Time goes on to `until`, questions are asked when due; returns what was lost, `registered` registered again each
  // time.
  std::vector<RegistrationCheck::Lost> run(SteadyTime until) {
    std::vector<RegistrationCheck::Lost> all;
    for (auto next = check.next(); next && *next <= until; next = check.next()) {
      now = std::max(now, *next);
      if (!check.due(now)) continue;
      EXPECT_FALSE(check.next()) << "an answer is awaited";
      ++asked;
      const Result<model::Allocatable> answer =
          answers ? Result<model::Allocatable>(model::Allocatable{{kEfa, shown}, {"other.com/x", {"1"}}})
                  : Result<model::Allocatable>(fail(ErrorCode::unavailable, "nobody"));
      for (auto& lost : check.answered(now, answer, {registered}, now)) {
        all.push_back(std::move(lost));
        registered.registered_at = registered.published_at = now;
      }
    }
    now = until;
    return all;
  }
  std::vector<RegistrationCheck::Lost> run(milliseconds time) { return run(now + time); }
};

TEST_F(Check, AgreementIsAskedForAtTheSlowPaceAndLosesNothing) {
  EXPECT_TRUE(run(kPace * 10).empty());
  EXPECT_EQ(asked, 10);
}

TEST_F(Check, OneDifferingAnswerIsNotEnough) {
  shown = {};
  EXPECT_TRUE(run(kPace).empty());
  shown = {"a", "b"};
  EXPECT_TRUE(run(kPace * 3).empty());
}

TEST_F(Check, TwoDifferingAnswersAreALoss) {
  shown = {"x"};
  const auto lost = run(kPace + RegistrationCheck::kSoon);
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_EQ(lost[0].resource, Resource::efa);
  EXPECT_EQ(lost[0].times, 1);
  EXPECT_EQ(lost[0].why, "the kubelet lists 1 healthy units instead of 2; no other plugin socket found");
}

TEST_F(Check, WhatThisAgentShowsUnhealthyIsNotMissed) {
  registered.units = units({"a"}, {"b"});
  shown = {"a"};
  EXPECT_TRUE(run(kPace * 5).empty());
}

TEST_F(Check, AListThatWasJustPublishedIsNotJudged) {
  shown = {};
  for (int i = 0; i < 20; ++i) {
    registered.published_at = now;
    EXPECT_TRUE(run(milliseconds(1000)).empty());
  }
}

TEST_F(Check, AnEndIsSeenSoonAndNamed) {
  check.other_appeared("efa.sock", now);
  run(kPace);
  shown = {};
  const SteadyTime ended = now;
  check.other_vanished("efa.sock", now);
  const auto lost = run(milliseconds(2500));
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_THAT(lost[0].why, HasSubstr("other plugin sockets: efa.sock (gone)"));
  EXPECT_LE(registered.registered_at - ended, milliseconds(2500));
}

TEST_F(Check, AnEndOfAnotherResourcesPluginCostsOneQuestion) {
  check.other_appeared("nvidia.sock", now);
  run(kPace);
  const int before = asked;
  check.other_vanished("nvidia.sock", now);
  EXPECT_TRUE(run(milliseconds(5000)).empty());
  EXPECT_EQ(asked, before + 1);
}

TEST_F(Check, AListOfOursThatFollowedTheEndProvesNothing) {
  check.other_appeared("efa.sock", now);
  run(kPace);
  check.other_vanished("efa.sock", now);
  registered.published_at = now + milliseconds(100);
  const auto lost = run(milliseconds(2500));
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_THAT(lost[0].why, HasSubstr("another plugin exited"));
  EXPECT_TRUE(run(kPace * 5).empty()) << "once is enough";
}

TEST_F(Check, AKilledOneIsFoundByItsDeadSocket) {
  check.other_appeared("efa.sock", now);
  run(kPace);
  dead.insert("efa.sock");
  registered.published_at = now + milliseconds(3000);
  EXPECT_EQ(run(kPace).size(), 1U);
}

TEST_F(Check, AListWithoutAHealthyUnitProvesNothingEither) {
  registered.units = units({}, {"a", "b"});
  shown = {};
  check.other_appeared("efa.sock", now);
  EXPECT_TRUE(run(kPace).empty());
  check.other_vanished("efa.sock", now);
  EXPECT_EQ(run(kPace).size(), 1U);
}

TEST_F(Check, WithoutAnAnswerTheEndOfAnotherCounts) {
  answers = false;
  shown = {};
  EXPECT_TRUE(run(kPace * 5).empty()) << "no answer judges nothing";
  check.other_appeared("efa.sock", now);
  check.other_vanished("efa.sock", now);
  EXPECT_EQ(run(kPace).size(), 1U);
  const int before = asked;
  EXPECT_TRUE(run(kPace * 5).empty());
  EXPECT_LE(asked, before + 5);
}

TEST_F(Check, ARegistrationAfterTheEndIsGood) {
  check.other_appeared("efa.sock", now);
  check.other_vanished("efa.sock", now);
  registered.registered_at = registered.published_at = now + milliseconds(50);
  EXPECT_TRUE(run(kPace * 3).empty());
}

// Two live plugins of one resource: each registration of ours is answered by one of theirs.
TEST_F(Check, TwoThatLiveFightEverMoreSlowly) {
  shown = {"x"};
  const auto first_hour = run(std::chrono::hours(1));
  EXPECT_LE(first_hour.size(), 20U);
  EXPECT_GE(first_hour.size(), 12U);
  EXPECT_EQ(first_hour[0].times, 1);
  EXPECT_EQ(first_hour[1].times, 2);
  shown = {"a", "b"};
  EXPECT_TRUE(run(RegistrationCheck::kCalm).empty());
  shown = {};
  const auto later = run(kPace * 2);
  ASSERT_FALSE(later.empty());
  EXPECT_EQ(later[0].times, 1) << "a fault of its own";
}

TEST_F(Check, HostileNamesAreCutAndCounted) {
  for (int i = 0; i < 1000; ++i) check.other_appeared("\x1b[31m" + std::to_string(i) + ".sock", now);
  shown = {};
  const auto lost = run(kPace + RegistrationCheck::kSoon);
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_EQ(lost[0].why.find('\x1b'), std::string::npos);
  EXPECT_THAT(lost[0].why, HasSubstr("and 60 more"));
}

// What the kubelet's checkpoint shows as given, beside what this process gave.
struct Written : Check {
  Checkpoint checkpoint;
  std::map<std::string, SteadyTime> given;

  Written() {
    registered.registered_at = start;
    hold("old", {"a"});
    EXPECT_THAT(write(), testing::IsEmpty()) << "held from before";
    now += RegistrationCheck::kPredecessor + milliseconds(1);
    EXPECT_THAT(write(), testing::IsEmpty());
  }
  void hold(const std::string& pod, std::vector<std::string> ids, const std::string& resource = kEfa) {
    checkpoint.allocations.push_back({"", "", "main", resource, std::move(ids), "uid-" + pod});
  }
  std::vector<RegistrationCheck::Lost> write() {
    ++checkpoint.version;
    return check.written(
        checkpoint, {registered},
        [this](Resource, const std::string& id) {
          return given.contains(id) ? std::optional(given.at(id)) : std::nullopt;
        },
        now);
  }
};

TEST_F(Written, WhatThisProcessGaveIsItsOwn) {
  given["b"] = now;
  now += milliseconds(10);
  hold("new", {"b"});
  EXPECT_THAT(write(), testing::IsEmpty());
  now += std::chrono::hours(1);
  EXPECT_THAT(write(), testing::IsEmpty()) << "it is known";
}

TEST_F(Written, AnAnswerCountsHoweverLateItsCheckpointIsRead) {
  given["b"] = now;
  now += std::chrono::hours(1);  // stopped
  hold("new", {"b"});
  EXPECT_THAT(write(), testing::IsEmpty());
}

TEST_F(Written, UnitsThatAnotherPluginGaveAreATakeover) {
  given["b"] = now;
  now += RegistrationCheck::kAnswerLasts + milliseconds(1);
  EXPECT_THAT(write(), testing::IsEmpty());
  check.other_appeared("rival.sock", now);
  hold("new", {"b"});
  const auto lost = write();
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_EQ(lost[0].resource, Resource::efa);
  EXPECT_EQ(lost[0].times, 1);
  EXPECT_THAT(lost[0].why,
              HasSubstr("container main of the pod with uid uid-new was allocated 1 units by another plugin"));
  EXPECT_THAT(lost[0].why, HasSubstr("rival.sock"));
  hold("newer", {"a"});
  EXPECT_THAT(write(), testing::IsEmpty()) << "too soon after the last time";
  now += RegistrationCheck::kFirstPause;
  hold("newest", {"c"});
  ASSERT_EQ(write().size(), 1U);
}

TEST_F(Check, APredecessorsLastAnswersAreNoTakeover) {
  const auto never = [](Resource, const std::string&) { return std::optional<SteadyTime>(); };
  registered.registered_at = now;
  Checkpoint checkpoint;
  checkpoint.version = 1;
  EXPECT_TRUE(check.written(checkpoint, {registered}, never, now).empty());
  checkpoint.allocations.push_back({"", "", "main", kEfa, {"a"}, "uid-new"});
  checkpoint.version = 2;
  now += RegistrationCheck::kPredecessor;
  EXPECT_TRUE(check.written(checkpoint, {registered}, never, now).empty());
}

TEST_F(Written, OtherResourcesAreOthers) {
  hold("new", {"1"}, "other.com/x");
  hold("new", {"1"}, "aws.amazon.com/neuron");  // not registered by this process
  EXPECT_THAT(write(), testing::IsEmpty());
}

TEST_F(Written, ACheckpointThatWasLostMeansNothing) {
  checkpoint.allocations.clear();
  EXPECT_THAT(write(), testing::IsEmpty());
  given["a"] = now;
  hold("old", {"a"});  // admitted anew
  EXPECT_THAT(write(), testing::IsEmpty());
}

}  // namespace
}  // namespace neuron::plugin
