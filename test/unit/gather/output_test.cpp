#include "tools/neuron-gather/output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

#include "agent/host/root_source.h"
#include "test/unit/host/temp_tree.h"

namespace neuron::gather {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

Capture sample() {
  Capture capture;
  capture.add_file("sys/a/file", "text\n");
  capture.add_file("sys/a.b", std::string("\0\xff", 2));
  capture.add_folder("sys/class/empty");
  capture.add_link("sys/class/link", "sys/a", "../a");
  return capture;
}

// As the program does, with nobody who remembers.
Result<void> write(const Capture& capture, const std::string& path) {
  return write_output(capture, path, [](const Unfinished&) { return true; });
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
  ASSERT_TRUE(write(sample(), tree.at("directory")));
  expect_sample(tree.at("directory"));
  ASSERT_TRUE(write(sample(), tree.at("a.tar.gz")));
  const auto source = host::RootSource::open(tree.at("a.tar.gz"));
  ASSERT_TRUE(source) << source.error().message;
  expect_sample(source->directory());
}

TEST(OutputTest, NothingIsOverwritten) {
  host::TempTree tree;
  tree.write("a.tgz", "mine");
  const auto archive = write(sample(), tree.at("a.tgz"));
  ASSERT_FALSE(archive);
  EXPECT_EQ(archive.error().code, ErrorCode::failed_precondition);
  EXPECT_EQ(*tree.root().read_file("a.tgz", 10), "mine");
  tree.write("full/mine", "");
  const auto directory = write(sample(), tree.at("full"));
  ASSERT_FALSE(directory);
  EXPECT_THAT(directory.error().message, HasSubstr("is not empty"));
  tree.folder("empty");
  EXPECT_TRUE(write(sample(), tree.at("empty")));
  EXPECT_FALSE(write(sample(), tree.at("a.tgz/below")));
  EXPECT_EQ(write(sample(), tree.at("none/x.tar.gz")).error().code, ErrorCode::not_found);
}

// What is new has its name only when it is whole; somebody is told beforehand what to remove otherwise.
TEST(OutputTest, WrittenUnderAnotherNameFirst) {
  host::TempTree tree;
  std::vector<Unfinished> told;
  const auto begin = [&](const Unfinished& unfinished) {
    told.push_back(unfinished);
    EXPECT_EQ(::access(unfinished.path.c_str(), F_OK) == 0, unfinished.keeps_folder);
    return true;
  };
  tree.folder("empty");
  for (const char* name : {"a.tgz", "new/", "empty"}) EXPECT_TRUE(write_output(sample(), tree.at(name), begin)) << name;
  ASSERT_EQ(told.size(), 3U);
  EXPECT_EQ(told[0].path, tree.at("a.tgz.partial"));
  EXPECT_EQ(told[1].path, tree.at("new.partial"));
  EXPECT_EQ(told[2].path, tree.at("empty"));
  EXPECT_THAT(*tree.root().list(""), UnorderedElementsAre("a.tgz", "new", "empty"));
  EXPECT_FALSE(write_output(sample(), tree.at("b.tgz"), [](const Unfinished&) { return false; }));
  EXPECT_NE(::access(tree.at("b.tgz").c_str(), F_OK), 0);
  tree.write("c.tgz.partial", "of another run");
  EXPECT_THAT(write(sample(), tree.at("c.tgz")).error().message, HasSubstr("c.tgz.partial: exists already"));
  EXPECT_EQ(*tree.root().read_file("c.tgz.partial", 20), "of another run");
}

// A name that no file system takes: what came before it goes again.
TEST(OutputTest, AFailureLeavesNothing) {
  host::TempTree tree;
  Capture impossible = sample();
  impossible.add_file("sys/" + std::string(300, 'x'), "longer than a name may be");
  tree.folder("empty");
  for (const char* name : {"new", "empty"}) {
    const auto written = write(impossible, tree.at(name));
    ASSERT_FALSE(written);
    EXPECT_THAT(written.error().message, HasSubstr("choose another place"));
  }
  EXPECT_THAT(*tree.root().list(""), ElementsAre("empty"));
  EXPECT_THAT(*tree.root().list("empty"), IsEmpty());
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
