#include "tools/neuron-gather/output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/host/root_source.h"
#include "test/unit/host/temp_tree.h"

namespace neuron::gather {
namespace {

// Read by libarchive, which shares no code with the writer.
std::string read_back(const Capture& capture, const std::string& path) {
  host::TempTree tree;
  tree.write("a.tar", tar_text(capture, "top"));
  const auto source = host::RootSource::open(tree.at("a.tar"));
  if (!source) return source.error().message;
  return host::FsRoot::open(source->directory())->read_file(path, 1 << 20).value_or("(not there)");
}

TEST(TarTextTest, NamesOfEveryLength) {
  for (std::size_t length = 60; length < 400; length += 7) {
    Capture capture;
    std::string path = "sys";
    while (path.size() + 20 < length) path += "/component-of-19-ch";
    path += '/' + std::string(length - path.size() - 1, 'x');
    capture.add_file(path, "found");
    EXPECT_EQ(read_back(capture, path), "found") << path.size();
  }
  Capture capture;
  const std::string one_part = "sys/" + std::string(200, 'y') + "/f";
  capture.add_file(one_part, "found");
  EXPECT_EQ(read_back(capture, one_part), "found");
}

TEST(TarTextTest, LongLinks) {
  Capture capture;
  const std::string target = "sys/" + std::string(120, 'z') + "/file";
  capture.add_file(target, "found");
  capture.add_link("sys/a/b/c/link", target, "");
  EXPECT_EQ(read_back(capture, "sys/a/b/c/link"), "found");
}

TEST(TarTextTest, ContentsOfEverySize) {
  for (const std::size_t size : {0U, 1U, 511U, 512U, 513U, 70'000U}) {
    Capture capture;
    capture.add_file("sys/file", std::string(size, 'x'));
    capture.add_file("sys/next", "end");
    EXPECT_EQ(read_back(capture, "sys/file"), std::string(size, 'x'));
    EXPECT_EQ(read_back(capture, "sys/next"), "end");
  }
}

TEST(TarTextTest, TheSameCaptureGivesTheSameBytes) {
  Capture forward;
  forward.add_file("sys/a", "1");
  forward.add_file("sys/b", "2");
  Capture backward;
  backward.add_file("sys/b", "2");
  backward.add_file("sys/a", "1");
  EXPECT_EQ(tar_text(forward, "top"), tar_text(backward, "top"));
  EXPECT_EQ(*gzip_text(tar_text(forward, "top")), *gzip_text(tar_text(backward, "top")));
  EXPECT_EQ(gzip_text("x")->substr(4, 4), std::string(4, '\0'));  // no time stamp
}

TEST(CaptureTest, LinksOfAllDirections) {
  EXPECT_EQ(relative_link("a/b/link", "a/c/d"), "../c/d");
  EXPECT_EQ(relative_link("link", "a"), "a");
  EXPECT_EQ(relative_link("a/b/link", "a"), "..");
  EXPECT_EQ(relative_link("a/b/link", "a/b"), ".");
  EXPECT_EQ(relative_link("a/b/link", ""), "../..");
  EXPECT_EQ(relative_link("a/bc/link", "a/b/x"), "../b/x");
}

TEST(CaptureTest, IsBounded) {
  Capture capture;
  for (int i = 0; i < 3; ++i) capture.add_file("sys/" + std::to_string(i), std::string(80U << 20U, 'x'));
  EXPECT_TRUE(capture.full());
  EXPECT_EQ(capture.file_count(), 2U);
}

}  // namespace
}  // namespace neuron::gather
