#include "plugin/daemon/node_daemon.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>

namespace neuron::plugin {
namespace {

constexpr std::chrono::seconds kLong{60};

void hang_at_the_end() {
  const EndDeadline ending(ExitCode::dead_mount, std::chrono::milliseconds(20));
  std::promise<void> never;
  never.get_future().wait_for(kLong);
}

TEST(EndDeadlineDeathTest, AnEndThatHangsIsCutShort) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(hang_at_the_end(), testing::ExitedWithCode(static_cast<int>(ExitCode::dead_mount)), "");
}

TEST(EndDeadline, AnEndInTimeIsNotWaitedFor) {
  const auto begin = std::chrono::steady_clock::now();
  { const EndDeadline ending(ExitCode::failed, kLong); }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kLong / 2);
}

}  // namespace
}  // namespace neuron::plugin
