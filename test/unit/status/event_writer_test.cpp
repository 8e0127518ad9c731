#include "agent/status/node_events.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "test/fakes/fake_api.h"

namespace neuron::status {
namespace {

using std::chrono::seconds;
using Json = nlohmann::json;

constexpr const char* kEvents = "/api/v1/namespaces/default/events";
const WallTime kStart{std::chrono::hours(500'000)};
const SteadyTime kNow = SteadyTime{} + std::chrono::hours(1);

NodeEvent fault(const std::string& unit = "neuron3", const std::string& code = "sram_ecc_uncorrected") {
  const std::string words = "1 uncorrected SRAM errors";
  return {true,   "device unhealthy " + code,           "SramEccUncorrected",
          {unit}, {{unit, unit + ": " + words, words}}, "replace the instance"};
}

TEST(PendingEvents, OneUnitThatComesAndGoesCountsUp) {
  PendingEvents events;
  events.add(fault(), kStart, Since::before);
  EXPECT_EQ(events.take(kNow)->times, 1);
  for (int i = 1; i <= 100; ++i) events.add(fault(), kStart + seconds(i), Since::before);
  EXPECT_FALSE(events.take(kNow + seconds(59)));
  EXPECT_EQ(events.due(), kNow + PendingEvents::kSamePause);
  const auto later = events.take(kNow + seconds(60));
  ASSERT_TRUE(later);
  EXPECT_EQ(later->times, 100);
  EXPECT_EQ(later->first, kStart + seconds(1));
  EXPECT_EQ(later->last, kStart + seconds(100));
  EXPECT_FALSE(events.due());
}

TEST(PendingEvents, NewsOfAnotherUnitDoesNotWaitForTheFirst) {
  PendingEvents events;
  events.add(fault("neuron3"), kStart, Since::before);
  ASSERT_TRUE(events.take(kNow));
  events.add(fault("neuron5"), kStart + seconds(1), Since::before);
  const auto next = events.take(kNow + seconds(1));
  ASSERT_TRUE(next);
  EXPECT_THAT(next->event.units, testing::ElementsAre("neuron5"));
}

TEST(PendingEvents, WhatWaitsTogetherIsOneEvent) {
  PendingEvents events;
  NodeEvent healthy{false, "device healthy after x", "Healthy", {"neuron3"}, {{"neuron3", "neuron3: y", "y"}}, ""};
  events.add(healthy, kStart, Since::before);
  healthy.units = {"neuron5"};
  healthy.parts = {{"neuron5", "neuron5: y", "y"}};
  events.add(healthy, kStart, Since::before);
  const auto both = events.take(kNow);
  ASSERT_TRUE(both);
  EXPECT_EQ(message_of(both->event), "neuron5 and neuron3: y");
  EXPECT_FALSE(events.due());
}

TEST(PendingEvents, ManySubjectsAreHeldToABurstAndWarningsGoFirst) {
  PendingEvents events;
  for (int i = 0; i < 40; ++i) {
    NodeEvent event = fault("neuron3", "reason" + std::to_string(i));
    event.is_warning = i % 2 == 1;
    events.add(event, kStart, Since::before);
  }
  int told = 0, warnings = 0;
  while (const auto event = events.take(kNow)) {
    if (event->event.is_warning) {
      ++warnings;
      EXPECT_EQ(warnings, told + 1) << "one that is none went before it";
    }
    ++told;
  }
  EXPECT_EQ(told, PendingEvents::kBurst);
  EXPECT_EQ(warnings, 20);
  EXPECT_EQ(events.due(), kNow + PendingEvents::kPause);
  EXPECT_TRUE(events.take(kNow + PendingEvents::kPause));
  EXPECT_FALSE(events.take(kNow + PendingEvents::kPause));
}

TEST(PendingEvents, WhatCouldNotBeToldWaitsWithWhatCameSince) {
  PendingEvents events;
  events.add(fault(), kStart, Since::before);
  PendingEvent event = *events.take(kNow);
  events.add(fault(), kStart + seconds(5), Since::before);
  events.put_back(event);
  const auto again = events.take(kNow);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->times, 2);
  EXPECT_EQ(again->first, kStart);
  EXPECT_EQ(again->last, kStart + seconds(5));
}

class EventWriterTest : public ::testing::Test {
 protected:
  Json stored() {
    const auto all = api_.all(kEvents);
    EXPECT_EQ(all.size(), 1U);
    return all.empty() ? Json::object() : all[0];
  }
  PendingEvent once(bool at_start = false) { return {fault(), kStart, kStart, 1, at_start}; }

  fakes::FakeApi api_;
  EventWriter writer_{api_, "n1"};
};

TEST_F(EventWriterTest, AnEventIsWhatKubectlShowsOfANode) {
  ASSERT_TRUE(writer_.write(once(), "u"));
  const Json event = stored();
  EXPECT_EQ(event["involvedObject"], (Json{{"apiVersion", "v1"}, {"kind", "Node"}, {"name", "n1"}, {"uid", "u"}}));
  EXPECT_EQ(event["metadata"]["namespace"], "default");
  EXPECT_EQ(event["type"], "Warning");
  EXPECT_EQ(event["reason"], "SramEccUncorrected");
  EXPECT_EQ(event["message"], "neuron3: 1 uncorrected SRAM errors; what to do: replace the instance");
  EXPECT_EQ(event["count"], 1);
  EXPECT_EQ(event["source"]["component"], "neuron-agent");
  EXPECT_EQ(event["firstTimestamp"], "2027-01-15T08:00:00Z");
}

TEST_F(EventWriterTest, ItCountsUpAndBeginsAnewWhenForgotten) {
  ASSERT_TRUE(writer_.write(once(), "u"));
  PendingEvent more = once();
  more.times = 4;
  more.last = kStart + seconds(60);
  ASSERT_TRUE(writer_.write(more, "u"));
  EXPECT_EQ(stored()["count"], 5);
  EXPECT_EQ(stored()["lastTimestamp"], "2027-01-15T08:01:00Z");
  EXPECT_EQ(stored()["firstTimestamp"], "2027-01-15T08:00:00Z");
  api_.drop(std::string(kEvents) + "/" + event_name({"n1", "u"}, fault()));
  ASSERT_TRUE(writer_.write(once(), "u"));
  EXPECT_EQ(stored()["count"], 1);
}

TEST_F(EventWriterTest, ARestartedAgentSaysNothingTwiceAndCountsOn) {
  ASSERT_TRUE(writer_.write(once(), "u"));
  EventWriter next(api_, "n1");
  ASSERT_TRUE(next.write(once(true), "u"));
  EXPECT_EQ(stored()["count"], 1);
  ASSERT_TRUE(next.write(once(), "u"));
  EXPECT_EQ(stored()["count"], 2);
  ASSERT_TRUE(next.write(once(), "u"));
  EXPECT_EQ(stored()["count"], 3);
}

TEST_F(EventWriterTest, GarbageAndRefusalsAreErrors) {
  api_.fail_next(1, 403);
  EXPECT_EQ(writer_.write(once(), "u").error().code, ErrorCode::permission_denied);
  ASSERT_TRUE(writer_.write(once(), "u"));
  EventWriter next(api_, "n1");
  api_.put(std::string(kEvents) + "/" + event_name({"n1", "u"}, fault()), {{"count", "many"}});
  ASSERT_TRUE(next.write(once(), "u"));
  EXPECT_EQ(stored()["count"], 2);
}

TEST(EventName, IsOneOfAnObject) {
  const std::string name = event_name({std::string(199, 'a') + "-.b", "u"}, fault());
  EXPECT_LE(name.size(), 253U);
  EXPECT_EQ(name.substr(198, 2), "a.");
  EXPECT_NE(event_name({"n1", "u"}, fault()), event_name({"n1", "v"}, fault()));
  EXPECT_NE(event_name({"n1", "u"}, fault("neuron1", "x")), event_name({"n1", "u"}, fault("neuron1", "y")));
  EXPECT_EQ(event_name({"n1", "u"}, fault("neuron1")), event_name({"n1", "u"}, fault("neuron2")))
      << "of one subject one event, which names all its units";
}

}  // namespace
}  // namespace neuron::status
