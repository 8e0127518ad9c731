// Publishing against an API server in memory: what is written, and when.
#include <thread>

#include "test/unit/dra/publisher_fixture.h"

namespace neuron::plugin::dra {
namespace {

using kube::Method;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using namespace std::chrono_literals;
using Json = nlohmann::json;
using SlicePublisherTest = PublisherFixture;

TEST_F(SlicePublisherTest, PublishesAtOnceAndThenIsIdle) {
  const Pool pool = TestNode("trn1.32xlarge").pool();
  EXPECT_GT(settle(), 10s) << "nothing before there is a pool";
  EXPECT_THAT(api_.calls(), IsEmpty());
  publisher_.set_pool(pool);
  settle();
  expect_published(pool);
  EXPECT_EQ(writes(), 2U);
  api_.forget_calls();
  for (int minute = 0; minute < 60; ++minute) {
    publisher_.set_pool(pool);
    settle_after(1min);
  }
  EXPECT_THAT(api_.calls(), IsEmpty()) << "an idle node writes nothing";
}

TEST_F(SlicePublisherTest, TheNetLooksAtTheServerAndWritesNothing) {
  constexpr int kTimes = 48;
  publish(TestNode("inf2.xlarge").pool());
  api_.forget_calls();
  for (int i = 0; i < kTimes; ++i) {
    publisher_.on_synced();
    settle_after(5min);
  }
  EXPECT_EQ(writes(), 0U);
  EXPECT_LE(api_.calls().size(), 2U * kTimes) << "the version and the node";
}

// As a real one: each read is later than the one before.
class MovingClock final : public Clock {
 public:
  [[nodiscard]] SteadyTime now() const override {
    return SteadyTime{} + std::chrono::hours(1) + std::chrono::nanoseconds(++reads_);
  }

 private:
  mutable int reads_ = 0;
};

TEST_F(SlicePublisherTest, TheServerIsCheckedAtOnceAfterAList) {
  const MovingClock clock;
  SlicePublisher publisher(admission_, {"neuron.aws.com", "n1", "n1"}, clock);
  publisher.set_pool(TestNode("inf2.24xlarge").pool());
  while (publisher.turn() == 0ms) {
  }
  ASSERT_TRUE(publisher.state().published);
  publisher.on_synced();
  EXPECT_EQ(publisher.turn(), 0ms) << "it waits for a time that has passed";
}

TEST_F(SlicePublisherTest, SeveralChangesWithinASecondAreOneWrite) {
  TestNode node("trn1.32xlarge");
  publish(node.pool());
  api_.forget_calls();
  for (int device = 0; device < 5; ++device) {
    node.make_ill(device);
    publisher_.set_pool(node.pool());
    settle_after(150ms);
  }
  EXPECT_EQ(writes(), 0U);
  settle_after(1s);
  EXPECT_EQ(writes(), 1U) << "one slice, and the generation stays";
  expect_published(node.pool());
}

TEST_F(SlicePublisherTest, Pain8SlicesThatTheKubeletDeletesAreBackWithinASecond) {
  const Pool pool = TestNode("trn2.48xlarge").pool();
  publish(pool);
  for (const Slice& slice : stored()) api_.drop(std::string(kSlicesPath) + "/" + slice.name);
  tell_news();
  settle();
  settle_after(SlicePublisher::kStoredPause);
  expect_published(pool);
  EXPECT_EQ(writes(), 6U) << "each slice twice";
}

TEST_F(SlicePublisherTest, Pain8ADeletionThatTheWatchMissesIsFoundWhenTheKubeletTakesTheDriver) {
  const Pool pool = TestNode("trn2.48xlarge").pool();
  publish(pool);
  for (const Slice& slice : stored()) api_.drop(std::string(kSlicesPath) + "/" + slice.name);
  publisher_.compare_again();
  settle();
  expect_published(pool);
}

TEST_F(SlicePublisherTest, Pain8ADeletionThatTheWatchMissesIsFoundByTheNet) {
  const Pool pool = TestNode("trn2.48xlarge").pool();
  publish(pool);
  for (const Slice& slice : stored()) api_.drop(std::string(kSlicesPath) + "/" + slice.name);
  told_.clear();
  publisher_.on_reset();
  publisher_.on_synced();
  settle_after(SlicePublisher::kStoredPause);
  expect_published(pool);
}

TEST_F(SlicePublisherTest, Pain8WhatFailsHalfWayIsMadeWholeSoon) {
  const Pool pool = TestNode("trn2.48xlarge").pool();
  api_.fail_next({.method = Method::create, .path_part = "resourceslices", .status = 503});
  publish(pool);
  EXPECT_FALSE(publisher_.state().published);
  EXPECT_THAT(publisher_.state().error, HasSubstr("503"));
  settle_after(2s);
  expect_published(pool);
}

// A server that says one version and behaves like another.
TEST_F(SlicePublisherTest, ALostAnswerIsNoSecondSlice) {
  const Pool pool = TestNode("trn2.48xlarge").pool();
  api_.fail_next({.method = Method::create,
                  .path_part = "resourceslices",
                  .error = make_error(ErrorCode::deadline_exceeded, "no answer within 10 s"),
                  .lost = true});
  publish(pool);
  settle_after(2s);
  settle_after(2s);
  expect_published(pool);
}

TEST_F(SlicePublisherTest, AConflictIsLookedAtAnew) {
  TestNode node("trn1.32xlarge");
  publish(node.pool());
  api_.fail_next({.method = Method::replace, .status = 409});
  node.make_ill(3);
  publish(node.pool());
  expect_published(node.pool());
}

TEST_F(SlicePublisherTest, ANodeThatWasMadeAnewOwnsTheSlices) {
  const Pool pool = TestNode("trn1.32xlarge").pool();
  put_node("v1.36.3", "an-older-uid");
  publish(pool);
  put_node("v1.36.3", "uid-of-n1");
  for (const Slice& slice : stored()) api_.drop(std::string(kSlicesPath) + "/" + slice.name);
  tell_news();
  settle_after(1s);
  expect_published(pool);
}

TEST_F(SlicePublisherTest, SlicesOfAwsDriverAreReplaced) {
  const Pool pool = TestNode("trn1.32xlarge").pool();
  api_.put(std::string(kSlicesPath) + "/n1-neuron.aws.cx7k2d",
           {{"spec",
             {{"driver", "neuron.aws.com"},
              {"nodeName", "n1"},
              {"pool", {{"name", "n1"}, {"generation", 3}, {"resourceSliceCount", 1}}},
              {"devices", {{{"name", "neuron-device-0"}}}}}}});
  api_.put(std::string(kSlicesPath) + "/n2-neuron.aws.cx7k2d",
           {{"spec", {{"driver", "neuron.aws.com"}, {"nodeName", "n2"}, {"pool", {{"name", "n2"}}}}}});
  publish(pool);
  EXPECT_EQ(api_.all(kSlicesPath).size(), 3U) << "another node's stay";
  api_.drop(std::string(kSlicesPath) + "/n2-neuron.aws.cx7k2d");
  expect_published(pool);
}

TEST_F(SlicePublisherTest, TwoWritersDoNotKeepTheServerBusy) {
  const Pool pool = TestNode("inf2.xlarge").pool();
  publish(pool);
  api_.forget_calls();
  for (int second = 0; second < 65; ++second) {
    Json object = api_.at(std::string(kSlicesPath) + "/00001-neuron.aws.com-n1");
    object["spec"]["devices"][0]["attributes"]["lnc"]["int"] = 100 + second;
    api_.put(std::string(kSlicesPath) + "/00001-neuron.aws.com-n1", object);
    tell_news();
    settle_after(1s);
  }
  EXPECT_GE(writes(), 2U);
  EXPECT_LE(writes(), 4U);
  settle_after(31s);
  expect_published(pool);
}

TEST_F(SlicePublisherTest, ANodeWithoutHardwareHasNoSlices) {
  publish(TestNode("trn1.32xlarge").pool());
  publish(Pool{});
  EXPECT_THAT(stored(), IsEmpty());
  EXPECT_TRUE(publisher_.state().published);
}

// With its own thread, the real watch and the real clock.
TEST_F(SlicePublisherTest, Pain8RunsByItselfAndRepublishesWithinASecond) {
  const SystemClock clock;
  SlicePublisher publisher(api_, {"neuron.aws.com", "n1", "n1"}, clock);
  std::jthread thread([&](const std::stop_token& stop) { publisher.run(stop); });
  publisher.set_pool(TestNode("trn2.48xlarge").pool());
  ASSERT_TRUE(api_.wait([&] { return stored().size() == 3 && api_.open_watches() == 1; }));
  for (std::uint64_t round = 1; round <= 3; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (const Slice& slice : stored()) api_.drop(std::string(kSlicesPath) + "/" + slice.name);
    ASSERT_TRUE(api_.wait([&] { return stored().size() == 3 && writes() >= 3 + 3 * round; }));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 1s + 4s) << "a second, and a busy machine";
  }
  thread = {};
  EXPECT_TRUE(publisher.state().published);
  EXPECT_GE(publisher.state().writes, 12U);
}

// Labels of the Node that the cloud's controller writes, perhaps later.
TEST_F(SlicePublisherTest, NetworkLayersAreThoseOfTheNodesLabels) {
  const auto layer = [this](const char* name) -> std::string {
    for (const Slice& slice : stored()) {
      for (const nlohmann::json& device : slice.json["spec"].value("devices", nlohmann::json::array())) {
        if (device["name"] == "neuron-device-0") return device["attributes"][name]["string"];
      }
    }
    return "no device";
  };
  publish(TestNode("trn1.32xlarge").pool());
  EXPECT_EQ(layer("networkNodeLayer1"), "");
  api_.drop("/api/v1/nodes/n1");
  api_.put("/api/v1/nodes/n1",
           {{"metadata", {{"uid", "uid-of-n1"}, {"labels", {{"topology.k8s.aws/network-node-layer-1", "nn-1"}}}}},
            {"status", {{"nodeInfo", {{"kubeletVersion", "v1.36.3"}}}}}});
  clock_.advance(PoolWriter::kFactsAge);
  publisher_.on_synced();
  settle();
  EXPECT_EQ(layer("networkNodeLayer1"), "nn-1");
  EXPECT_EQ(layer("networkNodeLayer2"), "");
}

TEST_F(SlicePublisherTest, Pain22AFailedUpdateIsTriedUntilItIsDone) {
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

TEST_F(SlicePublisherTest, ForbiddenIsSaidInTheServersWords) {
  api_.fail_next({.times = fakes::FakeApi::kAlways, .status = 403, .words = "cannot list resourceslices"});
  publish(TestNode("trn1.32xlarge").pool());
  EXPECT_THAT(publisher_.state().error, HasSubstr("cannot list resourceslices"));
}

}  // namespace
}  // namespace neuron::plugin::dra
