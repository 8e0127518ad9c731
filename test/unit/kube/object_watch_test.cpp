#include "agent/kube/object_watch.h"

#include <gmock/gmock.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "test/fakes/fake_api.h"
#include "test/fakes/fake_clock.h"

namespace neuron::kube {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using namespace std::chrono_literals;
using Json = nlohmann::json;
using Lines = std::vector<std::string>;

const std::string kSlices = "/apis/resource.k8s.io/v1/resourceslices";

// What the watch's thread does, in order. It stays in a wait between two attempts until the test lets it go on.
class Diary final : public WatchSink {
 public:
  void on_reset() override { note("reset"); }
  void on_upsert(const ApiObject& object) override { note("upsert " + object.name); }
  void on_remove(const ApiObject& object) override { note("remove " + object.name); }
  void on_synced() override { note("synced"); }
  void on_trouble(const Error& error) override { note("trouble: " + error.message); }
  void wait(std::chrono::milliseconds time, const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    times_.push_back(time);
    lines_.emplace_back("wait");
    changed_.notify_all();
    changed_.wait(lock, stop, [&] { return passes_ > 0; });
    passes_ = std::max(passes_ - 1, 0);
  }

  void go_on() {
    const std::lock_guard lock(mutex_);
    ++passes_;
    changed_.notify_all();
  }
  // The next `count` lines, once they are there; fewer after 20 s.
  Lines take(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, 20s, [&] { return lines_.size() >= count; });
    const auto end = lines_.begin() + static_cast<long>(std::min(count, lines_.size()));
    Lines taken(lines_.begin(), end);
    lines_.erase(lines_.begin(), end);
    return taken;
  }
  std::vector<std::chrono::milliseconds> times() {
    const std::lock_guard lock(mutex_);
    return times_;
  }

 private:
  void note(const std::string& line) {
    const std::lock_guard lock(mutex_);
    lines_.push_back(line);
    changed_.notify_all();
  }
  std::mutex mutex_;
  std::condition_variable_any changed_;
  Lines lines_;
  std::vector<std::chrono::milliseconds> times_;
  int passes_ = 0;
};

class ObjectWatchTest : public ::testing::Test {
 protected:
  void put(const std::string& name, const std::string& node = "n1") {
    api_.put(kSlices + "/" + name, {{"spec", {{"driver", "neuron.aws.com"}, {"nodeName", node}}}});
  }
  void start(WatchTimes times = {}) {
    const WatchPlace place{kSlices, "spec.driver=neuron.aws.com,spec.nodeName=n1"};
    thread_ = std::jthread([this, times, place](const std::stop_token& stop) {
      ObjectWatch watch(api_, place, diary_, clock_, times,
                        [this](auto time, const auto& token) { diary_.wait(time, token); });
      watch.run(stop);
    });
  }
  // Started, and in its first watch.
  void start_synced() {
    start();
    ASSERT_EQ(diary_.take(2), Lines({"reset", "synced"}));
    ASSERT_TRUE(is_watching());
  }
  bool is_watching() {
    return api_.wait([this] { return api_.open_watches() == 1; });
  }
  // The watch that is open ends after `lasted`; then what follows in the diary.
  void end_watch(std::chrono::milliseconds lasted) {
    clock_.advance(lasted);
    api_.end_watches();
  }
  std::string last_query() { return api_.calls().back().query; }

  fakes::FakeApi api_;
  fakes::FakeClock clock_;
  Diary diary_;
  std::jthread thread_;
};

TEST_F(ObjectWatchTest, ListsAndThenTellsWhatChanges) {
  put("a");
  put("of-another", "n2");
  start();
  EXPECT_THAT(diary_.take(3), ElementsAre("reset", "upsert a", "synced"));
  ASSERT_TRUE(is_watching());
  put("b");
  put("of-another", "n2");
  put("a");
  api_.drop(kSlices + "/b");
  EXPECT_THAT(diary_.take(3), ElementsAre("upsert b", "upsert a", "remove b"));
  const auto calls = api_.calls();
  ASSERT_EQ(calls.size(), 2U);
  const std::string selector = "fieldSelector=spec.driver%3Dneuron.aws.com%2Cspec.nodeName%3Dn1&";
  EXPECT_EQ(calls[0].query, selector + "limit=500&resourceVersion=0");
  EXPECT_THAT(calls[1].query, AllOf(StartsWith(selector + "watch=true&allowWatchBookmarks=true&timeoutSeconds="),
                                    HasSubstr("&resourceVersion=1002")));
}

TEST_F(ObjectWatchTest, GoesOnWhereItWas) {
  start_synced();
  put("a");
  EXPECT_THAT(diary_.take(1), ElementsAre("upsert a"));
  put("of-another", "n2");
  api_.send_bookmark();
  end_watch(6s);
  ASSERT_TRUE(api_.wait([this] { return api_.calls().size() == 3; }));
  EXPECT_THAT(last_query(), HasSubstr("&resourceVersion=1002"));  // the bookmark's
  ASSERT_TRUE(is_watching());
  put("b");
  EXPECT_THAT(diary_.take(1), ElementsAre("upsert b"));
}

TEST_F(ObjectWatchTest, ListsAnewWhenItsVersionIsForgotten) {
  for (const bool by_status : {false, true}) {
    start_synced();
    put("of-another", "n2");
    api_.expire();
    api_.expire_by_status(by_status);
    end_watch(6s);
    EXPECT_THAT(diary_.take(3),
                ElementsAre(AllOf(StartsWith("trouble: watching /apis/resource.k8s.io/v1/resourceslices: "),
                                  HasSubstr("too old resource version")),
                            "reset", "synced"));
    ASSERT_TRUE(is_watching());
    const auto calls = api_.calls();
    EXPECT_THAT(calls[calls.size() - 2].query, AllOf(HasSubstr("limit=500"), Not(HasSubstr("resourceVersion"))));
    put("of-another", "n2");  // a server that forgets too quickly: not in a loop
    api_.expire();
    api_.end_watches();
    EXPECT_THAT(diary_.take(1), ElementsAre("wait"));
    diary_.go_on();
    EXPECT_THAT(diary_.take(2), ElementsAre(HasSubstr("too old resource version"), "wait"));
    thread_ = {};
  }
}

TEST_F(ObjectWatchTest, KeepsItsPlaceThroughFailures) {
  start_synced();
  api_.fail_next(1, make_error(ErrorCode::unavailable, "connection refused"));
  api_.fail_next(1, 503);
  end_watch(6s);
  EXPECT_THAT(diary_.take(2), ElementsAre(HasSubstr("connection refused"), "wait"));
  put("a");
  diary_.go_on();
  EXPECT_THAT(diary_.take(2), ElementsAre(HasSubstr("answers 503"), "wait"));
  diary_.go_on();
  EXPECT_THAT(diary_.take(1), ElementsAre("upsert a"));
}

TEST_F(ObjectWatchTest, ListsAnewWhenTheWatchIsRefusedOrLies) {
  start_synced();
  api_.fail_next(1, 403);
  end_watch(6s);
  EXPECT_THAT(diary_.take(2), ElementsAre(HasSubstr("answers 403"), "wait"));
  diary_.go_on();
  EXPECT_THAT(diary_.take(2), ElementsAre("reset", "synced"));
  ASSERT_TRUE(is_watching());
  api_.send_line(R"({"type":"ADDED"})");
  EXPECT_THAT(diary_.take(2), ElementsAre(HasSubstr("has no object"), "wait"));
  diary_.go_on();
  EXPECT_THAT(diary_.take(2), ElementsAre("reset", "synced"));
  ASSERT_TRUE(is_watching());
  api_.send_line(R"({"type":"ERROR","object":{"kind":"Status","code":500,"message":"etcd\n"}})");
  EXPECT_THAT(diary_.take(2), ElementsAre(HasSubstr("the server ended it: etcd\\x0a"), "wait"));
}

TEST_F(ObjectWatchTest, AListThatFailsIsTriedAgainMoreAndMoreRarely) {
  api_.fail_next(4, 500);
  start({.first_retry = 100ms, .longest_retry = 400ms});
  for (int i = 0; i < 4; ++i) {
    EXPECT_THAT(diary_.take(2), ElementsAre(HasSubstr("answers 500"), "wait"));
    diary_.go_on();
  }
  EXPECT_THAT(diary_.take(2), ElementsAre("reset", "synced"));
  const auto times = diary_.times();
  ASSERT_EQ(times.size(), 4U);
  const std::chrono::milliseconds whole[] = {100ms, 200ms, 400ms, 400ms};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_GE(times[i], whole[i] / 2);
    EXPECT_LE(times[i], whole[i]);
  }
}

TEST_F(ObjectWatchTest, WatchesThatEndAtOnceAreNotOpenedInALoop) {
  start_synced();
  for (int i = 0; i < 12; ++i) {
    ASSERT_TRUE(is_watching());
    api_.end_watches();
    ASSERT_THAT(diary_.take(1), ElementsAre("wait"));
    diary_.go_on();
  }
  EXPECT_GE(diary_.times().back(), 15s);
  ASSERT_TRUE(is_watching());
  end_watch(6s);  // one that lasted: no wait, and the next is short again
  ASSERT_TRUE(api_.wait([this] { return api_.calls().size() == 15; }));
  ASSERT_TRUE(is_watching());
  api_.end_watches();
  ASSERT_THAT(diary_.take(1), ElementsAre("wait"));
  EXPECT_LE(diary_.times().back(), 500ms);
}

TEST_F(ObjectWatchTest, AFullListIsTheNet) {
  start_synced();
  end_watch(7min);
  EXPECT_THAT(diary_.take(2), ElementsAre("reset", "synced"));
  const auto calls = api_.calls();
  ASSERT_GE(calls.size(), 3U);
  EXPECT_THAT(calls[2].query, HasSubstr("resourceVersionMatch=NotOlderThan&resourceVersion=1000"));
  EXPECT_THAT(calls[2].query, Not(HasSubstr("limit")));
  // A server that does not end its watches when asked to: the next line ends it.
  ASSERT_TRUE(is_watching());
  clock_.advance(10min);
  put("a");
  EXPECT_THAT(diary_.take(4), ElementsAre("upsert a", "reset", "upsert a", "synced"));
}

TEST_F(ObjectWatchTest, ListsInPages) {
  for (int i = 0; i < 1001; ++i) put("s" + std::to_string(i));
  api_.fail_next({.times = 1, .status = 410});
  start();
  EXPECT_THAT(diary_.take(2), ElementsAre(HasSubstr("answers 410"), "wait"));
  diary_.go_on();
  EXPECT_EQ(diary_.take(1003).size(), 1003U);
  const auto calls = api_.calls();
  ASSERT_GE(calls.size(), 4U);
  EXPECT_THAT(calls[1].query, Not(HasSubstr("continue")));
  EXPECT_THAT(calls[2].query, HasSubstr("limit=500&continue=2001%40"));
  EXPECT_THAT(calls[3].query, HasSubstr("limit=500&continue=2001%40"));
}

TEST_F(ObjectWatchTest, StopsFromEverywhere) {
  start();  // in a watch
  ASSERT_TRUE(is_watching());
  thread_ = {};
  api_.fail_next({.times = fakes::FakeApi::kAlways, .status = 500});
  start();  // in a wait
  EXPECT_THAT(diary_.take(4), ElementsAre("reset", "synced", HasSubstr("500"), "wait"));
  thread_ = {};
  api_.heal();
  start();  // in a watch whose answer does not begin
  EXPECT_THAT(diary_.take(2), ElementsAre("reset", "synced"));
  ASSERT_TRUE(is_watching());
  api_.fail_next({.hangs = true});
  end_watch(6s);
  ASSERT_TRUE(api_.wait([this] { return api_.open_watches() == 0; }));
  thread_ = {};
}

}  // namespace
}  // namespace neuron::kube
