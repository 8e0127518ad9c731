#include "plugin/kubelet/kubelet_directory.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace neuron::plugin {
namespace {

using Kind = SocketWatch::Event::Kind;

struct Directory : testing::Test {
  std::string path = testing::TempDir() + "socketwatchXXXXXX";
  void SetUp() override { ASSERT_NE(mkdtemp(path.data()), nullptr); }
  void TearDown() override { std::filesystem::remove_all(path); }
};

TEST_F(Directory, FilesThatComeByRenameAndGoAreTold) {
  auto watch = SocketWatch::open(path);
  ASSERT_TRUE(watch);
  std::ofstream(path + "/.tmp") << "x";
  std::filesystem::rename(path + "/.tmp", path + "/kubelet_internal_checkpoint");
  std::filesystem::remove(path + "/kubelet_internal_checkpoint");
  std::vector<std::string> told;
  for (const auto& event : watch->read_events())
    told.push_back((event.kind == Kind::appeared ? "+" : "-") + event.name);
  EXPECT_THAT(told,
              testing::ElementsAre("+.tmp", "-.tmp", "+kubelet_internal_checkpoint", "-kubelet_internal_checkpoint"));
}

TEST_F(Directory, WithoutInotifyItIsComparedWithWhatItWas) {
  std::ofstream(path + "/there") << "x";
  auto watch = SocketWatch::open(path, SocketWatch::Means::polling);
  ASSERT_TRUE(watch);
  EXPECT_EQ(watch->fd(), -1);
  EXPECT_THAT(watch->polling_because(), testing::HasSubstr("inotify"));
  std::ofstream(path + "/new") << "x";
  std::ofstream(path + "/.tmp") << "x";
  std::filesystem::rename(path + "/.tmp", path + "/there");
  const auto names = [&watch] {
    std::vector<std::string> told;
    for (const auto& event : watch->read_events()) {
      told.push_back((event.kind == Kind::appeared ? "+" : "-") + event.name);
    }
    return told;
  };
  EXPECT_THAT(names(), testing::UnorderedElementsAre("+new", "+there"));
  EXPECT_GE(watch->fd(), 0) << "inotify is granted now, and nothing was missed in between";
  EXPECT_EQ(watch->polling_because(), "");
  std::filesystem::remove(path + "/new");
  EXPECT_THAT(names(), testing::ElementsAre("-new"));
}

// As the agent's own lock does with the kubelet's directory.
TEST_F(Directory, OneThatWasRemovedWhileOpenIsToldFromItsSuccessor) {
  const Fd held(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  auto watch = SocketWatch::open(path);
  ASSERT_TRUE(watch);
  EXPECT_EQ(watch->state(), SocketWatch::State::stands);
  std::filesystem::remove_all(path);
  EXPECT_EQ(watch->state(), SocketWatch::State::gone);
  std::filesystem::create_directory(path);
  EXPECT_EQ(watch->state(), SocketWatch::State::replaced);
}

// A path that still leads to the removed directory, as a bind mount does.
TEST_F(Directory, OneThatWasRemovedBehindItsPathIsDead) {
  const Fd held(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  auto watch = SocketWatch::open("/proc/self/fd/" + std::to_string(held.get()) + "/");
  ASSERT_TRUE(watch);
  EXPECT_EQ(watch->state(), SocketWatch::State::stands);
  std::filesystem::remove_all(path);
  EXPECT_EQ(watch->state(), SocketWatch::State::dead);
  EXPECT_EQ(SocketWatch::open("/proc/self/fd/" + std::to_string(held.get()) + "/")->state(), SocketWatch::State::dead);
}

// ELOOP stands for every error that is no evidence of absence.
TEST_F(Directory, OnlyNoSuchFileMeansThatItIsGone) {
  const std::string link = path + "-link";
  const auto lead_to = [&](const std::string& target) {
    std::filesystem::remove(link);
    std::filesystem::create_symlink(target, link);
  };
  lead_to(path);
  auto watch = SocketWatch::open(link + "/");
  auto polling = SocketWatch::open(link + "/", SocketWatch::Means::polling);
  ASSERT_TRUE(watch && polling);
  std::ofstream(path + "/there") << "x";
  lead_to(link);
  EXPECT_EQ(watch->state(), SocketWatch::State::unread);
  EXPECT_TRUE(watch->may_stand());
  EXPECT_THAT(polling->read_events(), testing::IsEmpty());
  lead_to(path);
  EXPECT_EQ(watch->state(), SocketWatch::State::stands);
  ASSERT_EQ(polling->read_events().size(), 1U) << "seen once it can be read";
  lead_to(path + "/none");
  EXPECT_EQ(watch->state(), SocketWatch::State::gone);
  EXPECT_FALSE(watch->may_stand());
  std::filesystem::remove(link);
}

TEST_F(Directory, NoDirectoryIsAnError) {
  EXPECT_EQ(SocketWatch::open(path + "/none").error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace neuron::plugin
