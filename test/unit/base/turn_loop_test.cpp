#include "agent/base/turn_loop.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

namespace neuron {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kDeadline{20};

TEST(TurnLoop, ATurnFollowsWhenItIsDue) {
  TurnLoop loop;
  std::stop_source stop;
  const auto start = std::chrono::steady_clock::now();
  int turns = 0;
  loop.run(stop.get_token(), [&] {
    if (++turns == 3) stop.request_stop();
    return milliseconds(5);
  });
  EXPECT_EQ(turns, 3);
  EXPECT_GE(std::chrono::steady_clock::now() - start, milliseconds(10)) << "not before";
}

TEST(TurnLoop, AWakeupEndsTheWait) {
  TurnLoop loop;
  std::promise<void> first, second;
  int turns = 0;
  std::jthread thread([&](const std::stop_token& stop) {
    loop.run(stop, [&] {
      (++turns == 1 ? first : second).set_value();
      return milliseconds(hours(1));
    });
  });
  ASSERT_EQ(first.get_future().wait_for(kDeadline), std::future_status::ready);
  loop.wake();
  EXPECT_EQ(second.get_future().wait_for(kDeadline), std::future_status::ready);
  thread = {};  // a stop does, too
  EXPECT_EQ(turns, 2);
}

// As when the change came after the turn had read the state.
TEST(TurnLoop, AWakeupDuringATurnIsFollowedByAnother) {
  TurnLoop loop;
  std::stop_source stop;
  int turns = 0;
  loop.run(stop.get_token(), [&] {
    if (++turns == 2) stop.request_stop();
    loop.wake();
    return milliseconds(hours(1));
  });
  EXPECT_EQ(turns, 2);
}

TEST(TurnLoop, AStopDuringATurnIsFollowedByNone) {
  TurnLoop loop;
  std::stop_source stop;
  int turns = 0;
  const auto turn = [&] {
    ++turns;
    stop.request_stop();
    return milliseconds(hours(1));
  };
  loop.run(stop.get_token(), turn);
  EXPECT_EQ(turns, 1);
  loop.run(stop.get_token(), turn);
  EXPECT_EQ(turns, 1) << "stopped before it began";
}

}  // namespace
}  // namespace neuron
