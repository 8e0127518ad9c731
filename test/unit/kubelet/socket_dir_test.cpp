#include "tools/neuron-sim/kubelet/kubelet.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "test/unit/kubelet/test_plugin.h"

namespace neuron::sim {
namespace {

TEST(SocketDirTest, MakesDirectoriesAndSaysWhenAFileIsInTheWay) {
  const test::TempDir dir;
  EXPECT_TRUE(make_directory(dir.path() + "/a/b").has_value());
  EXPECT_TRUE(make_directory(dir.path() + "/a/b").has_value());
  std::ofstream(dir.path() + "/file") << "";
  EXPECT_FALSE(make_directory(dir.path() + "/file").has_value());
  EXPECT_FALSE(make_directory(dir.path() + "/file/below").has_value());
}

TEST(SocketDirTest, WipesSocketsAndNothingElse) {
  const test::TempDir dir;
  const auto socket = ClosingSocket::open(dir.path() + "/x.sock");
  ASSERT_TRUE(socket.has_value());
  std::filesystem::create_symlink("x.sock", dir.path() + "/link");
  std::ofstream(dir.path() + "/file") << "";
  EXPECT_TRUE(is_listening(dir.path() + "/x.sock"));
  ASSERT_TRUE(wipe_sockets(dir.path()).has_value());
  EXPECT_FALSE(std::filesystem::exists(dir.path() + "/x.sock"));
  EXPECT_TRUE(std::filesystem::exists(std::filesystem::symlink_status(dir.path() + "/link")));
  EXPECT_TRUE(std::filesystem::exists(dir.path() + "/file"));
  EXPECT_FALSE(wipe_sockets(dir.path() + "/none").has_value());
}

TEST(SocketDirTest, KnowsAStaleSocket) {
  const test::TempDir dir;
  EXPECT_FALSE(is_listening(dir.path() + "/none"));
  {
    const auto socket = ClosingSocket::open(dir.path() + "/x.sock");
    ASSERT_TRUE(socket.has_value());
    std::filesystem::create_hard_link(dir.path() + "/x.sock", dir.path() + "/stale.sock");
  }
  EXPECT_TRUE(std::filesystem::exists(dir.path() + "/stale.sock"));
  EXPECT_FALSE(is_listening(dir.path() + "/stale.sock"));
}

}  // namespace
}  // namespace neuron::sim
