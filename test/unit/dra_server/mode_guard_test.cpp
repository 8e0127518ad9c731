#include "plugin/dra/serve/driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "test/fakes/fake_clock.h"

namespace neuron::plugin::dra {
namespace {

struct ModeGuardTest : testing::Test {
  std::string path = testing::TempDir() + "modeguardXXXXXX";
  fakes::FakeClock clock;
  Workers workers;
  BoundedCalls calls{workers};
  void SetUp() override { ASSERT_NE(::mkdtemp(path.data()), nullptr); }
  void TearDown() override { std::filesystem::remove_all(path); }
};

TEST_F(ModeGuardTest, KeepsADevicePluginOffAndLetsAnotherInstanceIn) {
  ModeGuard one(path, clock, calls);
  ModeGuard two(path, clock, calls);
  EXPECT_FALSE(one.check());
  EXPECT_FALSE(two.check());
  EXPECT_FALSE(InstanceLock::take(path));
}

TEST_F(ModeGuardTest, SaysWhoIsThereEachTimeItIsAsked) {
  auto plugin = InstanceLock::take(path);
  ASSERT_TRUE(plugin);
  ModeGuard guard(path, clock, calls);
  ASSERT_TRUE(guard.check());
  EXPECT_THAT(guard.check()->message, testing::HasSubstr("in device-plugin mode"));
}

TEST_F(ModeGuardTest, ADirectoryThatComesLaterOrIsReplacedIsLockedThen) {
  std::filesystem::remove(path);
  ModeGuard guard(path, clock, calls);
  EXPECT_FALSE(guard.check()) << "without it there is no device plugin";
  for (int round = 0; round < 2; ++round) {
    std::filesystem::remove(path);
    std::filesystem::create_directory(path);
    clock.advance(std::chrono::ceil<std::chrono::milliseconds>(guard.next() - clock.now()));
    EXPECT_FALSE(guard.check());
    EXPECT_FALSE(InstanceLock::take(path));
  }
}

}  // namespace
}  // namespace neuron::plugin::dra
