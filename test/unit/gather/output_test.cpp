#include "tools/neuron-gather/output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/host/root_source.h"
#include "test/unit/host/temp_tree.h"

namespace neuron::gather {
namespace {

using ::testing::HasSubstr;

Capture sample() {
  Capture capture;
  capture.add_file("sys/a/file", "text\n");
  capture.add_file("sys/a.b", std::string("\0\xff", 2));
  capture.add_folder("sys/class/empty");
  capture.add_link("sys/class/link", "sys/a", "../a");
  return capture;
}

void expect_sample(const std::string& directory) {
  const auto root = host::FsRoot::open(directory);
  ASSERT_TRUE(root);
  EXPECT_EQ(root->read_file("sys/class/link/file", 100).value_or("none"), "text\n");
  EXPECT_EQ(root->read_file("sys/a.b", 100).value_or("none"), std::string("\0\xff", 2));
  EXPECT_EQ(root->read_link("sys/class/link").value_or("none"), "../a");
  EXPECT_TRUE(root->list("sys/class/empty"));
}

TEST(OutputTest, DirectoryAndArchiveHoldTheSame) {
  host::TempTree tree;
  ASSERT_TRUE(write_output(sample(), tree.at("directory")));
  expect_sample(tree.at("directory"));
  ASSERT_TRUE(write_output(sample(), tree.at("a.tar.gz")));
  const auto source = host::RootSource::open(tree.at("a.tar.gz"));
  ASSERT_TRUE(source) << source.error().message;
  expect_sample(source->directory());
}

TEST(OutputTest, NothingIsOverwritten) {
  host::TempTree tree;
  tree.write("a.tgz", "mine");
  const auto archive = write_output(sample(), tree.at("a.tgz"));
  ASSERT_FALSE(archive);
  EXPECT_EQ(archive.error().code, ErrorCode::failed_precondition);
  EXPECT_EQ(*tree.root().read_file("a.tgz", 10), "mine");
  tree.write("full/mine", "");
  const auto directory = write_output(sample(), tree.at("full"));
  ASSERT_FALSE(directory);
  EXPECT_THAT(directory.error().message, HasSubstr("is not empty"));
  tree.folder("empty");
  EXPECT_TRUE(write_output(sample(), tree.at("empty")));
  EXPECT_FALSE(write_output(sample(), tree.at("a.tgz/below")));
  EXPECT_EQ(write_output(sample(), tree.at("none/x.tar.gz")).error().code, ErrorCode::not_found);
}

TEST(OutputTest, NamesOfArchives) {
  EXPECT_TRUE(names_archive("x.tar.gz"));
  EXPECT_TRUE(names_archive("dir/x.tgz"));
  EXPECT_TRUE(names_archive("-"));
  EXPECT_FALSE(names_archive("node"));
  EXPECT_FALSE(names_archive("x.tar"));
}

}  // namespace
}  // namespace neuron::gather
