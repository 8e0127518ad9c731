#include "tools/neuron-sim/host_plan.h"

#include <gmock/gmock.h>

#include "agent/core/catalogue.h"
#include "test/fakes/fake_host.h"
#include "test/unit/sim/files.h"

namespace neuron::sim {
namespace {

namespace fs = std::filesystem;
using fakes::FakeHost;
using ::testing::HasSubstr;
using testing::is_there;
using testing::mode_of;
using testing::text_of;

TEST(HostWriter, SaysWhatItMakes) {
  HostPlan plan;
  plan.instance_type = "trn1.32xlarge";
  EXPECT_EQ(*describe(plan), "trn1.32xlarge, driver 2.30.2.0: 16 devices, 8 EFA interfaces");
  plan.instance_type = "trn2.3xlarge";
  plan.driver_version = "2.28.0.0";
  EXPECT_EQ(*describe(plan), "trn2.3xlarge, driver 2.28.0.0: 1 device, 1 EFA interface");
  plan.instance_type = "p5.48xlarge";
  EXPECT_EQ(*describe(plan), "p5.48xlarge: 0 devices, 32 EFA interfaces");
}

TEST(HostWriter, EveryTypeCanBeWrittenWithoutADanglingLink) {
  for (const char* type : {"trn1.32xlarge", "trn2.3xlarge", "inf1.6xlarge", "inf2.48xlarge", "p6-b200.48xlarge",
                           "trn3e.24xlarge", "c5n.18xlarge"}) {
    FakeHost host(type);
    host.write();
    for (const auto& entry : fs::recursive_directory_iterator(host.path())) {
      if (!entry.is_symlink()) continue;
      EXPECT_TRUE(fs::read_symlink(entry.path()).is_relative()) << entry.path();
      EXPECT_TRUE(fs::exists(entry.path())) << entry.path();
    }
  }
}

TEST(HostWriter, DmiModuleAndLncFiles) {
  FakeHost host("trn2.48xlarge");
  host.driver("2.28.0.0").lnc(1).write();
  EXPECT_EQ(text_of(host.path() + "/sys/class/dmi/id/product_name"), "trn2.48xlarge\n");
  EXPECT_THAT(text_of(host.path() + "/sys/devices/virtual/dmi/id/board_asset_tag"),
              ::testing::MatchesRegex("i-[0-9a-f]{17}\n"));
  EXPECT_EQ(text_of(host.path() + "/sys/module/neuron/version"), "2.28.0.0\n");
  EXPECT_EQ(text_of(host.path() + "/opt/aws/neuron/logical_nc_config"), "NEURON_LOGICAL_NC_CONFIG=1\n");
  EXPECT_THAT(text_of(host.path() + "/proc/devices"), HasSubstr("239 neuron\n"));
  EXPECT_THAT(text_of(host.path() + "/NOTE"), HasSubstr("Synthetic"));
}

TEST(HostWriter, WithoutLncThereIsNoFile) {
  FakeHost host("trn2.3xlarge");
  host.write();
  EXPECT_FALSE(is_there(host.path() + "/opt/aws/neuron/logical_nc_config"));
}

TEST(HostWriter, ProcessorsAndNumaNodes) {
  FakeHost host("trn1.32xlarge");
  host.write();
  const std::string system = host.path() + "/sys/devices/system";
  EXPECT_EQ(text_of(system + "/cpu/online"), "0-127\n");
  EXPECT_EQ(text_of(system + "/node/online"), "0-1\n");
  EXPECT_EQ(text_of(system + "/node/node1/cpulist"), "32-63,96-127\n");
  EXPECT_EQ(text_of(system + "/node/node1/cpumap"), "ffffffff,00000000,ffffffff,00000000\n");
  EXPECT_EQ(text_of(system + "/cpu/cpu64/topology/thread_siblings_list"), "0,64\n");
  EXPECT_EQ(text_of(system + "/cpu/cpu40/topology/physical_package_id"), "1\n");
}

TEST(HostWriter, AnotherHostReplacesTheFormerWhole) {
  FakeHost host("trn1.32xlarge");
  host.write().set("neuron3", "vanish");
  HostPlan other;
  other.instance_type = "p5.48xlarge";
  ASSERT_TRUE(write_host(other, host.path()));
  EXPECT_FALSE(is_there(host.path() + "/sys/class/neuron_device"));
  EXPECT_FALSE(is_there(host.path() + "/dev/neuron0"));
  EXPECT_FALSE(is_there(host.path() + "/.neuron-sim/saved"));
  EXPECT_EQ(text_of(host.path() + "/sys/class/dmi/id/product_name"), "p5.48xlarge\n");
}

TEST(HostWriter, OtherDirectoriesAreLeftAlone) {
  FakeHost host("trn2.3xlarge");
  std::ofstream(host.path() + "/thesis.tex") << "precious";
  HostPlan plan;
  plan.instance_type = "trn2.3xlarge";
  const auto written = write_host(plan, host.path());
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ErrorCode::failed_precondition);
  EXPECT_EQ(text_of(host.path() + "/thesis.tex"), "precious");
  EXPECT_FALSE(is_there(host.path() + "/sys"));
  const auto onto_file = write_host(plan, host.path() + "/thesis.tex");
  ASSERT_FALSE(onto_file);
  EXPECT_THAT(onto_file.error().message, HasSubstr("not a directory"));
}

TEST(HostWriter, MakesTheDirectoryWithItsParents) {
  FakeHost host("trn2.3xlarge");
  HostPlan plan;
  plan.instance_type = "trn2.3xlarge";
  ASSERT_TRUE(write_host(plan, host.path() + "/a/b"));
  EXPECT_TRUE(is_there(host.path() + "/a/b/sys/class/neuron_device/neuron0"));
}

TEST(HostWriter, BridgesHaveBinaryConfigurationSpace) {
  FakeHost host("trn2.48xlarge");
  host.write();
  const std::string port = text_of(host.path() + "/sys/bus/pci/devices/0000:b9:02.1/config");
  ASSERT_EQ(port.size(), 256U);
  EXPECT_EQ(port[0x0e], 1);
  EXPECT_EQ(port[0x19], '\xcc');
  EXPECT_EQ(text_of(host.path() + "/sys/bus/pci/devices/0000:b9:02.1/class"), "0x060400\n");
  const std::string device = text_of(host.path() + "/sys/bus/pci/devices/0000:cc:00.0/config");
  ASSERT_EQ(device.size(), 256U);
  EXPECT_EQ(device[0x0e], 0);
  EXPECT_EQ(device.substr(0, 4), "\x0f\x1d\x64\x73");
  EXPECT_EQ(device.substr(9, 3), std::string("\x00\x80\x08", 3));
}

}  // namespace
}  // namespace neuron::sim
