#include "agent/base/workers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>

namespace neuron {
namespace {

using std::chrono::milliseconds;
using testing::Optional;

constexpr std::chrono::seconds kLong{20};
constexpr milliseconds kShort{30};

struct BoundedCallsTest : testing::Test {
  Workers workers;
  std::atomic<int> hangs{0};
  std::promise<void> came_back;
  BoundedCalls calls{workers, {[this] { ++hangs; }, [this] { came_back.set_value(); }}};
  std::promise<void> gate;
  std::shared_future<void> opened = gate.get_future().share();
};

TEST_F(BoundedCallsTest, AnAnswerInTimeIsGiven) {
  EXPECT_THAT(calls.run([] { return std::string("answer"); }, kLong), Optional(std::string("answer")));
  const auto owned = calls.run([] { return std::make_unique<int>(7); }, kLong);
  ASSERT_TRUE(owned);
  EXPECT_EQ(**owned, 7);
  EXPECT_FALSE(calls.hangs());
  EXPECT_EQ(hangs, 0);
}

// Who waited for the call may end what it shares with it: the last owner must not be the worker.
TEST_F(BoundedCallsTest, WhatACallHoldsHasEndedWhenItsAnswerIsThere) {
  for (int i = 0; i < 5000; ++i) {
    auto held = std::make_shared<int>(i);
    const std::weak_ptr<int> seen = held;
    ASSERT_TRUE(calls.run([held = std::move(held)] { return *held; }, kLong));
    ASSERT_TRUE(seen.expired()) << i;
  }
}

TEST_F(BoundedCallsTest, WhileOneHangsNoOtherBegins) {
  EXPECT_FALSE(calls.run([gate = opened] { return gate.wait(), 1; }, kShort));
  EXPECT_TRUE(calls.hangs());
  std::atomic<bool> begun{false};
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(calls.run([&begun] { return begun = true; }, kLong));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kLong / 2) << "at once";
  EXPECT_EQ(hangs, 1) << "reported once";
  std::promise<void> left;
  calls.leave([&left] { left.set_value(); });
  EXPECT_EQ(left.get_future().wait_for(kLong), std::future_status::ready);
  gate.set_value();
  ASSERT_EQ(came_back.get_future().wait_for(kLong), std::future_status::ready);
  EXPECT_FALSE(begun);
  EXPECT_THAT(calls.run([] { return 2; }, kLong), Optional(2));
}

// A lock that a late answer has is free again before the next call asks for it.
TEST_F(BoundedCallsTest, ALateAnswerIsDroppedBeforeTheNextCall) {
  std::atomic<int> kept{0};
  const auto keep = [&kept, gate = opened] {
    gate.wait();
    ++kept;
    return std::shared_ptr<int>(new int(0), [&kept](const int* number) {
      delete number;
      --kept;
    });
  };
  EXPECT_FALSE(calls.run(keep, kShort));
  gate.set_value();
  ASSERT_EQ(came_back.get_future().wait_for(kLong), std::future_status::ready);
  EXPECT_EQ(kept, 0);
}

}  // namespace
}  // namespace neuron
