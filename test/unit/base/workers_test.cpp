#include "agent/base/workers.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <future>
#include <latch>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace neuron {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Counts the threads that end after a job of theirs has called enter(). Must outlive them.
class EndedThreads {
 public:
  void enter() {
    struct AtEnd {
      EndedThreads* counted = nullptr;
      ~AtEnd() {
        const std::lock_guard lock(counted->mutex_);
        ++counted->ended_;
        counted->changed_.notify_all();
      }
    };
    thread_local AtEnd at_end;
    at_end.counted = this;
  }
  [[nodiscard]] bool wait(int ended, std::chrono::milliseconds timeout) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, timeout, [&] { return ended_ >= ended; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int ended_ = 0;
};

TEST(Workers, AJobThatHangsHoldsUpNoOther) {
  std::promise<void> release;
  std::promise<void> ran;
  Workers workers;
  workers.run([waits = release.get_future().share()] { waits.wait(); });
  workers.run([&] { ran.set_value(); });
  EXPECT_EQ(ran.get_future().wait_for(seconds(10)), std::future_status::ready);
  release.set_value();
  EXPECT_TRUE(workers.stop(seconds(10)));
}

TEST(Workers, RunsOneJobAfterAnotherUntilTheEnd) {
  Workers workers;
  std::thread::id last;
  for (int i = 0; i < 3; ++i) {
    std::promise<std::thread::id> ran;
    workers.run([&] { ran.set_value(std::this_thread::get_id()); });
    last = ran.get_future().get();
  }
  EXPECT_NE(last, std::this_thread::get_id());
  EXPECT_TRUE(workers.stop(seconds(10)));
  workers.run([] { ADD_FAILURE() << "after the end"; });
}

TEST(Workers, StopLeavesBehindWhatHangs) {
  auto release = std::make_shared<std::promise<void>>();
  auto left = std::make_shared<std::promise<void>>();
  std::promise<void> entered;
  {
    Workers workers;
    workers.run([&entered, release, left] {
      entered.set_value();
      release->get_future().wait();
      left->set_value();
    });
    entered.get_future().wait();
    EXPECT_FALSE(workers.stop(milliseconds(20)));
  }
  release->set_value();
  EXPECT_EQ(left->get_future().wait_for(seconds(10)), std::future_status::ready);
}

TEST(Workers, ThreadsWithoutWorkEndAndNewOnesTakeTheirPlace) {
  Workers workers(milliseconds(1));
  for (int round = 0; round < 3; ++round) {
    EndedThreads ended;
    std::latch all(4);  // on a thread each
    for (int i = 0; i < 4; ++i) {
      workers.run([&ended, &all] {
        ended.enter();
        all.arrive_and_wait();
      });
    }
    ASSERT_TRUE(ended.wait(4, seconds(10)));
    EXPECT_EQ(workers.threads(), 0U);
  }
  EXPECT_TRUE(workers.stop(seconds(10)));
}

// As scans that follow each other, after claims of many pods at once.
TEST(Workers, FrequentJobsKeepNoMoreThreadsThanTheyNeed) {
  constexpr int kMany = 32;
  EndedThreads ended;
  Workers workers(milliseconds(400));
  std::latch all(kMany + 1);
  for (int i = 0; i < kMany; ++i) {
    workers.run([&ended, &all] {
      ended.enter();
      all.arrive_and_wait();
    });
  }
  EXPECT_EQ(workers.threads(), std::size_t{kMany});
  all.arrive_and_wait();
  const auto until = std::chrono::steady_clock::now() + seconds(5);
  while (!ended.wait(kMany - 3, milliseconds(1)) && std::chrono::steady_clock::now() < until) {  // a job each 1 ms
    std::promise<void> ran;
    workers.run([&ran] { ran.set_value(); });
    ran.get_future().wait();
  }
  EXPECT_LE(workers.threads(), 3U);
  EXPECT_TRUE(workers.stop(seconds(10)));
}

}  // namespace
}  // namespace neuron
