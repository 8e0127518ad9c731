#include "agent/monitor/watched_scan.h"

#include <gtest/gtest.h>

#include <deque>
#include <thread>
#include <utility>
#include <vector>

#include "test/fakes/fake_clock.h"

namespace neuron::monitor {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

// Timers and reads that run when the test says so.
class UsageSamplerTest : public ::testing::Test {
 protected:
  UsageSampler make() {
    return {
        {[this](std::function<void()> job) { begun_.push_back(std::move(job)); },
         [this] {
           return [this](const model::MayRead&) {
             model::UsageSample sample;
             sample.at = clock_.now();
             sample.cpu_count = ++reads_;
             return sample;
           };
         },
         [this] { return !nothing_yet_; },
         [this](SteadyTime when, std::function<void()> job) { timers_.emplace_back(when, std::move(job)); }, nullptr},
        clock_,
        kInterval};
  }
  // Time passes; timers run, and the reads that they begin unless those hang.
  void pass(milliseconds time) {
    clock_.advance(time);
    run_timers();
    if (!hangs_) finish_reads();
  }
  void run_timers() {
    for (auto due = std::exchange(timers_, {}); auto& [when, job] : due) {
      if (when > clock_.now()) {
        timers_.emplace_back(when, std::move(job));
      } else {
        job();
      }
    }
  }
  void finish_reads() {
    for (auto jobs = std::exchange(begun_, {}); const auto& job : jobs) job();
    run_timers();  // which take what was read
  }
  static int count_of(const std::shared_ptr<const model::UsageSample>& sample) {
    return sample ? sample->cpu_count : 0;
  }

  static constexpr seconds kInterval{5};
  fakes::FakeClock clock_;
  std::vector<std::pair<SteadyTime, std::function<void()>>> timers_;
  std::vector<std::function<void()>> begun_;
  int reads_ = 0;
  bool hangs_ = false;
  bool nothing_yet_ = false;
};

TEST_F(UsageSamplerTest, ReadsNothingUntilSomebodyAsks) {
  UsageSampler sampler = make();
  pass(minutes(10));
  EXPECT_EQ(reads_, 0);
  EXPECT_TRUE(timers_.empty());
  EXPECT_EQ(sampler.ask().now, nullptr);
  pass(milliseconds(0));
  EXPECT_EQ(reads_, 1) << "at once, not after an interval";
  const UsageSampler::Samples first = sampler.ask();
  EXPECT_EQ(count_of(first.now), 1);
  EXPECT_EQ(first.before, nullptr);
}

TEST_F(UsageSamplerTest, KeepsTheNewestTwo) {
  UsageSampler sampler = make();
  static_cast<void>(sampler.ask());
  pass(milliseconds(0));
  for (int i = 0; i < 3; ++i) pass(kInterval);
  const UsageSampler::Samples samples = sampler.ask();
  EXPECT_EQ(count_of(samples.before), 3);
  EXPECT_EQ(count_of(samples.now), 4);
  EXPECT_EQ(samples.now->at - samples.before->at, kInterval);
}

TEST_F(UsageSamplerTest, AskingOftenReadsNoMoreOften) {
  UsageSampler sampler = make();
  for (int i = 0; i < 100; ++i) static_cast<void>(sampler.ask());
  EXPECT_EQ(timers_.size(), 1U);
  pass(milliseconds(0));
  for (int i = 0; i < 100; ++i) static_cast<void>(sampler.ask());
  pass(kInterval - milliseconds(1));
  EXPECT_EQ(reads_, 1);
  pass(milliseconds(1));
  EXPECT_EQ(reads_, 2);
}

TEST_F(UsageSamplerTest, EndsWhenNobodyAsksAndBeginsAgain) {
  UsageSampler sampler = make();
  static_cast<void>(sampler.ask());
  pass(milliseconds(0));
  const auto most = UsageSampler::kWanted / kInterval;
  for (int i = 0; i < 2 * most; ++i) pass(kInterval);
  EXPECT_EQ(reads_, most);
  EXPECT_TRUE(timers_.empty());
  const UsageSampler::Samples old = sampler.ask();
  EXPECT_EQ(count_of(old.now), most) << "as old as it is";
  pass(milliseconds(0));
  EXPECT_EQ(count_of(sampler.ask().now), most + 1);
  EXPECT_EQ(sampler.ask().before, nullptr) << "a rate would be the mean of the pause";
  pass(kInterval);
  EXPECT_EQ(count_of(sampler.ask().before), most + 1);
}

TEST_F(UsageSamplerTest, NoRateIsMadeOverALongHang) {
  UsageSampler sampler = make();
  static_cast<void>(sampler.ask());
  pass(milliseconds(0));
  hangs_ = true;
  pass(kInterval);
  for (minutes hung{0}; hung < UsageSampler::kWanted; ++hung) {
    static_cast<void>(sampler.ask());
    pass(minutes(1));
  }
  hangs_ = false;
  finish_reads();
  EXPECT_EQ(count_of(sampler.ask().now), 2);
  EXPECT_EQ(sampler.ask().before, nullptr);
}

TEST_F(UsageSamplerTest, AReadThatHangsMakesTheSamplesOldAndNothingElse) {
  UsageSampler sampler = make();
  static_cast<void>(sampler.ask());
  pass(milliseconds(0));
  hangs_ = true;
  for (int i = 0; i < 50; ++i) {
    pass(kInterval);
    ASSERT_EQ(count_of(sampler.ask().now), 1);
  }
  EXPECT_EQ(begun_.size(), 1U) << "one read at a time";
  hangs_ = false;
  finish_reads();
  EXPECT_EQ(count_of(sampler.ask().now), 2);
  pass(kInterval);
  EXPECT_EQ(count_of(sampler.ask().now), 3);
}

TEST_F(UsageSamplerTest, WhatCannotBeReadYetIsNoSample) {
  UsageSampler sampler = make();
  nothing_yet_ = true;
  static_cast<void>(sampler.ask());
  pass(milliseconds(0));
  EXPECT_EQ(sampler.ask().now, nullptr);
  nothing_yet_ = false;
  pass(kInterval);
  EXPECT_NE(sampler.ask().now, nullptr);
}

TEST_F(UsageSamplerTest, WhatIsLeftOutlivesIt) {
  {
    UsageSampler sampler = make();
    static_cast<void>(sampler.ask());
    hangs_ = true;
    pass(milliseconds(0));
  }
  finish_reads();
  pass(kInterval);
  EXPECT_EQ(reads_, 1);
}

TEST(UsageSamplerThreads, AskFromManyThreadsWhileReadsRun) {
  fakes::FakeClock clock;
  std::vector<std::jthread> threads;
  Mutex mutex;
  std::deque<std::function<void()>> timers;
  UsageSampler sampler({[](const std::function<void()>& job) { job(); },
                        [] { return [](const model::MayRead&) { return model::UsageSample{}; }; }, [] { return true; },
                        [&](SteadyTime, std::function<void()> job) {
                          const MutexLock lock(mutex);
                          timers.push_back(std::move(job));
                        },
                        nullptr},
                       clock, milliseconds(1));
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 500; ++n) static_cast<void>(sampler.ask());
    });
  }
  for (int n = 0; n < 500; ++n) {
    std::function<void()> job;
    {
      const MutexLock lock(mutex);
      if (timers.empty()) continue;
      job = std::move(timers.front());
      timers.pop_front();
    }
    job();
  }
  threads.clear();
  const MutexLock lock(mutex);
  EXPECT_LE(timers.size(), 3U) << "for the next sample, the newest and the watch over it, whoever asks";
}

}  // namespace
}  // namespace neuron::monitor
