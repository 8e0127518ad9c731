#include "agent/base/workers.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <thread>

namespace neuron {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

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
    std::vector<std::promise<void>> ran(4);
    for (auto& one : ran) workers.run([&one] { one.set_value(); });
    for (auto& one : ran) EXPECT_EQ(one.get_future().wait_for(seconds(10)), std::future_status::ready);
    const auto until = std::chrono::steady_clock::now() + seconds(10);
    while (workers.threads() > 0 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    EXPECT_EQ(workers.threads(), 0U);
  }
  EXPECT_TRUE(workers.stop(seconds(10)));
}

// As scans that follow each other, after claims of many pods at once.
TEST(Workers, FrequentJobsKeepNoMoreThreadsThanTheyNeed) {
  constexpr int kMany = 32;
  Workers workers(milliseconds(400));
  std::promise<void> release;
  const auto released = release.get_future().share();
  for (int i = 0; i < kMany; ++i) workers.run([released] { released.wait(); });
  EXPECT_EQ(workers.threads(), std::size_t{kMany});
  release.set_value();
  const auto until = std::chrono::steady_clock::now() + seconds(5);
  while (workers.threads() > 3 && std::chrono::steady_clock::now() < until) {
    std::promise<void> ran;
    workers.run([&ran] { ran.set_value(); });
    ran.get_future().wait();
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_LE(workers.threads(), 3U);
  EXPECT_TRUE(workers.stop(seconds(10)));
}

}  // namespace
}  // namespace neuron
