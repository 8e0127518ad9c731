#include "plugin/device/admission_gate.h"

#include <gtest/gtest.h>

namespace neuron::plugin {
namespace {

using std::chrono::milliseconds;

class IdleTimerTest : public ::testing::Test {
 protected:
  [[nodiscard]] static SteadyTime at(int ms) { return SteadyTime{} + milliseconds{ms}; }

  IdleTimer timer_{milliseconds{100}, milliseconds{3000}, milliseconds{6000}};
};

TEST_F(IdleTimerTest, ComesOnceNobodyHasCalledForTheIdleTime) {
  timer_.want(at(1000));
  EXPECT_FALSE(timer_.due(at(1000), at(950), false));
  EXPECT_EQ(timer_.next(), at(1050));
  EXPECT_TRUE(timer_.due(at(1050), at(950), false));
  EXPECT_FALSE(timer_.due(at(2000), at(950), false));
}

TEST_F(IdleTimerTest, ComesAfterTheLongestWaitOnANodeThatIsNeverIdle) {
  timer_.want(at(1000));
  EXPECT_FALSE(timer_.due(at(3999), at(3998), false));
  EXPECT_FALSE(timer_.overdue(at(3999)));
  EXPECT_TRUE(timer_.overdue(at(4000)));
  EXPECT_TRUE(timer_.due(at(4000), at(3999), false));
  EXPECT_FALSE(timer_.overdue(at(4000)));
}

TEST_F(IdleTimerTest, WaitsLongerDuringAnAdmission) {
  timer_.want(at(1000));
  EXPECT_FALSE(timer_.due(at(6999), at(6998), true));
  EXPECT_EQ(timer_.next(), at(7000));
  EXPECT_TRUE(timer_.due(at(7000), at(6999), true));
}

// The kubelet's Allocate may be waiting in the socket of a process that was stopped: its timer must not be first.
TEST_F(IdleTimerTest, IsNotDueOnWakingUp) {
  timer_.want(at(1000));
  timer_.woke(at(6000));
  EXPECT_FALSE(timer_.due(at(6000), at(500), false));
  EXPECT_FALSE(timer_.due(at(6100), at(6003), false)) << "a call that was read meanwhile";
  EXPECT_TRUE(timer_.due(at(6103), at(6003), false));
}

TEST_F(IdleTimerTest, TheLongestWaitLeavesTimeForWhatHasPiledUp) {
  timer_.want(at(1000));
  timer_.woke(at(6000));
  EXPECT_FALSE(timer_.due(at(6499), at(6498), false));
  EXPECT_TRUE(timer_.due(at(6500), at(6499), false));
}

TEST_F(IdleTimerTest, StarvationDoesNotPutItOffForEver) {
  timer_.want(at(1000));
  int now = 4000;
  while (!timer_.due(at(now), at(now - 1), false)) {
    now += 150;
    timer_.woke(at(now));
    ASSERT_LT(now, 8000);
  }
  timer_.want(at(9500));
  timer_.woke(at(20000));
  EXPECT_FALSE(timer_.due(at(20000), at(9000), false)) << "wanted anew";
}

TEST_F(IdleTimerTest, WakingUpWantsNothing) {
  timer_.woke(at(6000));
  EXPECT_FALSE(timer_.due(at(60000), at(0), false));
  EXPECT_FALSE(timer_.next());
}

}  // namespace
}  // namespace neuron::plugin
