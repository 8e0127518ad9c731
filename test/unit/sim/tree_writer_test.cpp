#include "tools/neuron-sim/trees.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include "test/unit/sim/files.h"

namespace neuron::sim {
namespace {

namespace fs = std::filesystem;
using testing::is_there;
using testing::mode_of;
using testing::text_of;

class TreeWriterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "tree-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    dir_ = pattern;
  }
  void TearDown() override { fs::remove_all(dir_); }
  [[nodiscard]] std::string at(const std::string& path) const { return dir_ + "/" + path; }

  std::string dir_;
};

TEST(RelativeLink, ClimbsToTheSharedFolder) {
  EXPECT_EQ(relative_link("a/b/link", "a/c/d"), "../c/d");
  EXPECT_EQ(relative_link("a/link", "a/d"), "d");
  EXPECT_EQ(relative_link("sys/class/x/n0", "sys/devices/virtual/n0"), "../../devices/virtual/n0");
  EXPECT_EQ(relative_link("a/ab", "a/abc/d"), "abc/d");
}

TEST_F(TreeWriterTest, WritesTextModeAndLink) {
  auto tree = *TreeWriter::open(dir_);
  tree.file("a/b/secret", "2", 0400);
  tree.link("c/link", "a/b");
  ASSERT_TRUE(tree.finish());
  EXPECT_EQ(text_of(at("c/link/secret")), "2");
  EXPECT_EQ(mode_of(at("a/b/secret")), 0400U);
  EXPECT_TRUE(fs::read_symlink(at("c/link")).is_relative());
}

TEST_F(TreeWriterTest, TheFirstFailureIsToldAndEndsTheWork) {
  auto tree = *TreeWriter::open(dir_);
  tree.file("a", "");
  tree.file("a/b", "");  // a file where a folder must be
  tree.file("later", "");
  const auto done = tree.finish();
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message.find("a/b"), std::string::npos) << done.error().message;
  EXPECT_FALSE(is_there(at("later")));
}

TEST_F(TreeWriterTest, WhatWasThereBeforeIsReplacedOrRemoved) {
  fs::create_directories(at("x/folder/below"));
  std::ofstream(at("x/folder/below/file")) << "old";
  std::ofstream(at("x/longer")) << "a longer text than the new one";
  std::ofstream(at("x/stale")) << "old";
  std::ofstream(at("x/file-not-folder")) << "old";
  auto tree = *TreeWriter::open(dir_);
  tree.file("x/folder", "now a file");
  tree.file("x/longer", "short");
  tree.file("x/file-not-folder/inner", "now a folder");
  ASSERT_TRUE(tree.finish());
  EXPECT_EQ(text_of(at("x/folder")), "now a file");
  EXPECT_EQ(text_of(at("x/longer")), "short");
  EXPECT_EQ(text_of(at("x/file-not-folder/inner")), "now a folder");
  EXPECT_FALSE(is_there(at("x/stale")));
}

TEST_F(TreeWriterTest, LinksInTheOldTreeAreNeverFollowed) {
  const std::string outside = dir_ + "-outside";
  fs::create_directories(outside);
  std::ofstream(outside + "/precious") << "keep";
  fs::create_symlink(outside, at("sys"));
  fs::create_symlink(outside, at("stale"));
  fs::create_symlink(outside + "/precious", at("note"));
  auto tree = *TreeWriter::open(dir_);
  tree.file("sys/precious", "new");
  tree.file("note", "new");
  ASSERT_TRUE(tree.finish());
  EXPECT_EQ(text_of(outside + "/precious"), "keep");
  EXPECT_EQ(text_of(at("sys/precious")), "new");
  EXPECT_EQ(text_of(at("note")), "new");
  EXPECT_FALSE(is_there(at("stale")));
  fs::remove_all(outside);
}

}  // namespace
}  // namespace neuron::sim
