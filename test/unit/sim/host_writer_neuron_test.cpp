#include <gmock/gmock.h>

#include <set>

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

std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename().string());
  return names;
}

TEST(NeuronTree, DeviceRoot) {
  FakeHost host("trn1.32xlarge");
  host.write();
  const std::string device = host.path() + "/sys/class/neuron_device/neuron0";
  EXPECT_EQ(fs::read_symlink(device), "../../devices/virtual/neuron_device/neuron0");
  EXPECT_EQ(text_of(device + "/core_count"), "2");  // no newline
  EXPECT_EQ(text_of(device + "/connected_devices"), "12, 3, 4, 1\n");
  EXPECT_EQ(text_of(device + "/reset"), "1\n");
  EXPECT_EQ(mode_of(device + "/reset"), 0600U);
  EXPECT_EQ(mode_of(device + "/core_count"), 0444U);
  EXPECT_EQ(text_of(device + "/info/architecture/device_name"), "Trainium1\n");
  EXPECT_EQ(text_of(device + "/info/architecture/arch_type"), "NDv2\n");
  EXPECT_THAT(text_of(device + "/info/serial_number"), ::testing::MatchesRegex("[0-9a-f]{16}\n"));
  EXPECT_EQ(names_in(device + "/neuron_core1/stats/status").size(), 24U);
  EXPECT_EQ(mode_of(device + "/neuron_core1/stats/status/hw_error/total"), 0644U);
  EXPECT_FALSE(is_there(device + "/stats/hardware/health_status"));  // Trainium2 and later
}

TEST(NeuronTree, CountsAreForRootOnlyBefore228) {
  FakeHost host("trn1.32xlarge");
  host.driver("2.27.4.0").write();
  const std::string device = host.path() + "/sys/class/neuron_device/neuron5";
  EXPECT_EQ(mode_of(device + "/core_count"), 0400U);
  EXPECT_EQ(mode_of(device + "/connected_devices"), 0400U);
  EXPECT_FALSE(is_there(device + "/fw_build"));
  EXPECT_FALSE(is_there(device + "/stats/hardware/sram_ecc_corrected"));
  EXPECT_TRUE(is_there(host.path() + "/sys/class/neuron_device/node_id_2"));
}

TEST(NeuronTree, HealthFilesOfBothGenerations) {
  FakeHost host("trn2.3xlarge");
  const std::string health = host.path() + "/sys/class/neuron_device/neuron0/stats/hardware/health_status";
  host.driver("2.29.0.0").write();
  EXPECT_EQ(names_in(health), (std::set<std::string>{"hbm_ecc_err_count", "repairable_hbm_ecc_err_count",
                                                     "sram_ecc_err_count", "hw_error_event"}));
  host.driver("2.30.2.0").write();
  EXPECT_EQ(names_in(health),
            (std::set<std::string>{"unhealthy_components", "healthcheck_heartbeat", "hw_error_event"}));
  EXPECT_EQ(text_of(health + "/unhealthy_components"), "\n");
}

TEST(NeuronTree, ClassFilesDependOnThePlatform) {
  FakeHost standard("trn2.3xlarge");
  standard.write();
  EXPECT_EQ(names_in(standard.path() + "/sys/class/neuron_device"),
            (std::set<std::string>{"neuron0", "hbm_7200_capable", "current_perf_profile"}));
  FakeHost max("trn3e.24xlarge");
  max.write();
  EXPECT_TRUE(is_there(max.path() + "/sys/class/neuron_device/reservation_id"));
  EXPECT_EQ(text_of(max.path() + "/sys/class/neuron_device/neuron2/connected_devices"), "\n");
}

TEST(NeuronTree, OlderDriversShowLess) {
  FakeHost host("trn2.3xlarge");
  host.driver("2.21.37.0").write();
  const std::string device = host.path() + "/sys/class/neuron_device/neuron0";
  EXPECT_EQ(names_in(device + "/stats/hardware"),
            (std::set<std::string>{"sram_ecc_uncorrected", "mem_ecc_uncorrected"}));
  EXPECT_EQ(names_in(device + "/neuron_core0/stats/status").size(), 23U);
  EXPECT_FALSE(is_there(device + "/neuron_core0/stats/tensor_engine"));
  EXPECT_EQ(names_in(host.path() + "/sys/class/neuron_device"), (std::set<std::string>{"neuron0"}));
  EXPECT_TRUE(is_there(host.path() + "/sys/module/neuron/parameters/use_rr"));
  host.driver("2.22.2.0").write();
  EXPECT_EQ(names_in(host.path() + "/sys/class/neuron_device"),
            (std::set<std::string>{"neuron0", "node_id", "server_id"}));
}

// docs/reference/driver.md#elections
TEST(NeuronTree, UltraServersAndPartitions) {
  const auto files = [](FakeHost& host) {
    host.write();
    std::string all;
    const std::string folder = host.path() + "/sys/class/neuron_device/";
    for (const char* name : {"node_cnt", "node_id", "node_id_2", "node_id_4", "ultraserver_mode"}) {
      if (is_there(folder + name)) all += std::string(all.empty() ? "" : " ") + name + "=" + text_of(folder + name);
    }
    std::erase(all, '\n');
    return all;
  };
  FakeHost server("trn2u.48xlarge");
  EXPECT_EQ(files(server), "node_id_2=0 node_id_4=0 ultraserver_mode=1,3,4");
  EXPECT_EQ(files(server.ultraserver("4:2")), "node_id_2=0 node_id_4=2 ultraserver_mode=1,3,4");
  EXPECT_EQ(files(server.ultraserver("2:1")), "node_id_2=1 node_id_4=-1 ultraserver_mode=2,4");
  EXPECT_EQ(files(server.ultraserver("alone")), "node_id_2=-1 node_id_4=-1 ultraserver_mode=4");
  EXPECT_EQ(files(server.ultraserver("busy")), "node_id_2=busy node_id_4=busy ultraserver_mode=busy");
  FakeHost partition("trn3.48xlarge");
  EXPECT_EQ(files(partition), "node_cnt=0 node_id=-1 ultraserver_mode=4");
  EXPECT_EQ(files(partition.ultraserver("4:3")), "node_cnt=4 node_id=3 ultraserver_mode=1,3,4");
  EXPECT_EQ(files(partition.ultraserver("2")), "node_cnt=2 node_id=0 ultraserver_mode=3,4");
  FakeHost before("trn3s.48xlarge");
  EXPECT_EQ(files(before.driver("2.26.5.0")), "node_id_2=0 node_id_4=-1 ultraserver_mode=3,4");
}

TEST(NeuronTree, UnknownLayoutHasDevicesButNoneOfTheKnownFiles) {
  FakeHost host("trn2.3xlarge");
  host.driver("2.31.7.0").write();
  const std::string device = host.path() + "/sys/class/neuron_device/neuron0";
  EXPECT_EQ(text_of(device + "/dev"), "239:0\n");
  EXPECT_TRUE(is_there(device + "/telemetry"));
  for (const char* name : {"core_count", "connected_devices", "info", "stats", "neuron_core0"}) {
    EXPECT_FALSE(is_there(device + "/" + name)) << name;
  }
  EXPECT_THAT(text_of(host.path() + "/NOTE"), HasSubstr("invented"));
}

TEST(NeuronTree, Inferentia1HasNeitherSerialNorEcc) {
  FakeHost host("inf1.6xlarge");
  host.write();
  const std::string device = host.path() + "/sys/class/neuron_device/neuron1";
  EXPECT_EQ(text_of(device + "/core_count"), "4");
  EXPECT_EQ(text_of(device + "/connected_devices"), "2, 0\n");
  EXPECT_FALSE(is_there(device + "/info/serial_number"));
  EXPECT_FALSE(is_there(device + "/stats/hardware"));
}

TEST(NeuronTree, RecordedAnswers) {
  FakeHost host("trn2.48xlarge");
  host.write();
  EXPECT_EQ(text_of(host.path() + "/neuron-ioctl/neuron1.json"),
            "{ \"bdf\": \"0000:b5:00.0\",\n  \"apps\": [],\n  \"logical_to_physical\": [2, 3, 0, 1, 4, 5, 6, 7] }\n");
}

TEST(NeuronTree, SwitchedTrainium3CoreOrderChangedWith230) {
  FakeHost host("trn3-dev0.48xlarge");
  host.driver("2.26.5.0").write();
  EXPECT_THAT(text_of(host.path() + "/neuron-ioctl/neuron1.json"), HasSubstr("[2, 3, 0, 1, 4, 5, 6, 7]"));
  host.driver("2.30.2.0").write();
  EXPECT_THAT(text_of(host.path() + "/neuron-ioctl/neuron1.json"), HasSubstr("[6, 7, 4, 5, 0, 1, 2, 3]"));
}

TEST(NeuronTree, NodesBehaveLikeDevNullWhereTheyMayBeMade) {
  FakeHost host("trn2.3xlarge");
  host.write();
  struct stat info {};
  ASSERT_EQ(::stat((host.path() + "/dev/neuron0").c_str(), &info), 0);
  EXPECT_TRUE(S_ISCHR(info.st_mode) || S_ISREG(info.st_mode));
  EXPECT_EQ(info.st_mode & 07777U, 0666U);
}

TEST(NeuronTree, MissingDeviceIsAbsentEverywhere) {
  FakeHost host("trn1.32xlarge");
  host.missing({3}).write();
  for (const char* path : {"/sys/class/neuron_device/neuron3", "/sys/devices/virtual/neuron_device/neuron3",
                           "/dev/neuron3", "/neuron-ioctl/neuron3.json", "/sys/bus/pci/devices/0000:a0:1e.0",
                           "/sys/devices/pci0000:a0/0000:a0:1e.0", "/sys/bus/pci/drivers/neuron-driver/0000:a0:1e.0"}) {
    EXPECT_FALSE(is_there(host.path() + path)) << path;
  }
  EXPECT_EQ(text_of(host.path() + "/sys/class/neuron_device/neuron0/connected_devices"), "\n");
}

TEST(NeuronTree, WithoutDriverOnlyThePciFunctionsAreThere) {
  FakeHost host("trn1.32xlarge");
  host.without(Part::driver).write();
  EXPECT_TRUE(is_there(host.path() + "/sys/bus/pci/devices/0000:10:1b.0"));
  for (const char* path : {"/sys/class/neuron_device", "/sys/module/neuron", "/dev/neuron0", "/neuron-ioctl",
                           "/sys/bus/pci/devices/0000:10:1b.0/driver"}) {
    EXPECT_FALSE(is_there(host.path() + path)) << path;
  }
}

TEST(NeuronTree, WithoutIoctlTheNodesStay) {
  FakeHost host("trn2.3xlarge");
  host.without(Part::ioctl).write();
  EXPECT_FALSE(is_there(host.path() + "/neuron-ioctl"));
  EXPECT_TRUE(is_there(host.path() + "/dev/neuron0"));
}

}  // namespace
}  // namespace neuron::sim
