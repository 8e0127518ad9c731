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

bool has_shared_counters(const std::vector<Slice>& slices) {
  return std::any_of(slices.begin(), slices.end(),
                     [](const Slice& slice) { return slice.json["spec"].contains("sharedCounters"); });
}

// Names are the cluster's: an object of another driver or node may have ours, and this driver may not delete it.
TEST_F(PublisherServersTest, ForeignSlicesWithOurNamesDoNotKeepOursUnpublished) {
  const Pool pool = TestNode("trn1.32xlarge").pool();
  put_foreign("00000-neuron.aws.com-n1");
  put_foreign("00001-neuron.aws.com-n1");
  publish(pool);
  settle_after(2s);
  expect_published(pool);
  EXPECT_EQ(api_.all(kSlicesPath).size(), 4U) << "the others' stay";
  for (const Slice& slice : stored()) EXPECT_TRUE(slice.name.ends_with("-neuron.aws.com-n1")) << slice.name;

  // Names that are found stored stay: a restart makes no gap.
  api_.forget_calls();
  SlicePublisher next(admission_, {"neuron.aws.com", "n1", "n1"}, clock_);
  next.set_pool(pool);
  while (next.turn() == 0ms) {
  }
  EXPECT_EQ(writes(), 0U);
  EXPECT_TRUE(next.state().published);
}

TEST_F(PublisherServersTest, AForeignSliceThatComesWhileOursAreGoneIsSurvived) {
  TestNode node("trn1.32xlarge");
  publish(node.pool());
  api_.drop(std::string(kSlicesPath) + "/00001-neuron.aws.com-n1");  // as the kubelet does when it starts
  put_foreign("00001-neuron.aws.com-n1");
  tell_news();
  settle_after(1s);
  settle_after(2s);
  expect_published(node.pool());
  node.make_ill(3);
  publish(node.pool());
  expect_published(node.pool());
}

TEST_F(PublisherServersTest, AForeignSliceWithTheNameOfTheDryRunTakesNoPartitionsAway) {
  put_foreign("fffff-neuron.aws.com-n1");
  const Pool pool = TestNode("trn1.32xlarge").pool();
  publish(pool);
  expect_published(pool);
}

// A policy says what this account may do now; it may be mended in a minute.
TEST_F(PublisherServersTest, ADenialByAPolicyIsTriedAgainSoon) {
  const Pool pool = TestNode("inf2.24xlarge").pool();
  for (const char* reason : {"Invalid", "Forbidden"}) {
    admission_.set([reason](bool is_dry_run) {
      return is_dry_run ? std::nullopt : std::optional(denied_by_policy("slices of n2 only", reason));
    });
    publisher_.compare_again();
    publish(pool);
    EXPECT_FALSE(publisher_.state().published) << reason;
    EXPECT_THAT(publisher_.state().error, HasSubstr("denied by an admission policy or webhook")) << reason;
    EXPECT_THAT(publisher_.state().error, testing::Not(HasSubstr("needs a role"))) << reason;
    admission_.set(nullptr);
    settle_after(SlicePublisher::kLongestRetry);
    expect_published(pool);
    for (const Slice& slice : stored()) api_.drop(std::string(kSlicesPath) + "/" + slice.name);
  }
}

TEST_F(PublisherServersTest, ADenialByAWebhookIsTriedAgainSoon) {
  const Pool pool = TestNode("inf2.24xlarge").pool();
  admission_.set([](bool is_dry_run) {
    return is_dry_run ? std::nullopt : std::optional(denied_by_webhook("denied the request: maintenance"));
  });
  publish(pool);
  EXPECT_THAT(publisher_.state().error, HasSubstr("maintenance"));
  admission_.set(nullptr);
  settle_after(2s);
  expect_published(pool);
}

TEST_F(PublisherServersTest, ADenialOfTheDryRunSaysNothingAboutCounters) {
  const Pool pool = TestNode("trn1.32xlarge").pool();
  admission_.set(
      [](bool is_dry_run) { return is_dry_run ? std::optional(denied_by_policy("not now")) : std::nullopt; });
  publish(pool);
  EXPECT_THAT(publisher_.state().error, HasSubstr("denied by an admission policy or webhook"));
  EXPECT_EQ(writes(), 0U);
  admission_.set(nullptr);
  settle_after(2s);
  expect_published(pool);
}

// It can never be asked, and whole devices are better than nothing.
TEST_F(PublisherServersTest, AWebhookWithoutDryRunMeansWholeDevices) {
  const Pool pool = TestNode("trn1.32xlarge").pool();
  admission_.set([](bool is_dry_run) {
    return is_dry_run ? std::optional(denied_by_webhook("does not support dry run")) : std::nullopt;
  });
  publish(pool);
  expect_published(pool, {SliceShape::plain, true});
}

// Two API servers, one updated and one not, answer in turn.
TEST_F(PublisherServersTest, InAnUpgradeTheShapeIsThatOfTheLowerServer) {
  const Pool pool = TestNode("trn1.32xlarge").pool();
  set_server("36", "v1.36.2", true);
  publish(pool);
  expect_published(pool);
  set_server("35", "v1.35.2", true);
  clock_.advance(5min);
  publisher_.on_synced();
  settle();
  expect_published(pool, {SliceShape::plain, true});
  const std::size_t before = writes();
  for (int round = 0; round < 12; ++round) {
    const bool is_new = round % 3 != 2;  // two of three
    set_server(is_new ? "36" : "35", is_new ? "v1.36.2" : "v1.35.2", true);
    publisher_.on_synced();
    settle_after(5min);
    ASSERT_FALSE(has_shared_counters(stored())) << "round " << round;
  }
  EXPECT_EQ(writes(), before) << "nothing flips";
  set_server("36", "v1.36.2", true);
  for (int round = 0; round < 4; ++round) {
    publisher_.on_synced();
    settle_after(5min);
  }
  settle();
  expect_published(pool);
}

// The agent is restarted meanwhile: what it hears first may be the newer server.
TEST_F(PublisherServersTest, ANewInstanceContinuesWithTheLowerServer) {
  const Pool pool = TestNode("trn1.32xlarge").pool();
  set_server("36", "v1.36.1", true);
  publish(pool);
  expect_published(pool, {SliceShape::plain, true});
  set_server("37", "v1.37.2", true);
  SlicePublisher next(admission_, {"neuron.aws.com", "n1", "n1"}, clock_);
  const auto settle_next = [&] {
    while (next.turn() == 0ms) {
    }
  };
  next.set_pool(pool);
  settle_next();
  EXPECT_TRUE(next.state().published);
  EXPECT_FALSE(has_shared_counters(stored()));
  EXPECT_FALSE(std::ranges::any_of(stored(), has_shares));
  for (int round = 0; round < 2; ++round) {
    ASSERT_FALSE(has_shared_counters(stored())) << "round " << round;
    clock_.advance(5min);
    next.on_synced();
    settle_next();
  }
  EXPECT_TRUE(has_shared_counters(stored())) << "after three equal answers";

  SlicePublisher third(admission_, {"neuron.aws.com", "n1", "n1"}, clock_);
  third.set_pool(pool);
  while (third.turn() == 0ms) {
  }
  EXPECT_TRUE(third.state().published);
  EXPECT_EQ(third.state().writes, 0U) << "it goes on with counters";
}

// The same of gates: servers of one version with different flags.
TEST_F(PublisherServersTest, CountersAreOfferedAgainOnlyAfterSeveralEqualAnswers) {
  set_server("35", "v1.35.6", false);
  const Pool pool = TestNode("inf2.24xlarge").pool();
  publish(pool);
  for (int round = 0; round < 36; ++round) {  // three hours
    api_.set_gates({round % 2 == 1, true});
    publisher_.on_synced();
    settle_after(5min);
    ASSERT_FALSE(has_shared_counters(stored())) << "round " << round;
  }
  api_.set_gates({true, true});
  for (int round = 0; round < 13; ++round) {
    publisher_.on_synced();
    settle_after(5min);
  }
  expect_published(pool);
}

bool has_any_shares(const std::vector<Slice>& slices) {
  return std::any_of(slices.begin(), slices.end(), has_shares);
}

// Found out as counters are: by a dry run first, lowered at once, raised after several equal answers.
TEST_F(PublisherServersTest, DevicesAreSharedWhereEveryServerKeepsThePolicy) {
  PoolOptions options;
  options.shares = Shares::on;
  const Pool pool = TestNode("trn2.48xlarge").pool(options);
  api_.set_gates({true, true, false});
  publish(pool);
  expect_published(pool, {SliceShape::split, true, false});
  for (int round = 0; round < 36; ++round) {
    api_.set_gates({true, true, round % 2 == 1});
    publisher_.on_synced();
    settle_after(5min);
    ASSERT_FALSE(has_any_shares(stored())) << "round " << round;
  }
  api_.set_gates({true, true, true});
  for (int round = 0; round < 13; ++round) {
    publisher_.on_synced();
    settle_after(5min);
  }
  expect_published(pool);
  EXPECT_TRUE(has_any_shares(stored()));
  // The gate is closed: the answer to the next write shows it.
  api_.set_gates({true, true, false});
  for (const Slice& slice : stored()) api_.drop(std::string(kSlicesPath) + "/" + slice.name);
  tell_news();
  settle_after(1s);
  expect_published(pool, {SliceShape::split, true, false});
}

TEST_F(PublisherServersTest, WithoutSharesNothingIsTried) {
  PoolOptions options;
  options.shares = Shares::off;
  set_server("37", "v1.37.2", true);
  publish(TestNode("trn2.48xlarge").pool(options));
  EXPECT_EQ(writes(), stored().size()) << "no dry run";
}

// Up to 1.36 a claim for all devices would get those that are free, so nothing is shared unless --dra-shares=on.
TEST_F(PublisherServersTest, DevicesAreSharedByThemselvesWhereEveryServerIsOneThirtySeven) {
  const Pool pool = TestNode("trn2.48xlarge").pool(PoolOptions());
  set_server("36", "v1.36.3", true);
  publish(pool);
  EXPECT_FALSE(has_any_shares(stored()));
  EXPECT_EQ(writes(), stored().size()) << "no dry run";
  for (int round = 0; round < 12; ++round) {
    const bool is_new = round % 3 != 2;  // two of three
    set_server(is_new ? "37" : "36", is_new ? "v1.37.2" : "v1.36.3", true);
    publisher_.on_synced();
    settle_after(5min);
    ASSERT_FALSE(has_any_shares(stored())) << "round " << round;
  }
  set_server("37", "v1.37.2", true);
  for (int round = 0; round < 4; ++round) {
    publisher_.on_synced();
    settle_after(5min);
  }
  settle();
  expect_published(pool);
  EXPECT_TRUE(has_any_shares(stored()));
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

TEST_F(PublisherServersTest, AServerThatIsUpdatedGetsItsShapeAfterThreeEqualAnswers) {
  set_server("35", "v1.35.2", true);
  const Pool pool = TestNode("trn1.32xlarge").pool();
  publish(pool);
  expect_published(pool, {SliceShape::plain, true});
  set_server("36", "v1.36.2", true);
  for (int round = 0; round < 2; ++round) {
    publisher_.on_synced();
    settle_after(5min);
    ASSERT_FALSE(has_shared_counters(stored())) << "round " << round;
  }
  for (int round = 0; round < 2; ++round) {
    publisher_.on_synced();
    settle_after(5min);
  }
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

// No kubelet takes the driver then, and nothing is published.
TEST_F(PublisherServersTest, AnOldServerIsNamedBeforeAnythingMayBePublished) {
  set_server("33", "v1.33.4", true);
  EXPECT_LE(publisher_.check_early(), SlicePublisher::kLongestRetry);
  EXPECT_THAT(publisher_.state().error, HasSubstr("available from 1.34"));
  set_server("36", "v1.36.3", true);
  put_node("v1.33.4");
  static_cast<void>(publisher_.check_early());
  EXPECT_THAT(publisher_.state().error, HasSubstr("kubelet is 1.33.4"));
  put_node("v1.36.3");
  EXPECT_EQ(publisher_.check_early(), PoolWriter::kFactsAge);
  EXPECT_EQ(publisher_.state().error, "");
  EXPECT_EQ(writes(), 0U);
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
    publisher_.compare_again();
    publisher_.on_synced();
    settle_after(1min);
  }
  EXPECT_EQ(writes(), before);
  api_.set_validation({});
  node.make_ill(3);
  publish(node.pool());
  expect_published(node.pool());
}

}  // namespace
}  // namespace neuron::plugin::dra
