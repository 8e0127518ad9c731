#include "plugin/kubelet/socket_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

namespace neuron::plugin {
namespace {

using testing::HasSubstr;

struct Lock : testing::Test {
  std::string path = testing::TempDir() + "instancelockXXXXXX";
  void SetUp() override { ASSERT_NE(mkdtemp(path.data()), nullptr); }
  void TearDown() override { std::filesystem::remove_all(path); }
};

TEST_F(Lock, ASecondOneIsToldWhoHoldsItUntilHeEnds) {
  std::optional<Result<InstanceLock>> first(InstanceLock::take(path));
  ASSERT_TRUE(first->has_value());
  const auto second = InstanceLock::take(path);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::unavailable);
  EXPECT_THAT(second.error().message, HasSubstr("another neuron-agent (pid " + std::to_string(::getpid()) + ")"));
  EXPECT_FALSE(InstanceLock::is_free(path));
  first.reset();
  EXPECT_TRUE(InstanceLock::is_free(path));
  EXPECT_TRUE(InstanceLock::take(path)) << "having looked is not having taken";
}

TEST_F(Lock, NothingInTheDirectoryIsNeededOrLeftThere) {
  const auto lock = InstanceLock::take(path);
  ASSERT_TRUE(lock);
  EXPECT_TRUE(std::filesystem::is_empty(path));
}

TEST_F(Lock, ADirectoryOfTheSameNameHasItsOwn) {
  const auto before = InstanceLock::take(path);
  ASSERT_TRUE(before);
  std::filesystem::remove(path);
  EXPECT_EQ(InstanceLock::take(path).error().code, ErrorCode::not_found);
  std::filesystem::create_directory(path);
  EXPECT_TRUE(InstanceLock::take(path));
}

TEST_F(Lock, InstancesOfADriverShareItAndTheOtherModeIsToldAboutThem) {
  using Mode = InstanceLock::Mode;
  std::optional<Result<InstanceLock>> one(InstanceLock::take(path, Mode::claims));
  std::optional<Result<InstanceLock>> two(InstanceLock::take(path, Mode::claims));
  ASSERT_TRUE(one->has_value() && two->has_value());
  const auto plugin = InstanceLock::take(path);
  ASSERT_FALSE(plugin);
  EXPECT_EQ(plugin.error().code, ErrorCode::failed_precondition);
  EXPECT_THAT(plugin.error().message, HasSubstr("in DRA mode"));
  one.reset();
  EXPECT_FALSE(InstanceLock::take(path)) << "the other instance goes on";
  two.reset();
  EXPECT_TRUE(InstanceLock::take(path));
}

TEST_F(Lock, ADriverIsToldOfTheDevicePlugin) {
  const auto plugin = InstanceLock::take(path);
  ASSERT_TRUE(plugin);
  const auto driver = InstanceLock::take(path, InstanceLock::Mode::claims);
  ASSERT_FALSE(driver);
  EXPECT_THAT(driver.error().message, HasSubstr("in device-plugin mode (pid " + std::to_string(::getpid()) + ")"));
}

TEST_F(Lock, WhoHoldsItCanBeAskedWithoutTakingIt) {
  using Mode = InstanceLock::Mode;
  EXPECT_FALSE(lock_holder(path));
  EXPECT_FALSE(lock_holder(path + "/nowhere"));
  for (const Mode mode : {Mode::device_plugin, Mode::claims}) {
    const auto lock = InstanceLock::take(path, mode);
    const auto holder = lock_holder(path);
    ASSERT_TRUE(lock && holder);
    EXPECT_EQ(holder->mode, mode);
    EXPECT_EQ(holder->pid, std::to_string(::getpid()));
  }
  EXPECT_FALSE(lock_holder(path));
}

TEST_F(Lock, KnowsItsDirectory) {
  const auto lock = InstanceLock::take(path, InstanceLock::Mode::claims);
  ASSERT_TRUE(lock);
  EXPECT_TRUE(lock->is_of(path));
  std::filesystem::rename(path, path + "-moved");
  std::filesystem::create_symlink(path, path);
  EXPECT_TRUE(lock->is_of(path)) << "ELOOP is no evidence that it is another one";
  std::filesystem::remove(path);
  std::filesystem::rename(path + "-moved", path);
  std::filesystem::remove(path);
  EXPECT_FALSE(lock->is_of(path));
  std::filesystem::create_directory(path);
}

}  // namespace
}  // namespace neuron::plugin
