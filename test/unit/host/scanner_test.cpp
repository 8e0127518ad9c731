#include "agent/host/scanner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/host/small_host.h"

namespace neuron::host {
namespace {

using model::DriverLayout;
using model::Origin;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr Scanner::Options kPlain{.with_topology = false, .with_processes = true};
constexpr Scanner::Options kWithUsers{.with_topology = false, .with_processes = true, .with_device_users = true};

void write_answer(TempTree& tree, int index, const std::string& bdf, const std::string& apps = "[]") {
  tree.write("neuron-ioctl/neuron" + std::to_string(index) + ".json",
             "{\"bdf\": \"" + bdf + "\", \"apps\": " + apps + ", \"logical_to_physical\": [1, 0]}");
}

class ScannerTest : public ::testing::Test {
 protected:
  void write_host() {
    tree_.write("sys/devices/virtual/dmi/id/product_name", "trn2.3xlarge\n");
    tree_.write("sys/devices/virtual/dmi/id/board_asset_tag", "i-0592464924bd45322\n");
    tree_.write("sys/module/neuron/version", "2.30.2.0\n");
    tree_.write("sys/module/efa/version", "3.1.0g\n");
    for (int index : {0, 1}) {
      write_device(tree_, index, Generation::trn2_2_30);
      tree_.write("dev/neuron" + std::to_string(index), "");
    }
    tree_.write(device(0) + "connected_devices", "1\n");
    tree_.write("sys/class/neuron_device/node_id_2", "-1\n");
    write_function(tree_, "pci0000:10", "0000:10:1b.0", "0x7364");
    write_function(tree_, "pci0000:10", "0000:10:1c.0", "0x7364");
    write_efa(tree_, "pci0000:10", "0000:10:19.0", "rdmap16s25", 1);
    write_answer(tree_, 0, "0000:10:1c.0");
    write_answer(tree_, 1, "0000:10:1b.0");
  }
  static std::string device(int index) {
    return "sys/devices/virtual/neuron_device/neuron" + std::to_string(index) + '/';
  }

  TempTree tree_;
  FsRoot root_ = tree_.root();
  Scanner scanner_{root_, kPlain};
};

TEST_F(ScannerTest, ParametersThatDecideWhetherHealthIsMeasured) {
  write_host();
  const std::string parameters = "sys/module/neuron/parameters/";
  EXPECT_EQ(scanner_.scan().driver_settings, model::DriverSettings{}) << "this driver has no such parameters";
  tree_.write(parameters + "nmetric_log_posts", "0\n");
  tree_.write(parameters + "enable_sysfs_health_status_nodes", "N\n");
  EXPECT_EQ(scanner_.scan().driver_settings, (model::DriverSettings{false, false}));
  tree_.write(parameters + "nmetric_log_posts", "3\n");
  tree_.write(parameters + "enable_sysfs_health_status_nodes", "1\n");
  EXPECT_EQ(scanner_.scan().driver_settings, (model::DriverSettings{true, true}));
  tree_.write(parameters + "nmetric_log_posts", "many\n");
  tree_.write(parameters + "enable_sysfs_health_status_nodes", "Y\n");
  const auto scan = scanner_.scan();
  EXPECT_EQ(scan.driver_settings, (model::DriverSettings{std::nullopt, true}));
  EXPECT_THAT(scan.problems, IsEmpty()) << "for root only, and of no use without";
}

// Else health that is not measured would be called healthy for as long as the parameter cannot be read.
TEST_F(ScannerTest, AParameterThatCannotBeReadCountsAsItWasReadLast) {
  write_host();
  const std::string path = "sys/module/neuron/parameters/nmetric_log_posts";
  tree_.write(path, "0\n");
  EXPECT_EQ(scanner_.scan().driver_settings.posts_metrics, false);
  tree_.remove(path);
  tree_.write(path + "/folder", "");
  const auto scan = scanner_.scan();
  EXPECT_EQ(scan.driver_settings.posts_metrics, false);
  EXPECT_THAT(sentences(scan.problems), Contains(HasSubstr("nmetric_log_posts: ")));
  tree_.remove(path);
  EXPECT_EQ(scanner_.scan().driver_settings.posts_metrics, std::nullopt) << "a driver without it";
}

TEST_F(ScannerTest, BareNodeIsCalm) {
  const auto scan = scanner_.scan();
  EXPECT_EQ(scan, model::HostScan{});
  EXPECT_EQ(scan.layout, DriverLayout::none);
}

TEST_F(ScannerTest, WholeHost) {
  write_host();
  const auto scan = scanner_.scan();
  EXPECT_EQ(scan.instance_type, "trn2.3xlarge");
  EXPECT_EQ(scan.instance_id, "i-0592464924bd45322");
  EXPECT_EQ(scan.driver_version, "2.30.2.0");
  EXPECT_EQ(scan.efa_driver_version, "3.1.0g");
  EXPECT_EQ(scan.layout, DriverLayout::health_v2);
  EXPECT_EQ(scan.lnc, std::nullopt);
  EXPECT_EQ(scan.neuron_pci_functions, 2);
  EXPECT_THAT(scan.problems, IsEmpty());
  ASSERT_THAT(scan.devices, SizeIs(2));
  const auto& first = scan.devices[0];
  EXPECT_EQ(model::to_string(first.bdf->value), "0000:10:1c.0");
  EXPECT_EQ(first.bdf->origin, Origin::live);
  EXPECT_EQ(first.numa_node->value, 1);
  EXPECT_THAT(first.cpus->value, ElementsAre(2, 3));
  EXPECT_THAT(first.logical_to_physical.value(), ElementsAre(1, 0));
  EXPECT_THAT(first.processes.value(), IsEmpty());
  EXPECT_TRUE(first.node_present);
  EXPECT_THAT(first.neighbours->value, ElementsAre(1));
  EXPECT_THAT(first.problems, IsEmpty());
  ASSERT_THAT(scan.efas, SizeIs(1));
  EXPECT_EQ(scan.efas[0].uverbs, "uverbs1");
  EXPECT_EQ(scanner_.scan(), scan);
  EXPECT_EQ(Scanner(root_, kPlain).scan(), scan);
}

TEST_F(ScannerTest, SilentDriverLeavesPlacesUnknown) {
  write_host();
  tree_.remove("neuron-ioctl");
  const auto scan = scanner_.scan();
  EXPECT_EQ(scan.devices[0].bdf, std::nullopt);
  EXPECT_EQ(scan.devices[0].numa_node, std::nullopt);
  EXPECT_EQ(scan.devices[0].processes, std::nullopt);
  EXPECT_THAT(scan.devices[0].problems, IsEmpty());
}

TEST_F(ScannerTest, OneUnknownLayoutIsOneLine) {
  tree_.write("sys/module/neuron/version", "2.x.8072.0\n");
  for (int index : {0, 1, 10, 2}) write_device(tree_, index, Generation::moved);
  const auto scan = scanner_.scan();
  EXPECT_EQ(scan.layout, DriverLayout::unknown);
  EXPECT_THAT(sentences(scan.problems), ElementsAre(HasSubstr("driver 2.x.8072.0 has a layout")));
  ASSERT_THAT(scan.devices, SizeIs(4));
  EXPECT_EQ(scan.devices[3].index, 10);
  for (const auto& each : scan.devices) {
    EXPECT_EQ(each.signals, model::DeviceSignals{});
    EXPECT_THAT(each.problems, IsEmpty());
  }
}

TEST_F(ScannerTest, OneBrokenDeviceHarmsNoOther) {
  write_host();
  write_device(tree_, 2, Generation::moved);
  tree_.link("sys/class/neuron_device/neuron3", "neuron3");
  tree_.link("sys/class/neuron_device/neuron4", "../../../../../../../../etc");
  tree_.folder("sys/class/neuron_device/neuron01");
  tree_.folder("sys/class/neuron_device/neuron999999");
  tree_.folder("sys/class/neuron_device/neuron0x");
  const auto scan = scanner_.scan();
  EXPECT_EQ(scan.layout, DriverLayout::health_v2);
  ASSERT_THAT(scan.devices, SizeIs(5));
  EXPECT_THAT(scan.devices[0].problems, IsEmpty());
  for (std::size_t broken : {2U, 3U, 4U}) {
    EXPECT_THAT(scan.devices[broken].problems, SizeIs(1)) << broken;
    EXPECT_EQ(scan.devices[broken].signals, model::DeviceSignals{});
  }
  EXPECT_EQ(scanner_.scan(), scan);
}

TEST_F(ScannerTest, FamilyFromPciWhenTheDriverDoesNotSay) {
  write_host();
  tree_.remove(device(0) + "info/architecture");
  tree_.remove(device(1) + "info/architecture");
  tree_.remove("neuron-ioctl/neuron1.json");
  const auto scan = scanner_.scan();
  EXPECT_EQ(scan.devices[0].family, model::Family::trainium2);
  EXPECT_EQ(scan.devices[1].family, model::Family::trainium2);  // all functions of the host agree
}

TEST_F(ScannerTest, DriverNamingAnAbsentFunctionIsToldNotHidden) {
  write_host();
  write_answer(tree_, 0, "0000:aa:00.0");
  const auto scan = scanner_.scan();
  EXPECT_EQ(model::to_string(scan.devices[0].bdf->value), "0000:aa:00.0");
  EXPECT_EQ(scan.devices[0].numa_node, std::nullopt);
  EXPECT_THAT(sentences(scan.devices[0].problems),
              ElementsAre(HasSubstr("0000:aa:00.0: the driver names this function")));
}

TEST_F(ScannerTest, LncFile) {
  write_host();
  tree_.write("opt/aws/neuron/logical_nc_config", "NEURON_LOGICAL_NC_CONFIG=1\n");
  EXPECT_EQ(scanner_.scan().lnc->value, 1);
  for (const char* bad : {"", "NEURON_LOGICAL_NC_CONFIG=7\n", "\x01\x02"}) {
    tree_.write("opt/aws/neuron/logical_nc_config", bad);
    const auto scan = scanner_.scan();
    EXPECT_EQ(scan.lnc, std::nullopt);
    EXPECT_THAT(sentences(scan.problems), ElementsAre(HasSubstr("opt/aws/neuron/logical_nc_config: not ")));
    EXPECT_EQ(scan.problems[0].kind, model::ProblemKind::lnc_file);
  }
}

TEST_F(ScannerTest, AVanishingDeviceGoesAndComesBackAsAnother) {
  write_host();
  EXPECT_THAT(scanner_.scan().devices, SizeIs(2));
  tree_.remove("sys/class/neuron_device/neuron1");
  tree_.move(device(1), "aside");
  tree_.remove("dev/neuron1");
  const auto without = scanner_.scan();
  ASSERT_THAT(without.devices, SizeIs(1));
  EXPECT_THAT(sentences(without.devices[0].problems), ElementsAre(HasSubstr("names missing devices: 1")));
  EXPECT_EQ(without.devices[0].problems[0].kind, model::ProblemKind::absent_neighbours);
  write_device(tree_, 1, Generation::trn1_2_27);
  write_answer(tree_, 1, "0000:10:1c.0");
  const auto back = scanner_.scan();
  ASSERT_THAT(back.devices, SizeIs(2));
  EXPECT_EQ(model::to_string(back.devices[1].bdf->value), "0000:10:1c.0");
  EXPECT_EQ(back.devices[1].signals.heartbeat, std::nullopt);
}

TEST_F(ScannerTest, ReplacedBetweenTwoScansIsNoticed) {
  Scanner without_processes(root_, {.with_topology = false, .with_processes = false});
  write_host();
  EXPECT_EQ(model::to_string(without_processes.scan().devices[1].bdf->value), "0000:10:1b.0");
  tree_.move(device(1), "aside");  // the old directory lives on elsewhere: its handle still works
  write_device(tree_, 1, Generation::trn2_2_30);
  tree_.write(device(1) + "core_count", "8");
  write_answer(tree_, 1, "0000:10:1c.0");
  const auto scan = without_processes.scan();
  EXPECT_EQ(scan.devices[1].physical_cores->value, 8);
  EXPECT_EQ(model::to_string(scan.devices[1].bdf->value), "0000:10:1c.0");
  EXPECT_EQ(scan.devices[1].processes, std::nullopt);
}

TEST_F(ScannerTest, AnotherSerialDropsWhatWasKept) {
  Scanner without_processes(root_, {.with_topology = false, .with_processes = false});
  write_host();
  (void)without_processes.scan();
  write_answer(tree_, 1, "0000:10:1c.0");
  tree_.write(device(1) + "core_count", "8");
  EXPECT_EQ(without_processes.scan().devices[1].physical_cores->value, 2);  // kept while the device is the same
  EXPECT_EQ(model::to_string(without_processes.scan().devices[1].bdf->value), "0000:10:1b.0");
  tree_.write(device(1) + "info/serial_number", "ffffffffffffffff\n");
  const auto scan = without_processes.scan();
  EXPECT_EQ(scan.devices[1].serial, "ffffffffffffffff");
  EXPECT_EQ(scan.devices[1].physical_cores->value, 8);
  EXPECT_EQ(model::to_string(scan.devices[1].bdf->value), "0000:10:1c.0");
}

TEST_F(ScannerTest, AnotherDriverVersionProbesAgain) {
  write_host();
  tree_.write("sys/module/neuron/version", "2.27.4.0\n");
  tree_.remove(device(0) + "stats/hardware/sram_ecc_corrected");
  EXPECT_EQ(scanner_.scan().devices[0].signals.sram_ecc_corrected, std::nullopt);
  tree_.write(device(0) + "stats/hardware/sram_ecc_corrected", "9\n");
  EXPECT_EQ(scanner_.scan().devices[0].signals.sram_ecc_corrected,
            std::nullopt);  // no file of that driver: not asked for
  tree_.write("sys/module/neuron/version", "2.30.3.0\n");
  EXPECT_EQ(scanner_.scan().devices[0].signals.sram_ecc_corrected, 9U);
}

TEST_F(ScannerTest, ProcessesAreFresh) {
  write_host();
  EXPECT_THAT(scanner_.scan().devices[0].processes.value(), IsEmpty());
  write_answer(tree_, 0, "0000:10:1c.0", R"([{"pid": 7, "nc_lock_map": 1}])");
  EXPECT_THAT(scanner_.scan().devices[0].processes.value(), ElementsAre(model::Process{7, 1, 0, 0}));
  tree_.write("neuron-ioctl/neuron0.json", "{");
  const auto scan = scanner_.scan();
  EXPECT_EQ(scan.devices[0].processes, std::nullopt);
  EXPECT_THAT(sentences(scan.devices[0].problems),
              ElementsAre(HasSubstr("neuron-ioctl/neuron0.json: not complete JSON")));
}

std::vector<int> pids_of(const model::NeuronDevice& device) {
  std::vector<int> pids;
  for (const auto& process : device.processes.value_or(std::vector<model::Process>{{-1, 0, 0, 0}})) {
    pids.push_back(process.pid);
  }
  return pids;  // -1: unknown
}

void open_device(TempTree& tree, int pid, int file, int device) {
  const std::string process = "proc/" + std::to_string(pid);
  tree.link(process + "/fd/" + std::to_string(file), "/dev/neuron" + std::to_string(device));
  tree.write(process + "/fdinfo/" + std::to_string(file), "pos:\t0\nflags:\t02100002\n");
}

TEST_F(ScannerTest, WhereTheDriverIsSilentProcTellsTheUsers) {
  write_host();
  tree_.remove("neuron-ioctl/neuron1.json");
  open_device(tree_, 17, 3, 0);
  open_device(tree_, 17, 4, 1);
  open_device(tree_, 18, 3, 1);
  Scanner scanner(root_, kWithUsers);
  EXPECT_EQ(scanner.scan().devices[1].processes, std::nullopt) << "pid 1 is hidden";
  tree_.folder("proc/1/fd");
  const auto scan = scanner.scan();
  EXPECT_THAT(pids_of(scan.devices[0]), IsEmpty()) << "the driver's answer beats it";
  EXPECT_THAT(pids_of(scan.devices[1]), ElementsAre(17, 18));
  EXPECT_THAT(scan.problems, IsEmpty());
  EXPECT_EQ(scanner.scan(), scan);
  tree_.remove("proc/18");
  tree_.remove("proc/17/fd/4");
  EXPECT_THAT(pids_of(scanner.scan().devices[1]), IsEmpty());
  open_device(tree_, 19, 3, 1);
  EXPECT_THAT(pids_of(scanner.scan().devices[1]), ElementsAre(19));
  EXPECT_EQ(scanner_.scan().devices[1].processes, std::nullopt) << "not asked for";
  Scanner without_processes(root_, {.with_topology = false, .with_processes = false, .with_device_users = true});
  EXPECT_EQ(without_processes.scan().devices[1].processes, std::nullopt);
}

TEST_F(ScannerTest, UsersThatAreNotAllKnownAreTold) {
  write_host();
  tree_.remove("neuron-ioctl");
  tree_.folder("proc/1/fd");
  for (int file = 0; file < 1025; ++file) tree_.link("proc/18/fd/" + std::to_string(file), "/dev/null");
  open_device(tree_, 17, 3, 1);
  const auto scan = Scanner(root_, kWithUsers).scan();
  EXPECT_EQ(scan.devices[0].processes, std::nullopt) << "somebody may use it";
  EXPECT_THAT(pids_of(scan.devices[1]), ElementsAre(17));
  EXPECT_THAT(sentences(scan.problems), ElementsAre(HasSubstr("some users of the devices are unknown")));
}

TEST_F(ScannerTest, BadFilesOfTheHostAreNamed) {
  write_host();
  tree_.fifo("sys/devices/virtual/dmi/id/product_name");
  tree_.remove("sys/devices/virtual/dmi/id/board_asset_tag");
  tree_.folder("sys/devices/virtual/dmi/id/board_asset_tag");
  tree_.write("sys/module/neuron/version", std::string(5000, '2'));
  const auto scan = scanner_.scan();
  EXPECT_EQ(scan.instance_type, "");
  EXPECT_EQ(scan.instance_id, "");
  EXPECT_EQ(scan.driver_version, "");
  EXPECT_THAT(scan.problems, SizeIs(3));
  EXPECT_THAT(scan.devices, SizeIs(2));
}

TEST_F(ScannerTest, FoldersReplacedByFiles) {
  tree_.write("sys/class/neuron_device", "");
  tree_.write("sys/bus/pci/devices", "");
  tree_.write("sys/class/infiniband", "");
  const auto scan = scanner_.scan();
  EXPECT_EQ(scan.layout, DriverLayout::none);
  EXPECT_THAT(scan.problems, SizeIs(3));
}

TEST_F(ScannerTest, DriverWithoutDevicesSaysSo) {
  tree_.write("sys/class/neuron_device/node_id_2", "-1\n");
  const auto scan = scanner_.scan();
  EXPECT_THAT(sentences(scan.problems), ElementsAre(HasSubstr("shows no device")));
  EXPECT_EQ(scan.problems[0].kind, model::ProblemKind::no_device);
}

TEST_F(ScannerTest, TooManyDevicesAreCut) {
  for (int index = 0; index < 70; ++index) write_device(tree_, index * 3, Generation::bare);
  const auto scan = scanner_.scan();
  ASSERT_THAT(scan.devices, SizeIs(64));
  EXPECT_EQ(scan.devices.back().index, 63 * 3);
  EXPECT_THAT(sentences(scan.problems), Contains(HasSubstr("more than 64 devices")));
  EXPECT_EQ(scan.layout, DriverLayout::bare);
}

TEST_F(ScannerTest, WithoutProcessorsHwlocIsOneProblem) {
  write_host();
  Scanner scanner(root_, {});
  const auto scan = scanner.scan();
  EXPECT_THAT(scan.numa_nodes, IsEmpty());
  EXPECT_THAT(sentences(scan.problems), ElementsAre(HasSubstr("hwloc: cannot load the machine below ")));
}

// The folder and one of two cores are there when the machine is first looked at.
TEST_F(ScannerTest, ADeviceThatIsStillBeingMadeIsSoonSeenWhole) {
  write_host();
  tree_.remove(device(0) + "neuron_core1");
  tree_.remove(device(0) + "stats");
  EXPECT_EQ(scanner_.scan().devices[0].cores.size(), 1U);
  write_device(tree_, 0, Generation::trn2_2_30);
  tree_.write(device(0) + "connected_devices", "1\n");
  tree_.write(device(0) + "stats/hardware/sram_ecc_uncorrected", "1\n");
  tree_.write(device(0) + "neuron_core1/stats/status/hw_nc_ue_error/total", "4\n");
  const auto scan = scanner_.scan();
  ASSERT_EQ(scan.devices[0].cores.size(), 2U);
  EXPECT_EQ(scan.devices[0].cores[1].hw_nc_ue_error, 4U);
  EXPECT_EQ(scan.devices[0].signals.sram_ecc_uncorrected, 1U);
}

}  // namespace
}  // namespace neuron::host
