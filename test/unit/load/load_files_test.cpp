#include "tools/neuron-sim/load_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "test/fakes/fake_host.h"

namespace neuron::sim {
namespace {

using ::testing::Optional;

class LoadFilesTest : public ::testing::Test {
 protected:
  LoadFilesTest() { host_.write(); }
  [[nodiscard]] std::string text(const std::string& path) const {
    std::ifstream file(host_.path() + "/" + path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  [[nodiscard]] LoadFiles open() const { return *LoadFiles::open(host_.path()); }

  const std::string power_ = "sys/devices/virtual/neuron_device/neuron0/stats/power/utilization";
  const std::string busy_ =
      "sys/devices/virtual/neuron_device/neuron0/neuron_core0/stats/other_info/nc_time_in_use/total";
  fakes::FakeHost host_{"inf2.xlarge"};
};

TEST_F(LoadFilesTest, OnlyOnASimulatedHost) {
  const auto refused = LoadFiles::open("/tmp");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::failed_precondition);
}

TEST_F(LoadFilesTest, CountersGrowFromWhereTheyStand) {
  auto files = open();
  files.add(busy_, 5);
  files.add(busy_, 7);
  EXPECT_EQ(text(busy_), "12\n");
  files.set(busy_, 3);
  EXPECT_EQ(text(busy_), "3\n");
  EXPECT_TRUE(files.state());
}

TEST_F(LoadFilesTest, ModeStays) {
  auto files = open();
  files.replace(power_, "x\n");
  struct stat info {};
  ASSERT_EQ(::stat((host_.path() + "/" + power_).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0644U);
}

// A reader that has the old file open goes on seeing the old text, whole.
TEST_F(LoadFilesTest, AReaderNeverSeesHalfAText) {
  auto files = open();
  files.replace(power_, "the old text\n");
  std::ifstream reader(host_.path() + "/" + power_);
  files.replace(power_, "new\n");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(reader), {}), "the old text\n");
}

TEST_F(LoadFilesTest, WhatSetPutThereStays) {
  auto files = open();
  for (const char* fault : {"fifo", "garbage", "huge", "empty", "unreadable"}) {
    host_.set("neuron0/core0", fault, "nc_time_in_use");
    const auto before = std::filesystem::symlink_status(host_.path() + "/" + busy_).type();
    const auto size = before == std::filesystem::file_type::regular ? text(busy_).size() : 0;
    files.add(busy_, 5);
    files.set(busy_, 5);
    EXPECT_EQ(std::filesystem::symlink_status(host_.path() + "/" + busy_).type(), before) << fault;
    if (before == std::filesystem::file_type::regular) {
      EXPECT_EQ(text(busy_).size(), size) << fault;
    }
    host_.set("neuron0", "heal");
  }
  host_.set("neuron0/core0", "remove", "nc_time_in_use");
  files.add(busy_, 5);
  files.replace(busy_, "5\n");
  EXPECT_FALSE(std::filesystem::exists(host_.path() + "/" + busy_));
  host_.set("neuron0", "vanish");
  files.add(busy_, 5);
  EXPECT_TRUE(files.state());
}

TEST_F(LoadFilesTest, FailureIsRememberedAndEndsTheWriting) {
  auto files = open();
  files.create("no/such/folder/file", "x");  // its folder is gone: nothing to say
  EXPECT_TRUE(files.state());
  files.make_folder("no/such/folder");
  ASSERT_FALSE(files.state());
  EXPECT_THAT(files.state().error().message, ::testing::HasSubstr("no/such/folder"));
  files.add(busy_, 5);
  EXPECT_EQ(text(busy_), "0\n");
}

TEST_F(LoadFilesTest, Read) {
  const auto files = open();
  EXPECT_THAT(files.read(busy_), Optional(std::string("0\n")));
  EXPECT_FALSE(files.read("sys"));
  EXPECT_FALSE(files.read("sys/class/neuron_device/neuron0"));  // a link
  EXPECT_FALSE(files.read("nothing"));
}

}  // namespace
}  // namespace neuron::sim
