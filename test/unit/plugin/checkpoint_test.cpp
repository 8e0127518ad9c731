#include "plugin/checkpoint.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

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

TEST(Checkpoint, TheMarkChangesWithEveryRename) {
  std::string directory = testing::TempDir() + "checkpointXXXXXX";
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  const std::string path = directory + "/kubelet_internal_checkpoint";
  EXPECT_EQ(checkpoint_mark(path), 0U);
  EXPECT_EQ(read_checkpoint(path).error().code, ErrorCode::not_found);
  const auto write = [&] {
    std::ofstream(directory + "/new") << kSample;
    ASSERT_EQ(std::rename((directory + "/new").c_str(), path.c_str()), 0);
  };
  write();
  const auto first = checkpoint_mark(path);
  EXPECT_NE(first, 0U);
  EXPECT_EQ(checkpoint_mark(path), first);
  write();
  EXPECT_NE(checkpoint_mark(path), first);
  EXPECT_EQ(read_checkpoint(path)->holdings.size(), 1U);
  EXPECT_EQ(read_checkpoint(path)->mark, checkpoint_mark(path));
}

}  // namespace
}  // namespace neuron::plugin
