#include "plugin/kubelet/kubelet_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "test/fakes/fake_clock.h"

namespace neuron::plugin {
namespace {

using std::chrono::milliseconds;
using testing::Contains;
using testing::Field;

struct KubeletDirectoryTest : testing::Test {
  std::string above = testing::TempDir() + "kubeletXXXXXX";
  std::string path;
  fakes::FakeClock clock;
  Workers workers;
  BoundedCalls calls{workers};
  std::optional<KubeletDirectory> directory;

  void SetUp() override {
    ASSERT_NE(::mkdtemp(above.data()), nullptr);
    path = above + "/device-plugins";
    directory.emplace(path, clock, calls);
  }
  void TearDown() override {
    std::error_code error;
    std::filesystem::remove_all(above, error);
  }
  void make() const { ASSERT_TRUE(std::filesystem::create_directory(path)); }
  void put(const std::string& name) const {  // as the kubelet does: by rename
    std::ofstream(path + "/.new") << "x";
    ASSERT_EQ(std::rename((path + "/.new").c_str(), (path + "/" + name).c_str()), 0);
  }
  auto look_after(int ms) {
    clock.advance(milliseconds{ms});
    return directory->read_changes();
  }
};

TEST_F(KubeletDirectoryTest, IsWaitedForAndUsableOnce) {
  EXPECT_FALSE(directory->read_changes().usable);
  EXPECT_EQ(directory->fd(), -1);
  EXPECT_EQ(directory->next(), clock.now() + milliseconds{250});
  make();
  EXPECT_FALSE(look_after(249).usable);
  EXPECT_TRUE(look_after(1).usable);
  EXPECT_GE(directory->fd(), 0);
  EXPECT_FALSE(directory->read_changes().usable);
}

TEST_F(KubeletDirectoryTest, TellsWritesSocketsAndTheKubelet) {
  make();
  ASSERT_TRUE(directory->read_changes().usable);
  put("kubelet_internal_checkpoint");
  put("kubelet_internal_checkpoint");
  put("other.sock");
  put("kubelet.sock");
  const auto changes = directory->read_changes();
  EXPECT_EQ(changes.checkpoints_written, 2);
  EXPECT_TRUE(changes.kubelet_appeared);
  EXPECT_THAT(changes.sockets, Contains(Field(&SocketWatch::Event::name, "other.sock")));
  EXPECT_EQ(directory->read_changes().checkpoints_written, 0);
}

TEST_F(KubeletDirectoryTest, ASecondAgentEnds) {
  make();
  ASSERT_TRUE(directory->read_changes().usable);
  KubeletDirectory second(path, clock, calls);
  const auto changes = second.read_changes();
  EXPECT_FALSE(changes.usable);
  EXPECT_EQ(changes.end, LoopEnd::other_agent);
}

TEST_F(KubeletDirectoryTest, ItsAgentIsWaitedForAndTakenOverFrom) {
  make();
  ASSERT_TRUE(directory->read_changes().usable);
  KubeletDirectory next(path, clock, calls, KubeletDirectory::WhenServed::wait);
  for (int ms = 0; ms <= 40; ms += 20) {
    const auto changes = next.read_changes();
    EXPECT_FALSE(changes.usable || changes.end);
    EXPECT_EQ(next.waited(), milliseconds{ms});
    EXPECT_EQ(next.next(), clock.now() + milliseconds{20});
    clock.advance(milliseconds{20});
  }
  directory.reset();
  EXPECT_TRUE(next.read_changes().usable);
  EXPECT_EQ(next.waited(), std::nullopt);
}

TEST_F(KubeletDirectoryTest, WhatHasServedOrFindsTheOtherModeDoesNotWait) {
  make();
  directory.emplace(path, clock, calls, KubeletDirectory::WhenServed::wait);
  ASSERT_TRUE(directory->read_changes().usable);
  std::filesystem::remove_all(path);
  make();
  std::optional<Result<InstanceLock>> other(InstanceLock::take(path));
  ASSERT_TRUE(other->has_value());
  auto changes = directory->read_changes();
  for (int i = 0; i < 3 && !changes.end; ++i) changes = look_after(2000);
  EXPECT_EQ(changes.end, LoopEnd::other_agent);
  other.reset();
  other.emplace(InstanceLock::take(path, InstanceLock::Mode::claims));
  ASSERT_TRUE(other->has_value());
  KubeletDirectory next(path, clock, calls, KubeletDirectory::WhenServed::wait);
  EXPECT_EQ(next.read_changes().end, LoopEnd::other_agent);
}

TEST_F(KubeletDirectoryTest, OneThatGoesWhileItsAgentIsWaitedForIsWaitedForItself) {
  make();
  ASSERT_TRUE(directory->read_changes().usable);
  KubeletDirectory next(path, clock, calls, KubeletDirectory::WhenServed::wait);
  static_cast<void>(next.read_changes());
  ASSERT_TRUE(next.waited());
  std::filesystem::remove_all(path);
  clock.advance(milliseconds{20});
  EXPECT_FALSE(next.read_changes().end);
  EXPECT_FALSE(next.waited());
  make();
  clock.advance(milliseconds{250});
  EXPECT_TRUE(next.read_changes().usable);
}

TEST_F(KubeletDirectoryTest, OneThatIsReplacedIsUsableAnew) {
  make();
  ASSERT_TRUE(directory->read_changes().usable);
  std::filesystem::remove_all(path);
  make();
  bool usable = directory->read_changes().usable;
  for (int i = 0; i < 3 && !usable; ++i) usable = look_after(2000).usable;
  EXPECT_TRUE(usable);
  put("kubelet_internal_checkpoint");
  EXPECT_EQ(directory->read_changes().checkpoints_written, 1);
}

TEST_F(KubeletDirectoryTest, OneThatCannotBeReadIsNotGone) {
  make();
  const std::string link = above + "/link";
  std::filesystem::create_symlink(path, link);
  KubeletDirectory linked(link + "/", clock, calls);
  ASSERT_TRUE(linked.read_changes().usable);
  const int watched = linked.fd();
  std::filesystem::remove(link);
  std::filesystem::create_symlink(link, link);  // ELOOP
  for (int i = 0; i < 3; ++i) {
    clock.advance(milliseconds{2000});
    EXPECT_FALSE(linked.read_changes().usable);
    EXPECT_EQ(linked.fd(), watched) << "it is watched and locked on";
  }
  std::filesystem::remove(link);
  clock.advance(milliseconds{2000});
  static_cast<void>(linked.read_changes());
  EXPECT_EQ(linked.fd(), -1) << "now it is gone";
}

TEST_F(KubeletDirectoryTest, OneThatWasRenamedBehindAMountEnds) {
  make();
  ASSERT_TRUE(directory->read_changes().usable);
  std::filesystem::rename(path, above + "/elsewhere");
  std::filesystem::create_directory_symlink(above + "/elsewhere", path);  // stands where a mount would go on showing it
  EXPECT_EQ(directory->read_changes().end, LoopEnd::dead_mount);
}

}  // namespace
}  // namespace neuron::plugin
