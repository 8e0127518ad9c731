#include "tools/neuron-gather/collector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "test/unit/gather/capture_of.h"
#include "test/unit/host/temp_tree.h"

namespace neuron::gather {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr const char* kDevice = "sys/devices/virtual/neuron_device/neuron0/";

class CollectorTest : public ::testing::Test {
 protected:
  CollectorTest() {
    tree_.link("sys/class/neuron_device/neuron0", "../../devices/virtual/neuron_device/neuron0");
    tree_.write(device("core_count"), "2\n");
    tree_.write("neuron-ioctl/neuron0.json", "{\"apps\": [{\"pid\": 12}]}");
  }
  static std::string device(const std::string& name) { return kDevice + name; }

  host::TempTree tree_;
};

TEST_F(CollectorTest, KeepsLinksAndWhatTheyLeadTo) {
  const Capture capture = capture_of(tree_.path());
  const Entry* link = capture.find("sys/class/neuron_device/neuron0");
  ASSERT_NE(link, nullptr);
  EXPECT_EQ(*link, (Entry{EntryKind::link, "../../devices/virtual/neuron_device/neuron0"}));
  EXPECT_EQ(text_in(capture, device("core_count")), "2\n");
}

TEST_F(CollectorTest, AbsoluteAndRoundaboutLinksBecomeRelative) {
  tree_.link("sys/class/neuron_device/neuron1", "/sys/devices/virtual/neuron_device/neuron0");
  tree_.link("sys/class/neuron_device/neuron2", "neuron1");
  tree_.link("sys/class/neuron_device/neuron3", "../../../../../../../sys/devices/virtual/neuron_device/neuron0");
  const Capture capture = capture_of(tree_.path());
  for (const char* name : {"neuron1", "neuron2", "neuron3"}) {
    EXPECT_EQ(text_in(capture, std::string("sys/class/neuron_device/") + name),
              "../../devices/virtual/neuron_device/neuron0");
  }
}

TEST_F(CollectorTest, CapturesNothingThatNoRuleNames) {
  tree_.write("etc/shadow", "root:secret\n");
  tree_.write("proc/1/environ", "PASSWORD=secret");
  tree_.write("proc/12/environ", "PASSWORD=secret");
  tree_.write("proc/12/cmdline", "train --token=secret");
  tree_.write("proc/12/stat", "12 (train) R\n");
  tree_.write("root/.aws/credentials", "secret");
  tree_.write("sys/devices/virtual/dmi/id/product_serial", "secret");
  tree_.write("etc/containerd/config.toml", "version = 2\n[registry.auth]\n  password = \"secret\" # enable_cdi = x\n");
  tree_.link("sys/class/neuron_device/neuron5", "/root/.aws");  // no kernel makes such a link
  const Capture capture = capture_of(tree_.path());
  for (const auto& [path, entry] : capture.entries()) {
    EXPECT_THAT(entry.text, Not(HasSubstr("secret"))) << path;
  }
  EXPECT_EQ(text_in(capture, "etc/containerd/config.toml"), "version = 2\n");
  EXPECT_EQ(text_in(capture, "proc/12/stat"), "12 (train) R\n");
}

TEST_F(CollectorTest, CommandsAndTheTagOnlyWhenAskedFor) {
  tree_.write("proc/12/environ", std::string("PASSWORD=secret\0NEURON_PROCESS_TAG=job\0X=1", 42));
  tree_.write("proc/12/cmdline", std::string("train\0--fast\0", 13));
  const Capture capture = capture_of(tree_.path(), Commands::include);
  EXPECT_EQ(text_in(capture, "proc/12/cmdline"), std::string("train\0--fast\0", 13));
  EXPECT_EQ(text_in(capture, "proc/12/environ"), std::string("NEURON_PROCESS_TAG=job\0", 23));
  EXPECT_THAT(text_in(capture, "MANIFEST.json"), HasSubstr("\"with_commands\": true"));
}

// Of everybody's open files those that are a device; the links lead inside the capture.
TEST_F(CollectorTest, WhoHasADeviceOpen) {
  const auto open_file = [&](const std::string& process, const std::string& target, const std::string& flags) {
    tree_.link(process + "/fd/3", target);
    tree_.write(process + "/fdinfo/3", "pos:\t0\nflags:\t" + flags + "\n");
  };
  tree_.folder("proc/1/fd");
  open_file("proc/17", "/dev/neuron0", "02100002");
  open_file("proc/18", "/home/secret", "02100002");
  open_file("proc/19", "/dev/neuron0", "0100001");
  open_file("proc/20", "/dev/neuron9", "02100002");  // the driver shows no such device
  tree_.write("proc/17/stat", "17 (train) R\n");
  const Capture capture = capture_of(tree_.path());
  EXPECT_EQ(text_in(capture, "proc/17/fd/3"), "../../../dev/neuron0");
  EXPECT_EQ(text_in(capture, "proc/17/fdinfo/3"), "pos:\t0\nflags:\t02100002\n");
  EXPECT_EQ(text_in(capture, "proc/17/stat"), "17 (train) R\n");
  EXPECT_TRUE(capture.contains("proc/1/fd"));
  for (const char* other : {"proc/18", "proc/19", "proc/20"}) EXPECT_FALSE(capture.contains(other)) << other;
}

// A capture that is silent about users must not read as if there were none.
TEST_F(CollectorTest, UsersThatCouldNotBeLookedAtStayUnknown) {
  tree_.link("proc/17/fd/3", "/dev/neuron0");
  tree_.write("proc/17/fdinfo/3", "flags:\t02\n");
  EXPECT_FALSE(capture_of(tree_.path()).contains("proc/1"));
  tree_.folder("proc/1/fd");
  for (int file = 0; file < 1100; ++file) tree_.link("proc/18/fd/" + std::to_string(file), "/dev/null");
  const Capture capture = capture_of(tree_.path());
  EXPECT_FALSE(capture.contains("proc/1"));
  EXPECT_TRUE(capture.contains("proc/17/fd/3"));
  EXPECT_THAT(text_in(capture, "MANIFEST.json"), HasSubstr("some users of the devices are unknown"));
}

TEST_F(CollectorTest, SaysWhatCouldNotBeRead) {
  tree_.fifo(device("stats/pipe"));
  tree_.write(device("stats/huge"), std::string(kMaxTextBytes + 1, 'x'));
  tree_.link("sys/class/neuron_device/neuron7", "neuron7");
  const Capture capture = capture_of(tree_.path());
  std::vector<std::string> paths;
  for (const Unreadable& one : capture.unreadable()) paths.push_back(one.path);
  EXPECT_THAT(paths, ::testing::UnorderedElementsAre(device("stats/pipe"), device("stats/huge"),
                                                     "sys/class/neuron_device/neuron7"));
  EXPECT_FALSE(capture.contains(device("stats/pipe")));
  EXPECT_THAT(text_in(capture, "MANIFEST.json"), HasSubstr("a FIFO without a writer"));
  EXPECT_EQ(text_in(capture, device("core_count")), "2\n");
}

TEST_F(CollectorTest, DeviceNodesAreNotOpened) {
  tree_.fifo("dev/neuron0");
  tree_.fifo("dev/infiniband/uverbs0");
  tree_.write("dev/neuron_other", "x");
  const Capture capture = capture_of(tree_.path());
  EXPECT_THAT(capture.unreadable(), IsEmpty());
  EXPECT_EQ(text_in(capture, "dev/neuron0"), "");
  EXPECT_EQ(text_in(capture, "dev/infiniband/uverbs0"), "");
  EXPECT_FALSE(capture.contains("dev/neuron_other"));
}

TEST_F(CollectorTest, OfConfigurationSpaceTheFirst256Bytes) {
  tree_.write("sys/bus/pci/devices/0000:00:1e.0/config", std::string(4096, '\xff'));
  tree_.write("sys/bus/pci/devices/0000:00:1f.0/config", std::string(64, '\x01'));
  const Capture capture = capture_of(tree_.path());
  EXPECT_EQ(text_in(capture, "sys/bus/pci/devices/0000:00:1e.0/config"), std::string(256, '\xff'));
  EXPECT_EQ(text_in(capture, "sys/bus/pci/devices/0000:00:1f.0/config"), std::string(64, '\x01'));
}

TEST_F(CollectorTest, PowerOfADeviceIsMeasuredAndPowerOfTheKernelIsNot) {
  tree_.write(device("power/runtime_status"), "unsupported\n");
  tree_.write(device("stats/power/utilization"), "1,2\n");
  const Capture capture = capture_of(tree_.path());
  EXPECT_FALSE(capture.contains(device("power")));
  EXPECT_EQ(text_in(capture, device("stats/power/utilization")), "1,2\n");
}

TEST_F(CollectorTest, WhatIsNotPermittedIsLeftOut) {
  Capture capture;
  const host::FsRoot root = tree_.root();
  Collector collector(root, capture, [](const std::string& path) { return !path.ends_with("core_count"); });
  for (const Rule& rule : rules()) collector.collect(rule);
  EXPECT_FALSE(capture.contains(device("core_count")));
  EXPECT_TRUE(capture.contains("sys/class/neuron_device/neuron0"));
}

TEST_F(CollectorTest, NestingIsBounded) {
  std::string deep = device("a");
  for (int i = 0; i < 30; ++i) deep += "/a";
  tree_.write(deep, "1\n");
  const Capture capture = capture_of(tree_.path());
  EXPECT_THAT(capture.unreadable(), SizeIs(1));
  EXPECT_FALSE(capture.contains(deep));
}

TEST(RulesTest, PatternsMeanWhatTheySay) {
  EXPECT_TRUE(matches("neuron#", "neuron12"));
  EXPECT_FALSE(matches("neuron#", "neuron"));
  EXPECT_FALSE(matches("neuron#", "neuron1x"));
  EXPECT_TRUE(matches("*", "anything"));
  EXPECT_TRUE(matches("*_hugepages", "nr_hugepages"));
  EXPECT_FALSE(matches("*_hugepages", "x_hugepages_y"));
  EXPECT_FALSE(matches("version", "versions"));
}

// Nothing that could hold a secret or has an effect is named by a rule.
TEST(RulesTest, NoRuleReachesWhatItShouldNot) {
  for (const Rule& rule : rules()) {
    EXPECT_EQ(rule.path.find("environ"), std::string_view::npos);
    EXPECT_EQ(rule.path.find("checkpoint"), std::string_view::npos);
    EXPECT_FALSE(rule.path.starts_with('/'));
    if (rule.path.starts_with("dev/")) {
      const bool reads_kernel_log = rule.path == "dev/kmsg" && rule.take == Take::kernel_log;
      EXPECT_TRUE(rule.take == Take::node || rule.take == Take::folder || reads_kernel_log) << rule.path;
    }
  }
}

}  // namespace
}  // namespace neuron::gather
