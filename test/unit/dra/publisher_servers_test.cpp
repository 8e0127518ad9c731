// Publishing to servers that drop fields, refuse, fail, or are too old.
#include "test/unit/dra/publisher_fixture.h"

namespace neuron::plugin::dra {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;
using Json = nlohmann::json;
using PublisherServersTest = PublisherFixture;

TEST_F(PublisherServersTest, Pain3AClosedGateMeansNoCoresAndNoGroups) {
  set_server("36", "v1.36.3", false);
  const Pool pool = TestNode("trn1.32xlarge").pool();
  // Whoever looks must never see devices that overlap without counters.
  api_.set_validation([](const Json& object) {
    const auto& spec = object["spec"];
    return spec.contains("devices") && spec["devices"].size() > 24 ? "overlapping devices" : "";
  });
  publish(pool);
  expect_published(pool, {SliceShape::plain, true});
  EXPECT_EQ(stored().size(), 1U);
}

TEST_F(PublisherServersTest, AGateThatIsOpenedLaterIsNoticedWithinTheHour) {
  set_server("35", "v1.35.6", false);
  const Pool pool = TestNode("inf2.24xlarge").pool();
  publish(pool);
  set_server("35", "v1.35.6", true);
  for (int i = 0; i < 13; ++i) {
    publisher_.on_synced();
    settle_after(5min);
  }
  expect_published(pool);
}

TEST_F(PublisherServersTest, AServerThatIsUpdatedGetsItsShapeWithinMinutes) {
  set_server("35", "v1.35.2", true);
  const Pool pool = TestNode("trn1.32xlarge").pool();
  publish(pool);
  expect_published(pool, {SliceShape::plain, true});
  set_server("36", "v1.36.2", true);
  clock_.advance(5min);
  publisher_.on_synced();
  settle();
  settle();
  expect_published(pool);
}

TEST_F(PublisherServersTest, Pain11OneThirtyFourGetsCountersAndDevicesInOneSlice) {
  set_server("34", "v1.34.3", true);
  const Pool pool = TestNode("trn1.32xlarge").pool();
  publish(pool);
  expect_published(pool, {SliceShape::combined, true});
}

TEST_F(PublisherServersTest, Pain11AServerThatRefusesCountersGetsNone) {
  api_.set_validation([](const Json& object) {
    return object["spec"].contains("sharedCounters") ? "only one of `sharedCounters` or `devices` is allowed" : "";
  });
  const Pool pool = TestNode("trn1.32xlarge").pool();
  publish(pool);
  expect_published(pool, {SliceShape::plain, true});
}

TEST_F(PublisherServersTest, WithoutTaintsAnIllDeviceIsLeftOut) {
  api_.set_gates({true, false});
  TestNode node("inf2.48xlarge");
  node.make_ill(3);
  publish(node.pool());
  settle();
  expect_published(node.pool(), {SliceShape::split, false});
}

TEST_F(PublisherServersTest, AGateThatIsClosedWhileSlicesAreThereIsSeenInTheAnswers) {
  TestNode node("inf2.48xlarge");
  publish(node.pool());
  api_.set_gates({false, false});
  for (const Slice& slice : stored()) api_.drop(std::string(kSlicesPath) + "/" + slice.name);
  tell_news();
  settle_after(1s);
  expect_published(node.pool(), {SliceShape::plain, false});
}

TEST_F(PublisherServersTest, Pain10OldServersAndKubeletsAreRefusedInWords) {
  set_server("33", "v1.33.4", true);
  publish(TestNode("trn1.32xlarge").pool());
  EXPECT_FALSE(publisher_.state().published);
  EXPECT_THAT(publisher_.state().error, HasSubstr("1.33.4"));
  EXPECT_EQ(writes(), 0U);
  set_server("36", "v1.36.3", true);
  put_node("v1.34.1");
  settle_after(2min);
  EXPECT_THAT(publisher_.state().error, HasSubstr("30 minutes"));
  put_node("v1.34.2");
  settle_after(2min);
  EXPECT_TRUE(publisher_.state().published);
}

TEST_F(PublisherServersTest, Pain12WhatIsInvalidIsNotSentAgainBeforeItHasChanged) {
  TestNode node("inf2.24xlarge");
  api_.set_validation([](const Json& object) {
    return object["spec"].contains("devices") ? "spec.devices[0].name: Invalid value" : "";
  });
  publish(node.pool());
  EXPECT_FALSE(publisher_.state().published);
  EXPECT_THAT(publisher_.state().error, HasSubstr("Invalid value"));
  const std::size_t before = writes();
  for (int minute = 0; minute < 50; ++minute) {
    publisher_.look_again();
    publisher_.on_synced();
    settle_after(1min);
  }
  EXPECT_EQ(writes(), before);
  api_.set_validation({});
  node.make_ill(3);
  publish(node.pool());
  expect_published(node.pool());
}

TEST_F(PublisherServersTest, Pain22AFailedUpdateIsTriedUntilItIsDone) {
  TestNode node("inf2.24xlarge");
  publish(node.pool());
  api_.fail_next({.times = fakes::FakeApi::kAlways, .status = 503});
  node.make_ill(3);
  publish(node.pool());
  api_.forget_calls();
  for (int minute = 0; minute < 60; ++minute) settle_after(1min);
  EXPECT_FALSE(publisher_.state().published);
  EXPECT_LE(api_.calls().size(), 200U) << "with longer and longer pauses";
  EXPECT_GE(api_.calls().size(), 30U) << "but for ever";
  api_.heal();
  settle_after(1min);
  expect_published(node.pool());
}

TEST_F(PublisherServersTest, ForbiddenIsSaidInTheServersWords) {
  api_.fail_next({.times = fakes::FakeApi::kAlways, .status = 403, .words = "cannot list resourceslices"});
  publish(TestNode("trn1.32xlarge").pool());
  EXPECT_THAT(publisher_.state().error, HasSubstr("cannot list resourceslices"));
}

}  // namespace
}  // namespace neuron::plugin::dra
