#include "plugin/socket_watch.h"

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

// As the agent's own lock file does in the kubelet's directory.
TEST_F(Directory, OneThatWasRemovedUnderAnOpenFileNoLongerStands) {
  std::ofstream held(path + "/lock");
  auto watch = SocketWatch::open(path);
  ASSERT_TRUE(watch);
  EXPECT_TRUE(watch->stands());
  std::filesystem::remove_all(path);
  EXPECT_FALSE(watch->stands());
  std::filesystem::create_directory(path);
  EXPECT_FALSE(watch->stands()) << "another directory of the same name";
}

TEST_F(Directory, NoDirectoryIsAnError) {
  EXPECT_EQ(SocketWatch::open(path + "/none").error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace neuron::plugin
