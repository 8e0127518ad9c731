#include "plugin/kubelet/instance_lock.h"

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
  EXPECT_EQ(second.error().code, ErrorCode::failed_precondition);
  EXPECT_THAT(second.error().message, HasSubstr("another neuron-agent (pid " + std::to_string(::getpid()) + ")"));
  first.reset();
  EXPECT_TRUE(InstanceLock::take(path));
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

}  // namespace
}  // namespace neuron::plugin
