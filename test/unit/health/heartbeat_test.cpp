#include "agent/health/assess.h"

#include <gtest/gtest.h>

#include <functional>

#include "test/unit/core/make_host.h"

namespace neuron::test {
namespace {

using model::Health;
using model::HealthState;
using model::HostScan;
using std::chrono::seconds;

// A node of four devices that is looked at every five seconds.
class HeartbeatTest : public ::testing::Test {
 protected:
  // `beats`: whether device N's heartbeat goes on before the next look.
  void look(int times, const std::function<bool(int)>& beats) {
    for (int i = 0; i < times; ++i) {
      HostScan scan = scan_;
      for (std::size_t n = 0; n < scan.devices.size(); ++n) {
        if (beats(static_cast<int>(n))) values_[n] = (values_[n] + 1) % 256;
        scan.devices[n].signals.heartbeat = values_[n];
      }
      now_ += step_;
      verdicts_ = health::evaluate(scan, memory_, now_).devices;
    }
  }
  [[nodiscard]] std::string reason(std::size_t device) const { return verdicts_.at(device).reason; }
  [[nodiscard]] HealthState state(std::size_t device) const { return verdicts_.at(device).state; }

  static bool all(int) { return true; }
  static bool none(int) { return false; }
  static bool but_first(int device) { return device != 0; }

  HostScan scan_ = [] {
    HostScan scan = scan_of("trn2.48xlarge");
    scan.devices.resize(4);
    return scan;
  }();
  health::HealthMemory memory_;
  std::vector<std::uint64_t> values_ = {250, 17, 0, 255};
  std::vector<Health> verdicts_;
  SteadyTime now_{};
  seconds step_{5};
};

TEST_F(HeartbeatTest, OneThatStandsStillAmongOthersIsUnhealthyUntilItMoves) {
  look(30, all);
  EXPECT_EQ(state(0), HealthState::healthy);
  look(10, but_first);
  EXPECT_EQ(state(0), HealthState::healthy) << "not for long enough";
  look(3, but_first);
  EXPECT_EQ(reason(0), "heartbeat_stuck");
  EXPECT_EQ(state(0), HealthState::unhealthy);
  EXPECT_EQ(state(1), HealthState::healthy);
  const Health first = verdicts_[0];
  look(200, but_first);
  EXPECT_EQ(verdicts_[0], first) << "the same words as long as it lasts";
  look(1, all);
  EXPECT_EQ(state(0), HealthState::healthy);
  look(13, but_first);
  EXPECT_EQ(reason(0), "heartbeat_stuck") << "how long it stood is not how long a beat takes";
}

TEST_F(HeartbeatTest, StuckBeforeTheFirstLookIsFoundByTheOthers) {
  look(20, but_first);
  EXPECT_EQ(state(0), HealthState::unhealthy);
  EXPECT_EQ(state(1), HealthState::healthy);
}

TEST_F(HeartbeatTest, WhenAllStandStillNoneIsWithdrawn) {
  look(10, all);
  look(20, none);
  for (std::size_t device = 0; device < 4; ++device) {
    EXPECT_EQ(reason(device), "heartbeat_stuck");
    EXPECT_EQ(state(device), HealthState::degraded);
  }
  look(1, all);
  EXPECT_EQ(state(0), HealthState::healthy);
}

// Their beats have other phases, and a scan may read between two of them: the last ones must not look as if they went
// on.
TEST_F(HeartbeatTest, WhenAllStandStillTheirLastBeatsMayBeSomeLooksApart) {
  look(30, [beat = 0](int device) mutable { return beat++ / 4 % 3 == device % 3; });
  look(2, [](int device) { return device >= 2; });
  for (int i = 0; i < 30; ++i) {
    look(1, none);
    for (std::size_t device = 0; device < 4; ++device) EXPECT_NE(state(device), HealthState::unhealthy) << i;
  }
  for (std::size_t device = 0; device < 4; ++device) EXPECT_EQ(reason(device), "heartbeat_stuck");
}

TEST_F(HeartbeatTest, ACapturedMachineNeverBeatAndIsNotJudged) {
  look(1000, none);
  for (std::size_t device = 0; device < 4; ++device) EXPECT_EQ(state(device), HealthState::healthy);
}

// The driver's health thread never ran, or the firmware feeds no heartbeat: the parameter may not be readable.
TEST_F(HeartbeatTest, ZeroOnAllThatNeverMovesIsNotMeasured) {
  values_ = {0, 0, 0, 0};
  look(10, none);
  EXPECT_EQ(state(0), HealthState::healthy) << "not for long enough";
  look(10, none);
  for (std::size_t device = 0; device < 4; ++device) EXPECT_EQ(reason(device), "health_not_measured") << device;
  EXPECT_EQ(state(0), HealthState::unknown);
  EXPECT_EQ(verdicts_[0], verdicts_[3]);
  look(1, all);
  EXPECT_EQ(state(0), HealthState::healthy);
}

TEST_F(HeartbeatTest, TenScansAreNeededHoweverLongTheyTake) {
  look(5, all);
  step_ = seconds(600);  // the program slept, or a scan hung
  look(9, but_first);
  EXPECT_EQ(state(0), HealthState::healthy);
  step_ = seconds(5);
  look(50, but_first);
  EXPECT_EQ(state(0), HealthState::unhealthy);
}

TEST_F(HeartbeatTest, ASlowBeatIsNoStuckOne) {
  int looks = 0;
  const auto slowly = [&](int device) { return (looks + 3 * device) % 20 == 0; };  // every 100 seconds
  for (int i = 0; i < 200; ++i) {
    look(1, slowly);
    ++looks;
    if (i < 20) continue;  // until one beat was seen from end to end
    for (std::size_t device = 0; device < 4; ++device) EXPECT_EQ(reason(device), "") << i;
  }
}

TEST_F(HeartbeatTest, ADeviceInResetNeedsNoHeartbeat) {
  look(10, all);
  scan_.devices[0].signals.reset_state = 0;
  look(30, but_first);
  EXPECT_EQ(reason(0), "resetting");
  scan_.devices[0].signals.reset_state = 1;
  look(5, but_first);
  EXPECT_EQ(state(0), HealthState::healthy) << "counted from the end of the reset";
}

}  // namespace
}  // namespace neuron::test
