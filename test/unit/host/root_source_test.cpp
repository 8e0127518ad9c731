// Archives as roots. The archives are made byte by byte, since no tool would write most of them.

#include "agent/host/root_source.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <array>

#include "test/unit/host/temp_tree.h"
#include "tools/neuron-gather/output.h"

namespace neuron::host {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// One header and its content. Types: '0' file, '1' hard link, '2' link, '3' character device, '5' folder, '6' FIFO.
std::string entry(const std::string& name, char type = '0', const std::string& content = "",
                  const std::string& target = "", std::uint64_t claimed = 0) {
  std::string header(512, '\0');
  header.replace(0, std::min<std::size_t>(name.size(), 100), name.substr(0, 100));
  header.replace(100, 7, "0000777");
  header.replace(108, 7, "0001750");
  header.replace(116, 7, "0001750");
  std::array<char, 13> size{};
  std::snprintf(size.data(), size.size(), "%011lo",
                static_cast<unsigned long>(claimed != 0 ? claimed : content.size()));
  header.replace(124, 11, size.data(), 11);
  header.replace(136, 11, "00000000000");
  header.replace(148, 8, "        ");
  header[156] = type;
  header.replace(157, target.size(), target);
  header.replace(257, 8,
                 std::string("ustar\0"
                             "00",
                             8));
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "%06o", sum);
  header.replace(148, 7, text.data(), 7);
  std::string padded = content;
  padded.resize((content.size() + 511) / 512 * 512, '\0');
  return header + padded;
}

const std::string kEnd(1024, '\0');

class RootSourceTest : public ::testing::Test {
 protected:
  RootSourceTest() { ::setenv("TMPDIR", place_.path().c_str(), 1); }
  ~RootSourceTest() override { ::unsetenv("TMPDIR"); }

  Result<RootSource> open(const std::string& bytes, const ArchiveBounds& bounds = {}) {
    tree_.write("archive", bytes);
    return RootSource::open(tree_.at("archive"), bounds);
  }
  std::string text_at(const RootSource& source, const std::string& path) {
    const auto root = FsRoot::open(source.directory());
    return root ? root->read_file(path, 100).value_or("(not there)") : "(no root)";
  }
  // The archive is refused with these words, and nothing of it is left.
  void expect_refused(const std::string& bytes, const std::string& words, const ArchiveBounds& bounds = {}) {
    const auto source = open(bytes, bounds);
    ASSERT_FALSE(source) << words;
    EXPECT_EQ(source.error().code, ErrorCode::data_corrupt);
    EXPECT_THAT(source.error().message, ::testing::StartsWith(tree_.at("archive") + ": "));
    EXPECT_THAT(source.error().message, HasSubstr(words));
    EXPECT_THAT(left(), IsEmpty());
  }
  std::vector<std::string> left() { return *place_.root().list(""); }

  TempTree tree_;
  TempTree place_;
};

TEST_F(RootSourceTest, ADirectoryIsUsedAsItIs) {
  const auto source = RootSource::open(tree_.path());
  ASSERT_TRUE(source);
  EXPECT_EQ(source->directory(), tree_.path());
  EXPECT_EQ(RootSource::open(tree_.at("none")).error().code, ErrorCode::not_found);
  EXPECT_EQ(RootSource::open("").error().code, ErrorCode::not_found);
}

TEST_F(RootSourceTest, AnArchiveLivesAsLongAsItsObject) {
  std::string directory;
  {
    auto source = open(entry("sys/", '5') + entry("sys/a", '0', "text\n") + kEnd);
    ASSERT_TRUE(source) << source.error().message;
    RootSource moved = *std::move(source);
    directory = moved.directory();
    EXPECT_EQ(text_at(moved, "sys/a"), "text\n");
    struct stat info {};
    ASSERT_EQ(::stat(directory.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777U, 0700U);
    ASSERT_EQ(::stat((directory + "/sys/a").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777U, 0600U);
    EXPECT_EQ(info.st_uid, ::geteuid());
  }
  EXPECT_FALSE(std::filesystem::exists(directory));
  EXPECT_THAT(left(), IsEmpty());
}

TEST_F(RootSourceTest, MoveAssignmentRemovesWhatWasThere) {
  auto first = open(entry("sys/a", '0', "1") + kEnd);
  ASSERT_TRUE(first);
  auto second = open(entry("sys/a", '0', "2") + kEnd);
  ASSERT_TRUE(second);
  EXPECT_THAT(left(), SizeIs(2));
  *first = *std::move(second);
  EXPECT_THAT(left(), SizeIs(1));
  EXPECT_EQ(text_at(*first, "sys/a"), "2");
}

TEST_F(RootSourceTest, GzipIsToldByContent) {
  const auto gzip = gather::gzip_text(entry("proc/x", '0', "1") + kEnd);
  const auto source = open(*gzip);
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_EQ(text_at(*source, "proc/x"), "1");
}

TEST_F(RootSourceTest, OneFolderOfItsOwnNameIsTheRoot) {
  const auto source =
      open(entry("./", '5') + entry("./node-7/sys/a", '0', "1") + entry("./node-7/link", '2', "", "/sys/a") + kEnd);
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_THAT(source->directory(), ::testing::EndsWith("/node-7"));
  EXPECT_EQ(text_at(*source, "sys/a"), "1");
  EXPECT_EQ(text_at(*source, "link"), "1");
  const auto part = open(entry("sys/a", '0', "1") + kEnd);
  ASSERT_TRUE(part);
  EXPECT_EQ(text_at(*part, "sys/a"), "1");
}

TEST_F(RootSourceTest, LinksKeepTheirMeaning) {
  const auto source =
      open(entry("sys/class/x", '2', "", "../devices/x") + entry("sys/absolute", '2', "", "/sys/devices/x") +
           entry("sys/nowhere", '2', "", "gone") + entry("sys/devices/x/a", '0', "1") + entry("proc/cpuinfo") + kEnd);
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_EQ(text_at(*source, "sys/class/x/a"), "1");
  EXPECT_EQ(text_at(*source, "sys/absolute/a"), "1");
  const auto root = *FsRoot::open(source->directory());
  EXPECT_EQ(*root.read_link("sys/class/x"), "../devices/x");
  EXPECT_EQ(*root.read_link("sys/absolute"), "../sys/devices/x");
  EXPECT_EQ(*root.read_link("sys/nowhere"), "gone");
}

TEST_F(RootSourceTest, DevicesBecomeEmptyFilesAndPipesAreLeftOut) {
  const auto source = open(entry("dev/neuron0", '3') + entry("dev/disk", '4') + entry("dev/pipe", '6') +
                           entry("sys/a") + entry("sys/b", '1', "", "sys/a") + kEnd);
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_EQ(text_at(*source, "dev/neuron0"), "");
  EXPECT_EQ(text_at(*source, "dev/disk"), "");
  EXPECT_EQ(text_at(*source, "dev/pipe"), "(not there)");
  EXPECT_EQ(text_at(*source, "sys/b"), "");
  struct stat info {};
  ASSERT_EQ(::lstat((source->directory() + "/dev/neuron0").c_str(), &info), 0);
  EXPECT_TRUE(S_ISREG(info.st_mode));
}

TEST_F(RootSourceTest, WhatIsNoArchiveIsRefused) {
  expect_refused("", "neither a directory nor a tar");
  expect_refused("hello\n", "neither a directory nor a tar");
  expect_refused(std::string(100'000, 'x'), "neither a directory nor a tar");
  expect_refused(std::string(10'240, '\0'), "");
  tree_.fifo("pipe");
  EXPECT_THAT(RootSource::open(tree_.at("pipe")).error().message, HasSubstr("neither a directory nor a tar"));
  EXPECT_THAT(RootSource::open("/dev/null").error().message, HasSubstr("neither a directory nor a tar"));
}

TEST_F(RootSourceTest, PathsThatLeaveAreRefused) {
  expect_refused(entry("/etc/x", '0', "1") + kEnd, "entry \"/etc/x\" has an absolute path");
  expect_refused(entry("sys/../../x", '0', "1") + kEnd, "entry \"sys/../../x\" leads out of the archive");
  expect_refused(entry("..", '5') + kEnd, "leads out of the archive");
  expect_refused(entry(".", '0', "1") + kEnd, "would replace the root");
}

TEST_F(RootSourceTest, LinksThatLeaveAreRefused) {
  const std::string out = "entry \"sys/x\" is a link that leads out of the archive";
  expect_refused(entry("sys/x", '2', "", "../../etc/passwd") + entry("proc/y") + kEnd, out);
  expect_refused(entry("sys/x", '2', "", "../..") + entry("proc/y") + kEnd, out);
  // Out by way of another link.
  expect_refused(entry("a/b/up", '2', "", "../..") + entry("sys/x", '2', "", "../a/b/up/../..") + kEnd, out);
  // A hard link is looked for inside only.
  expect_refused(entry("sys/x", '1', "", "/etc/passwd") + kEnd, "absolute path");
  expect_refused(entry("sys/x", '1', "", "../etc/passwd") + kEnd, "leads out");
  expect_refused(entry("sys/x", '1', "", "etc/passwd") + kEnd, "repeats a file that is not there");
}

TEST_F(RootSourceTest, NothingIsWrittenThroughALink) {
  TempTree outside{TempTree::Place::memory};
  expect_refused(entry("sys/x", '2', "", outside.path()) + entry("sys/x/file", '0', "1") + kEnd, "is both a link and");
  expect_refused(entry("sys/x", '2', "", outside.path()) + entry("sys/x/y", '2', "", "z") + kEnd, "lies below a link");
  expect_refused(entry("sys/x", '2', "", "y") + entry("sys/x", '2', "", "z") + kEnd, "is there twice");
  EXPECT_THAT(*outside.root().list(""), IsEmpty());
}

TEST_F(RootSourceTest, TheSameNameTwiceIsRefused) {
  expect_refused(entry("sys/a", '0', "1") + entry("./sys//a", '0', "2") + kEnd, "entry \"sys/a\" is there twice");
  expect_refused(entry("sys/a", '0', "1") + entry("sys/a/b", '0', "2") + kEnd, "is both a file and a folder");
  expect_refused(entry("sys/a", '5') + entry("sys/a", '0', "2") + kEnd, "is there twice");
  expect_refused(entry("sys/a") + entry("sys/b") + entry("sys/b", '1', "", "sys/a") + kEnd, "is there twice");
}

TEST_F(RootSourceTest, TruncatedArchivesAreRefused) {
  const std::string whole = entry("sys/a", '0', std::string(5000, 'x')) + entry("sys/b") + kEnd;
  expect_refused(whole.substr(0, 2000), "is damaged: Truncated");
  expect_refused(whole.substr(0, 6000), "the archive is damaged: Truncated");
  const auto gzip = *gather::gzip_text(whole);
  expect_refused(gzip.substr(0, gzip.size() / 2), "runcated");
  expect_refused(gzip.substr(0, 12), "");
}

TEST_F(RootSourceTest, BoundsHold) {
  const ArchiveBounds bounds{
      .entries = 5, .total_bytes = 1U << 20U, .file_bytes = 600'000, .path_bytes = 20, .depth = 4};
  expect_refused(entry("a", '0', "", "", std::uint64_t{1} << 32U) + kEnd, "is larger than 16777216 bytes");
  expect_refused(entry("a", '0', std::string(600'001, 'x')) + kEnd, "is larger than 600000 bytes", bounds);
  const std::string half(600'000, 'x');
  expect_refused(entry("a", '0', half) + entry("b", '0', half) + kEnd, "holds more than 1 MiB", bounds);
  std::string many;
  for (int i = 0; i < 6; ++i) many += entry("sys/" + std::to_string(i));
  expect_refused(many + kEnd, "holds more than 5 entries", bounds);
  expect_refused(entry("123456789/123456789/12") + kEnd, "has too long a path", bounds);
  expect_refused(entry("a/b/c/d/e") + kEnd, "lies in too many folders", bounds);
  expect_refused(entry("sys/" + std::string(60, 'y') + "/" + std::string(300, 'x')) + entry("z") + std::string(10, 'z'),
                 "");
}

// 200 MiB of zeros in 200 KiB, and a million entries, stop at the bound and do not fill the disk.
TEST_F(RootSourceTest, BombsStopAtTheBound) {
  std::string bomb;
  const std::string zeros = entry("x", '0', std::string(4U << 20U, '\0')).substr(512);
  for (int i = 0; i < 12; ++i) bomb += entry("f" + std::to_string(i), '0', "", "", 4U << 20U) + zeros;
  ArchiveBounds bounds;
  bounds.total_bytes = 8U << 20U;
  expect_refused(*gather::gzip_text(bomb + kEnd), "holds more than 8 MiB", bounds);
  bomb.clear();
  for (int i = 0; i < 20'000; ++i) bomb += entry("./", '5');
  bounds.entries = 10'000;
  expect_refused(*gather::gzip_text(bomb + kEnd), "holds more than 10000 entries", bounds);
}

// Headers that say something of the next one may follow each other; libarchive takes a stack frame for each.
TEST_F(RootSourceTest, ALongChainOfExtraHeadersIsRefused) {
  std::string chain;
  for (int i = 0; i < 200'000; ++i) chain += entry("g", 'g', "12 a=bcdefg\n");
  const auto source = open(*gather::gzip_text(chain + entry("sys/a") + kEnd));
  EXPECT_FALSE(source);
}

TEST_F(RootSourceTest, WhatAKilledProcessLeftIsRemoved) {
  place_.write("neuron-root-orphan/sys/a", "1");
  place_.write("neuron-root-in-use/sys/a", "1");
  place_.write("other/sys/a", "1");
  place_.link("neuron-root-link", "other");
  const Fd owner(::open(place_.at("neuron-root-in-use").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(::flock(owner.get(), LOCK_EX), 0);
  const auto source = open(entry("sys/a") + kEnd);
  ASSERT_TRUE(source);
  const auto names = left();
  EXPECT_THAT(names, ::testing::Not(::testing::Contains("neuron-root-orphan")));
  EXPECT_THAT(names, ::testing::IsSupersetOf({"neuron-root-in-use", "other", "neuron-root-link"}));
  EXPECT_TRUE(place_.root().exists("other/sys/a"));
}

TEST_F(RootSourceTest, NoPlaceToUnpackIsAnError) {
  ::setenv("TMPDIR", place_.at("none").c_str(), 1);
  const auto source = open(entry("sys/a") + kEnd);
  ASSERT_FALSE(source);
  EXPECT_EQ(source.error().code, ErrorCode::internal);
  EXPECT_THAT(source.error().message, HasSubstr("set TMPDIR"));
}

}  // namespace
}  // namespace neuron::host
