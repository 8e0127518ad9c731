// Publishing against an API server in memory: what is written, when, and what comes of a server that strips, refuses,
// forgets or is shared with somebody else.
#include "plugin/dra/slice_publisher.h"

#include <gmock/gmock.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "plugin/dra/slice_text.h"
#include "test/fakes/fake_api.h"
#include "test/fakes/fake_clock.h"
#include "test/unit/dra/limits.h"
#include "test/unit/dra/pools.h"

namespace neuron::plugin::dra {
namespace {

using kube::Method;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using namespace std::chrono_literals;
using Json = nlohmann::json;

constexpr const char* kNode = "/api/v1/nodes/n1";

// One turn at a time, and the watch's words as the server would send them.
class SlicePublisherTest : public testing::Test {
 protected:
  SlicePublisherTest() { put_node("v1.36.3"); }

  void put_node(const std::string& kubelet, const std::string& uid = "uid-of-n1") {
    api_.drop(kNode);
    api_.put(kNode, {{"metadata", {{"uid", uid}}}, {"status", {{"nodeInfo", {{"kubeletVersion", kubelet}}}}}});
  }
  void set_server(const std::string& minor, const std::string& git, bool gates) {
    api_.set_version(minor, git);
    api_.set_gates({gates, gates});
  }
  // Does what is due now, and tells the watch's news, until there is nothing more.
  std::chrono::milliseconds settle() {
    for (int turns = 0; turns < 50; ++turns) {
      const auto pause = publisher_.turn();
      tell_news();
      if (pause > 0ms) return pause;
    }
    ADD_FAILURE() << "never at rest";
    return 0ms;
  }
  void settle_after(std::chrono::milliseconds time) {
    clock_.advance(time);
    settle();
  }
  // As the watch does, without its thread: what differs from what it told before.
  void tell_news() {
    std::map<std::string, std::string> now;
    for (const Json& object : api_.all(kSlicesPath)) {
      const Json metadata = object["metadata"];
      const std::string name = metadata["name"], version = metadata["resourceVersion"];
      now[name] = version;
      if (told_[name] != version) publisher_.on_upsert({"", name, metadata["uid"], version, object});
    }
    for (const auto& [name, version] : told_) {
      if (!now.contains(name)) publisher_.on_remove({"", name, "", version, Json::object()});
    }
    told_ = std::move(now);
  }
  void publish(const Pool& pool) {
    publisher_.set_pool(pool);
    settle_after(1s);
  }
  [[nodiscard]] std::vector<Slice> stored() const {
    std::vector<Slice> slices;
    for (const Json& object : api_.all(kSlicesPath)) slices.push_back(parse_slice(object.dump()).value());
    return slices;
  }
  // A scheduler would take the pool: complete, of one generation, within the limits, and as it is wanted.
  void expect_published(const Pool& pool, const LayoutOptions& options = {}) {
    const auto slices = stored();
    const auto wanted = lay_out(pool, options).slices;
    ASSERT_EQ(slices.size(), wanted.size());
    for (std::size_t i = 0; i < slices.size(); ++i) {
      EXPECT_EQ(slices[i].generation, slices.front().generation);
      EXPECT_EQ(slices[i].slice_count, static_cast<std::int64_t>(wanted.size()));
      EXPECT_EQ(slices[i].owner, (OwnerNode{"n1", "uid-of-n1"}));
      EXPECT_TRUE(slices[i].is_ours);
      EXPECT_TRUE(is_same(slices[i].content, wanted[i])) << slices[i].name;
    }
    expect_within_limits(wanted, options.shape);
    EXPECT_TRUE(publisher_.state().published) << publisher_.state().error;
    EXPECT_EQ(publisher_.state().error, "");
    EXPECT_EQ(publisher_.state().slices, wanted.size());
  }
  [[nodiscard]] std::size_t writes() const { return api_.writes().size(); }

  fakes::FakeApi api_;
  fakes::FakeClock clock_;
  SlicePublisher publisher_{api_, {"neuron.aws.com", "n1", "n1"}, clock_};
  std::map<std::string, std::string> told_;
};

TEST_F(SlicePublisherTest, PublishesAtOnceAndThenIsIdle) {
  const Pool pool = TestNode("trn1.32xlarge").pool();
  EXPECT_GT(settle(), 10s) << "nothing before there is a pool";
  EXPECT_THAT(api_.calls(), IsEmpty());
  publisher_.set_pool(pool);
  settle();
  expect_published(pool);
  EXPECT_EQ(writes(), 2U);
  api_.forget_calls();
  for (int minute = 0; minute < 600; ++minute) {
    publisher_.set_pool(pool);
    settle_after(1min);
  }
  EXPECT_THAT(api_.calls(), IsEmpty()) << "an idle node writes nothing";
}

TEST_F(SlicePublisherTest, TheNetLooksAtTheServerAndWritesNothing) {
  publish(TestNode("trn1.32xlarge").pool());
  api_.forget_calls();
  for (int hour = 0; hour < 24 * 12; ++hour) {
    publisher_.on_synced();
    settle_after(5min);
  }
  EXPECT_EQ(writes(), 0U);
  EXPECT_LE(api_.calls().size(), 24U * 12 * 2) << "the version and the node";
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
  EXPECT_EQ(publisher_.state().republished, 1U);
}

TEST_F(SlicePublisherTest, Pain8ADeletionThatTheWatchMissesIsFoundWhenTheKubeletTakesTheDriver) {
  const Pool pool = TestNode("trn2.48xlarge").pool();
  publish(pool);
  for (const Slice& slice : stored()) api_.drop(std::string(kSlicesPath) + "/" + slice.name);
  publisher_.look_again();
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

TEST_F(SlicePublisherTest, Pain8OneSliceDeletedByHandInTheMiddleOfACreate) {
  const Pool pool = TestNode("trn2.48xlarge").pool();
  api_.fail_next({.method = Method::create, .path_part = "resourceslices", .status = 503});
  publish(pool);
  EXPECT_FALSE(publisher_.state().published);
  EXPECT_THAT(publisher_.state().error, HasSubstr("503"));
  settle_after(2s);
  expect_published(pool);
}

TEST_F(SlicePublisherTest, Pain3AClosedGateMeansNoCoresAndNoGroups) {
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

TEST_F(SlicePublisherTest, AGateThatIsOpenedLaterIsNoticedWithinTheHour) {
  set_server("35", "v1.35.6", false);
  const Pool pool = TestNode("trn1.32xlarge").pool();
  publish(pool);
  set_server("35", "v1.35.6", true);
  for (int i = 0; i < 13; ++i) {
    publisher_.on_synced();
    settle_after(5min);
  }
  expect_published(pool);
}

TEST_F(SlicePublisherTest, AServerThatIsUpdatedGetsItsShapeWithinMinutes) {
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

TEST_F(SlicePublisherTest, Pain11OneThirtyFourGetsCountersAndDevicesInOneSlice) {
  set_server("34", "v1.34.3", true);
  const Pool pool = TestNode("trn1.32xlarge").pool();
  publish(pool);
  expect_published(pool, {SliceShape::combined, true});
}

// A server that says one version and behaves like another.
TEST_F(SlicePublisherTest, Pain11AServerThatRefusesCountersGetsNone) {
  api_.set_validation([](const Json& object) {
    return object["spec"].contains("sharedCounters") ? "only one of `sharedCounters` or `devices` is allowed" : "";
  });
  const Pool pool = TestNode("trn1.32xlarge").pool();
  publish(pool);
  expect_published(pool, {SliceShape::plain, true});
}

TEST_F(SlicePublisherTest, WithoutTaintsAnIllDeviceIsLeftOut) {
  api_.set_gates({true, false});
  TestNode node("inf2.48xlarge");
  node.make_ill(3);
  publish(node.pool());
  settle();
  expect_published(node.pool(), {SliceShape::split, false});
}

TEST_F(SlicePublisherTest, AGateThatIsClosedWhileSlicesAreThereIsSeenInTheAnswers) {
  TestNode node("inf2.48xlarge");
  publish(node.pool());
  api_.set_gates({false, false});
  for (const Slice& slice : stored()) api_.drop(std::string(kSlicesPath) + "/" + slice.name);
  tell_news();
  settle_after(1s);
  expect_published(node.pool(), {SliceShape::plain, false});
}

TEST_F(SlicePublisherTest, Pain10OldServersAndKubeletsAreRefusedInWords) {
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

TEST_F(SlicePublisherTest, Pain12WhatIsInvalidIsNotSentAgainBeforeItHasChanged) {
  TestNode node("trn1.32xlarge");
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

TEST_F(SlicePublisherTest, Pain22AFailedUpdateIsTriedUntilItIsDone) {
  TestNode node("trn1.32xlarge");
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

TEST_F(SlicePublisherTest, ForbiddenIsSaidInTheServersWords) {
  api_.fail_next({.times = fakes::FakeApi::kAlways, .status = 403, .words = "cannot list resourceslices"});
  publish(TestNode("trn1.32xlarge").pool());
  EXPECT_THAT(publisher_.state().error, HasSubstr("cannot list resourceslices"));
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
  const Pool pool = TestNode("trn1.32xlarge").pool();
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

// What a publisher with a thread of its own tells.
class States {
 public:
  void tell(const PublishState& state) {
    const std::lock_guard lock(mutex_);
    state_ = state;
    changed_.notify_all();
  }
  bool wait(const std::function<bool(const PublishState&)>& holds) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 20s, [&] { return holds(state_); });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  PublishState state_;
};

// With its own thread, the real watch and the real clock.
TEST_F(SlicePublisherTest, Pain8RunsByItselfAndRepublishesWithinASecond) {
  const SystemClock clock;
  States states;
  SlicePublisher publisher(api_, {"neuron.aws.com", "n1", "n1", {}, [&](const auto& state) { states.tell(state); }},
                           clock);
  const std::jthread thread([&](const std::stop_token& stop) { publisher.run(stop); });
  publisher.set_pool(TestNode("trn2.48xlarge").pool());
  ASSERT_TRUE(states.wait([](const PublishState& state) { return state.published; }));
  ASSERT_TRUE(api_.wait([&] { return api_.open_watches() == 1; }));
  for (std::uint64_t round = 1; round <= 3; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (const Slice& slice : stored()) api_.drop(std::string(kSlicesPath) + "/" + slice.name);
    ASSERT_TRUE(
        states.wait([&](const PublishState& state) { return state.published && state.writes >= 3 + 3 * round; }));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 1s + 4s) << "a second, and a busy machine";
    EXPECT_THAT(stored(), SizeIs(3));
  }
}

}  // namespace
}  // namespace neuron::plugin::dra
