#include "tools/neuron-sim/kubelet/allocation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "test/unit/kubelet/test_plugin.h"

namespace neuron::sim {
namespace {

using ::testing::IsEmpty;

Checkpoint sample() {
  Checkpoint checkpoint;
  checkpoint.entries.push_back({"uid-1", "main", "example.com/chip", {{-1, {"7"}}, {0, {"1", "2"}}}, "\x01\xff!"});
  checkpoint.registered["example.com/chip"] = {"1", "2", "7"};
  return checkpoint;
}

TEST(CheckpointTest, IsTheKubeletsJson) {
  EXPECT_EQ(
      encode_checkpoint(sample()),
      R"({"Data":{"PodDeviceEntries":[{"PodUID":"uid-1","ContainerName":"main","ResourceName":"example.com/chip",)"
      R"("DeviceIDs":{"-1":["7"],"0":["1","2"]},"AllocResp":"Af8h"}],)"
      R"("RegisteredDevices":{"example.com/chip":["1","2","7"]}},"Checksum":0})");
}

TEST(CheckpointTest, WithoutPodsTheEntriesAreNull) {
  EXPECT_EQ(encode_checkpoint({}), R"({"Data":{"PodDeviceEntries":null,"RegisteredDevices":{}},"Checksum":0})");
}

TEST(CheckpointTest, ComesBackAsItWas) {
  const auto back = decode_checkpoint(encode_checkpoint(sample()));
  ASSERT_TRUE(back.has_value()) << back.error().message;
  ASSERT_EQ(back->entries.size(), 1U);
  EXPECT_EQ(back->entries[0].pod_uid, "uid-1");
  EXPECT_EQ(back->entries[0].container, "main");
  EXPECT_EQ(back->entries[0].resource, "example.com/chip");
  EXPECT_EQ(back->entries[0].ids_by_numa, sample().entries[0].ids_by_numa);
  EXPECT_EQ(back->entries[0].response, "\x01\xff!");
  EXPECT_EQ(back->registered, sample().registered);
}

TEST(CheckpointTest, ReadsWhatGoWrites) {
  const auto read =
      decode_checkpoint(R"({"Data":{"PodDeviceEntries":null,"RegisteredDevices":{"a/b":null}},"Checksum":3254434555})");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_THAT(read->entries, IsEmpty());
  EXPECT_THAT(read->registered.at("a/b"), IsEmpty());
}

TEST(CheckpointTest, OtherTextIsCorrupt) {
  const std::string whole = encode_checkpoint(sample());
  for (const std::string& text :
       {std::string(), std::string("{}"), std::string("[1,2]"), whole.substr(0, whole.size() / 2),
        std::string(R"({"Data":{"PodDeviceEntries":[{}],"RegisteredDevices":{}}})"),
        std::string(R"({"Data":{"PodDeviceEntries":[{"PodUID":1}],"RegisteredDevices":{}}})"),
        std::string(R"({"Data":{"PodDeviceEntries":[{"PodUID":"u","ContainerName":"c","ResourceName":"r",)"
                    R"("DeviceIDs":{"x":[]},"AllocResp":""}],"RegisteredDevices":{}}})")}) {
    const auto read = decode_checkpoint(text);
    ASSERT_FALSE(read.has_value()) << text;
    EXPECT_EQ(read.error().code, ErrorCode::data_corrupt) << text;
  }
}

TEST(CheckpointTest, IsReplacedByRename) {
  const test::TempDir dir;
  const std::string path = dir.path() + "/kubelet_internal_checkpoint";
  ASSERT_TRUE(write_checkpoint(path, {}).has_value());
  struct stat first {};
  ASSERT_EQ(::stat(path.c_str(), &first), 0);
  const std::ifstream open_before(path);  // keeps the first inode alive
  ASSERT_TRUE(write_checkpoint(path, sample()).has_value());
  struct stat second {};
  ASSERT_EQ(::stat(path.c_str(), &second), 0);
  EXPECT_NE(first.st_ino, second.st_ino);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir.path()), std::filesystem::directory_iterator()), 1);
  EXPECT_EQ(read_checkpoint(path)->entries.size(), 1U);
}

TEST(CheckpointTest, FilesThatCannotBeReadOrWritten) {
  const test::TempDir dir;
  EXPECT_EQ(read_checkpoint(dir.path() + "/none").error().code, ErrorCode::not_found);
  EXPECT_FALSE(read_checkpoint(dir.path()).has_value());
  EXPECT_FALSE(write_checkpoint(dir.path() + "/none/file", {}).has_value());
}

}  // namespace
}  // namespace neuron::sim
