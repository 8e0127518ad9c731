#include "plugin/kubelet/checkpoint.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "test/fakes/sanitized.h"

namespace neuron::plugin {
namespace {

constexpr const char* kSample = R"({"Data":{"PodDeviceEntries":[
  {"PodUID":"u1","ContainerName":"main","ResourceName":"aws.amazon.com/neuron","DeviceIDs":{"0":["3","1"],"1":["3"]},"AllocResp":"eA=="},
  {"PodUID":"u2","ContainerName":"c","ResourceName":"nvidia.com/gpu","DeviceIDs":{"-1":["x"]},"AllocResp":""},
  {"PodUID":"u3","ContainerName":"c","ResourceName":"aws.amazon.com/neuroncore","DeviceIDs":null}],
  "RegisteredDevices":{"aws.amazon.com/neuron":["0"]}},"Checksum":1})";

TEST(Checkpoint, ShowsOurResourcesOnceEach) {
  const auto holdings = parse_checkpoint(kSample);
  ASSERT_TRUE(holdings);
  ASSERT_EQ(holdings->size(), 1U);
  EXPECT_EQ(holdings->front().holder, "pod u1/main");
  EXPECT_EQ(holdings->front().ids, (std::vector<std::string>{"1", "3"}));
}

TEST(Checkpoint, NobodyHoldingAnythingIsNoError) {
  EXPECT_TRUE(parse_checkpoint(R"({"Data":{"PodDeviceEntries":null,"RegisteredDevices":{}},"Checksum":0})")->empty());
}

TEST(Checkpoint, TornOrForeignTextIsAnError) {
  const std::string sample = kSample;
  for (const std::string& bad : {std::string(), std::string("{"), std::string("[]"), std::string("{\"Data\":1}"),
                                 sample.substr(0, sample.size() / 2), std::string(100000, '[')}) {
    const auto holdings = parse_checkpoint(bad);
    ASSERT_FALSE(holdings);
    EXPECT_EQ(holdings.error().code, ErrorCode::data_corrupt);
  }
  EXPECT_TRUE(parse_checkpoint(R"({"Data":{"PodDeviceEntries":[1,"a",{"PodUID":3,"DeviceIDs":[[]]}]}})")->empty());
}

std::string entry(const std::string& ids, const std::string& answer) {
  return R"({"PodUID":"u","ContainerName":"c","ResourceName":"aws.amazon.com/neuron","DeviceIDs":{"0":[)" + ids +
         R"(]},"AllocResp":")" + answer + R"("})";
}

std::string checkpoint_of(const std::string& entries) {
  return R"({"Data":{"RegisteredDevices":{"Data":["1"]},"PodDeviceEntries":[)" + entries + "]}}";
}

TEST(Checkpoint, TheOrderOfKeysAndWhatIsInsideOthersDoNotMatter) {
  const auto holdings = parse_checkpoint(
      R"({"Checksum":1,"PodDeviceEntries":[{"ResourceName":"aws.amazon.com/neuron","DeviceIDs":{"0":["7"]}}],"Data":{
        "RegisteredDevices":{"PodDeviceEntries":[{"DeviceIDs":{"0":["8"]}}]},"PodDeviceEntries":[
        {"DeviceIDs":{"0":["1",["9"],{"DeviceIDs":{"0":["9"]}}],"1":[2,"3"]},"AllocResp":{"PodUID":"no"},
         "ResourceName":"aws.amazon.com/neuron","ContainerName":"c","PodUID":"u"},
        [{"ResourceName":"aws.amazon.com/neuron","DeviceIDs":{"0":["9"]}}]]}})");
  ASSERT_TRUE(holdings);
  ASSERT_EQ(holdings->size(), 1U);
  EXPECT_EQ(holdings->front().holder, "pod u/c");
  EXPECT_EQ(holdings->front().ids, (std::vector<std::string>{"1", "3"}));
}

// A line of /proc/self/status, in bytes.
std::size_t status_bytes(const std::string& name) {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;) {
    std::size_t kibibytes = 0;
    if (word == name + ":" && file >> kibibytes) return kibibytes * 1024;
  }
  return 0;
}

TEST(Checkpoint, WhatNobodyNeedsIsNotKeptWhileALargeOneIsRead) {
  if (fakes::kSanitized) GTEST_SKIP() << "most of the memory is the sanitizer's";
  std::string entries = entry("\"1\"", std::string(1000, 'A'));
  for (int i = 0; i < 20000; ++i) entries += "," + entry("\"2\"", std::string(i % 1000, 'A'));
  const std::string text = checkpoint_of(entries);
  if (!(std::ofstream("/proc/self/clear_refs") << "5" << std::flush)) GTEST_SKIP() << "the peak cannot be reset";
  const std::size_t before = status_bytes("VmRSS");
  ASSERT_GT(before, 0U);
  EXPECT_EQ(parse_checkpoint(text)->size(), 20001U);
  const std::size_t peak = status_bytes("VmHWM");
  EXPECT_LT(peak - std::min(before, peak), text.size()) << "of " << text.size();
}

TEST(Checkpoint, AnAbsurdNumberOfDevicesIsAnError) {
  std::string ids;
  for (int i = 0; i < 20000; ++i) ids += (i > 0 ? ",\"" : "\"") + std::to_string(i) + "\"";
  std::string entries = entry(ids, "");
  EXPECT_TRUE(parse_checkpoint(checkpoint_of(entries)));
  for (int i = 0; i < 4; ++i) entries += "," + entry(ids, "");
  const auto holdings = parse_checkpoint(checkpoint_of(entries));
  ASSERT_FALSE(holdings);
  EXPECT_EQ(holdings.error().code, ErrorCode::data_corrupt);
}

TEST(Checkpoint, TheVersionChangesWithEveryRename) {
  std::string directory = testing::TempDir() + "checkpointXXXXXX";
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  const std::string path = directory + "/kubelet_internal_checkpoint";
  EXPECT_EQ(checkpoint_version(path), 0U);
  EXPECT_EQ(read_checkpoint(path).error().code, ErrorCode::not_found);
  const auto write = [&] {
    std::ofstream(directory + "/new") << kSample;
    ASSERT_EQ(std::rename((directory + "/new").c_str(), path.c_str()), 0);
  };
  write();
  const auto first = checkpoint_version(path);
  EXPECT_NE(first, 0U);
  EXPECT_EQ(checkpoint_version(path), first);
  write();
  EXPECT_NE(checkpoint_version(path), first);
  EXPECT_EQ(read_checkpoint(path)->holdings.size(), 1U);
  EXPECT_EQ(read_checkpoint(path)->version, checkpoint_version(path));
}

}  // namespace
}  // namespace neuron::plugin
