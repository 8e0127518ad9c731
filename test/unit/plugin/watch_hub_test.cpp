#include "plugin/device/units.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

namespace neuron::plugin {
namespace {

struct RecordingSink : ListSink<UnitList> {
  void publish(UnitListPtr units) override {
    newest = std::move(units);
    ++offers;
  }
  void stop() override { ++stops; }
  UnitListPtr newest;
  std::atomic<int> offers = 0;
  std::atomic<int> stops = 0;
};

UnitListPtr list(const std::string& id) {
  return std::make_shared<const UnitList>(UnitList{{id, true, {0}}});
}

TEST(WatchHub, ANewWatcherIsOfferedTheNewestListAtOnce) {
  WatchHub hub;
  hub.publish(list("a"));
  const auto sink = std::make_shared<RecordingSink>();
  hub.add(sink);
  ASSERT_EQ(sink->offers, 1);
  EXPECT_EQ(sink->newest->front().id, "a");
}

TEST(WatchHub, TwoWatchersBothGetEveryChange) {
  WatchHub hub;
  const auto one = std::make_shared<RecordingSink>();
  const auto two = std::make_shared<RecordingSink>();
  hub.add(one);
  hub.add(two);
  hub.publish(list("a"));
  hub.publish(list("b"));
  EXPECT_EQ(one->offers, 2);
  EXPECT_EQ(two->newest->front().id, "b");
}

TEST(WatchHub, ARemovedWatcherHearsNothingMore) {
  WatchHub hub;
  const auto sink = std::make_shared<RecordingSink>();
  hub.add(sink);
  hub.remove(sink.get());
  hub.publish(list("a"));
  hub.close();
  EXPECT_EQ(sink->offers, 0);
  EXPECT_EQ(sink->stops, 0);
  EXPECT_EQ(hub.watchers(), 0U);
}

TEST(WatchHub, CloseStopsWatchersNowAndLater) {
  WatchHub hub;
  const auto before = std::make_shared<RecordingSink>();
  hub.add(before);
  hub.close();
  hub.close();
  const auto after = std::make_shared<RecordingSink>();
  hub.add(after);
  EXPECT_EQ(before->stops, 1);
  EXPECT_EQ(after->stops, 1);
  EXPECT_EQ(after->offers, 0);
}

TEST(WatchHub, SurvivesWatchersThatComeAndGoDuringPublish) {
  WatchHub hub;
  std::atomic<bool> done = false;
  std::thread churn([&] {
    while (!done) {
      const auto sink = std::make_shared<RecordingSink>();
      hub.add(sink);
      hub.remove(sink.get());
    }
  });
  for (int i = 0; i < 2000; ++i) hub.publish(list("a"));
  done = true;
  churn.join();
  EXPECT_EQ(hub.watchers(), 0U);
}

// A newer list overtakes an older one that is still being handed out.
TEST(WatchHub, AnOlderListNeverReplacesANewerOne) {
  struct Slow : RecordingSink {
    std::function<void()> meanwhile;
    void publish(UnitListPtr units) override {
      RecordingSink::publish(std::move(units));
      meanwhile();
    }
  };
  WatchHub hub;
  const auto slow = std::make_shared<Slow>();
  const auto other = std::make_shared<RecordingSink>();
  hub.add(slow);
  hub.add(other);
  slow->meanwhile = [&] {
    std::thread([&] {
      hub.remove(slow.get());
      hub.publish(list("newer"));
    }).join();
  };
  hub.publish(list("older"));
  ASSERT_TRUE(other->newest);
  EXPECT_EQ(other->newest->front().id, "newer");
  EXPECT_EQ(other->offers, 1);
}

TEST(WatchHub, WhatAWatcherSeesNeverGoesBack) {
  struct Watching : ListSink<UnitList> {
    int last = -1;
    int steps_back = 0;
    void publish(UnitListPtr units) override {
      const int number = std::stoi(units->front().id);
      if (number < last) ++steps_back;
      last = number;
    }
    void stop() override {}
  };
  constexpr int kLists = 30'000;
  WatchHub hub;
  std::atomic<bool> done = false;
  std::thread publisher([&] {
    for (int i = 0; i < kLists; ++i) hub.publish(list(std::to_string(i)));
    done = true;
  });
  std::vector<std::shared_ptr<Watching>> all;
  while (!done) {
    all.push_back(std::make_shared<Watching>());
    hub.add(all.back());
    if (all.size() % 8 == 0) hub.stop_watchers();
  }
  publisher.join();
  for (const auto& one : all) EXPECT_EQ(one->steps_back, 0);
}

TEST(WatchHub, StoppedWatchersMakeRoomForNewOnes) {
  WatchHub hub;
  const auto before = std::make_shared<RecordingSink>();
  hub.add(before);
  hub.stop_watchers();
  EXPECT_EQ(before->stops, 1);
  const auto after = std::make_shared<RecordingSink>();
  hub.add(after);
  hub.publish(list("a"));
  EXPECT_EQ(after->offers, 1);
  EXPECT_EQ(before->offers, 0);
}

}  // namespace
}  // namespace neuron::plugin
