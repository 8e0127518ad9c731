#include "tools/neuron-sim/faults.h"

#include <fcntl.h>
#include <gmock/gmock.h>

#include <map>

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

// Every path of the directory with kind, mode and content, without the simulator's own folder.
std::map<std::string, std::string> picture_of(const std::string& dir) {
  std::map<std::string, std::string> picture;
  for (fs::recursive_directory_iterator it(dir), end; it != end; ++it) {
    if (it->path().filename() == ".neuron-sim") {
      it.disable_recursion_pending();
      continue;
    }
    std::string& entry = picture[it->path().string()];
    if (it->is_symlink()) {
      entry = "-> " + fs::read_symlink(it->path()).string();
    } else {
      entry =
          std::to_string(mode_of(it->path().string())) + (it->is_regular_file() ? text_of(it->path().string()) : "");
    }
  }
  return picture;
}

class FaultsTest : public ::testing::Test {
 protected:
  FaultsTest() : host_("trn2.3xlarge") { host_.write(); }
  [[nodiscard]] std::string device(const std::string& path) const {
    return host_.path() + "/sys/class/neuron_device/neuron0/" + path;
  }
  [[nodiscard]] std::string message(const std::string& target, const std::vector<std::string>& actions) const {
    const auto applied = apply_fault(host_.path(), target, actions);
    return applied ? std::string() : applied.error().message;
  }
  FakeHost host_;
};

TEST_F(FaultsTest, ValuesOfEachKindOfTarget) {
  host_.set("neuron0", "sram_ecc_uncorrected=1", "unhealthy_components=hbm,link_efa", "heartbeat=18", "core_count=6");
  EXPECT_EQ(text_of(device("stats/hardware/sram_ecc_uncorrected")), "1\n");
  EXPECT_EQ(text_of(device("stats/hardware/health_status/unhealthy_components")), "hbm,link_efa\n");
  EXPECT_EQ(text_of(device("stats/hardware/health_status/healthcheck_heartbeat")), "18\n");
  EXPECT_EQ(text_of(device("core_count")), "6");
  EXPECT_EQ(mode_of(device("core_count")), 0444U);
  host_.set("neuron0/core3", "device_mem=4096", "hw_hbm_ue_error=2");
  EXPECT_EQ(text_of(device("neuron_core3/stats/memory_usage/device_mem/total")), "4096\n");
  EXPECT_EQ(text_of(device("neuron_core3/stats/status/hw_hbm_ue_error/total")), "2\n");
  host_.set("rdmap16s25", "rx_drops=7", "p2p=", "no_completion_cmds=1");
  const std::string efa = host_.path() + "/sys/class/infiniband/rdmap16s25/";
  EXPECT_EQ(text_of(efa + "ports/1/hw_counters/rx_drops"), "7\n");
  EXPECT_EQ(text_of(efa + "hw_counters/no_completion_cmds"), "1\n");
  EXPECT_EQ(text_of(efa + "device/p2p"), "\n");
  host_.set("host", "driver_version=2.99.0.0", "lnc=1");
  EXPECT_EQ(text_of(host_.path() + "/sys/module/neuron/version"), "2.99.0.0\n");
  EXPECT_EQ(text_of(host_.path() + "/opt/aws/neuron/logical_nc_config"), "NEURON_LOGICAL_NC_CONFIG=1\n");
}

TEST_F(FaultsTest, EveryListedKeyOfThisDriverCanBeSet) {
  int set = 0;
  for (const auto& key : fault_keys()) {
    const std::string target = key.kind == TargetKind::host     ? "host"
                               : key.kind == TargetKind::device ? "neuron0"
                               : key.kind == TargetKind::core   ? "neuron0/core7"
                                                                : "rdmap16s25";
    const auto applied = apply_fault(host_.path(), target, {key.name + "=1"});
    const bool old_driver_only = key.name.ends_with("_ecc_err_count");
    const bool ultraserver_only = key.name.starts_with("ultraserver");
    EXPECT_EQ(applied.has_value(), !old_driver_only && !ultraserver_only) << key.name;
    set += applied ? 1 : 0;
    EXPECT_THAT(list_faults(), HasSubstr("  " + key.name + " "));
  }
  EXPECT_GT(set, 80);
}

TEST_F(FaultsTest, HealUndoesEverythingExactly) {
  const auto before = picture_of(host_.path());
  host_.set("neuron0", "sram_ecc_uncorrected=1", "sram_ecc_uncorrected=2", "garbage", "core_count");
  host_.set("neuron0/core0", "device_mem=1", "unreadable", "stats/tensor_engine/pe_cntrs");
  host_.set("neuron0", "fifo", "reset", "huge", "connected_devices", "empty", "serial_number", "remove", "power");
  host_.set("rdmap16s25", "drop-node", "unbind");
  host_.set("neuron0", "vanish");
  host_.set("host", "lnc=2", "remove", "proc/cpuinfo");
  EXPECT_TRUE(picture_of(host_.path()) != before);
  host_.set("host", "heal");
  const auto after = picture_of(host_.path());
  for (const auto& [path, entry] : before) {
    const auto found = after.find(path);
    EXPECT_TRUE(found != after.end() && found->second == entry) << path;
  }
  EXPECT_EQ(after.size(), before.size());
}

TEST_F(FaultsTest, HealOfOneTargetLeavesTheOthers) {
  host_.set("neuron0", "sram_ecc_uncorrected=1").set("rdmap16s25", "rx_drops=7").set("neuron0/core1", "hw_error=3");
  host_.set("neuron0", "heal");
  EXPECT_EQ(text_of(device("stats/hardware/sram_ecc_uncorrected")), "0\n");
  EXPECT_EQ(text_of(device("neuron_core1/stats/status/hw_error/total")), "0\n");
  EXPECT_EQ(text_of(host_.path() + "/sys/class/infiniband/rdmap16s25/ports/1/hw_counters/rx_drops"), "7\n");
}

TEST_F(FaultsTest, AVanishedDeviceIsGoneAndComesBack) {
  host_.set("neuron0", "vanish");
  for (const char* path : {"/sys/class/neuron_device/neuron0", "/sys/devices/virtual/neuron_device/neuron0",
                           "/dev/neuron0", "/neuron-ioctl/neuron0.json"}) {
    EXPECT_FALSE(is_there(host_.path() + path)) << path;
  }
  EXPECT_THAT(message("neuron0", {"reset=2"}), HasSubstr("heal"));
  host_.set("neuron0", "heal");
  EXPECT_EQ(text_of(device("core_count")), "8");
  EXPECT_TRUE(is_there(host_.path() + "/dev/neuron0"));
}

TEST_F(FaultsTest, AnUnboundInterfaceKeepsItsPciFunction) {
  const std::string function = host_.path() + "/sys/bus/pci/devices/0000:10:19.0";
  host_.set("rdmap16s25", "unbind");
  EXPECT_TRUE(is_there(function + "/vendor"));
  EXPECT_FALSE(is_there(function + "/driver"));
  EXPECT_FALSE(is_there(function + "/infiniband"));
  EXPECT_FALSE(is_there(host_.path() + "/sys/class/infiniband/rdmap16s25"));
  EXPECT_FALSE(is_there(host_.path() + "/dev/infiniband/uverbs0"));
  host_.set("rdmap16s25", "heal");
  EXPECT_TRUE(is_there(function + "/driver"));
  EXPECT_TRUE(is_there(host_.path() + "/dev/infiniband/uverbs0"));
  host_.set("rdmap16s25", "vanish");
  EXPECT_FALSE(is_there(function));
}

TEST_F(FaultsTest, BrokenFilesOfEveryKind) {
  host_.set("neuron0", "garbage", "reset", "huge", "serial_number", "empty", "power", "fifo", "core_count");
  host_.set("neuron0", "unreadable", "connected_devices", "remove", "fw_build");
  EXPECT_THAT(text_of(device("reset")), HasSubstr("not a number"));
  EXPECT_EQ(mode_of(device("reset")), 0600U);
  EXPECT_EQ(fs::file_size(device("info/serial_number")), 1U << 20U);
  EXPECT_EQ(text_of(device("stats/power/utilization")), "");
  EXPECT_TRUE(fs::is_fifo(device("core_count")));
  EXPECT_TRUE(fs::is_directory(device("connected_devices")));
  EXPECT_FALSE(is_there(device("fw_build")));
  host_.set("neuron0", "connected_devices=1, 2");  // a value again where the folder is
  EXPECT_EQ(text_of(device("connected_devices")), "1, 2\n");
}

TEST_F(FaultsTest, ProcessesOfRecordedAnswers) {
  host_.set("neuron0", "apps=4290:3:16384:1782579,4291");
  EXPECT_THAT(text_of(host_.path() + "/neuron-ioctl/neuron0.json"),
              HasSubstr("\"apps\": [ { \"pid\": 4290, \"nc_lock_map\": 3, \"host_mem_bytes\": 16384, "
                        "\"device_mem_bytes\": 1782579 }, { \"pid\": 4291, \"nc_lock_map\": 0, "
                        "\"host_mem_bytes\": 0, \"device_mem_bytes\": 0 } ]"));
  host_.set("neuron0", "apps=");
  EXPECT_THAT(text_of(host_.path() + "/neuron-ioctl/neuron0.json"), HasSubstr("\"apps\": []"));
  EXPECT_THAT(message("neuron0", {"apps=x"}), HasSubstr("PID"));
}

TEST_F(FaultsTest, MistakesAreNamed) {
  EXPECT_THAT(message("neuron0", {"sram_ecc_uncorected=1"}), HasSubstr("did you mean sram_ecc_uncorrected"));
  EXPECT_THAT(message("neuron0", {"explode"}), HasSubstr("neither KEY=VALUE nor a verb"));
  EXPECT_THAT(message("neuron0", {"garbage"}), HasSubstr("needs a KEY"));
  EXPECT_THAT(message("neuron0", {}), HasSubstr("nothing to do"));
  EXPECT_THAT(message("neuron7", {"vanish"}), HasSubstr("does not exist"));
  EXPECT_THAT(message("neuron00", {"vanish"}), HasSubstr("no target"));
  EXPECT_THAT(message("neuron0/core9", {"hw_error=1"}), HasSubstr("neuron_core9"));
  EXPECT_THAT(message("neuron0/core1", {"vanish"}), HasSubstr("only neuron<N>"));
  EXPECT_THAT(message("neuron0", {"unbind"}), HasSubstr("EFA"));
  EXPECT_THAT(message("rdmap1s1", {"heal"}), HasSubstr("rdmap16s25"));
  EXPECT_THAT(message("neuron0", {"hbm_ecc_err_count=1"}), HasSubstr("not part of this driver version"));
  EXPECT_THAT(message("../neuron0", {"vanish"}), HasSubstr("is not host"));
  EXPECT_THAT(message("neuron0", {"remove", "../../x"}), HasSubstr("leads out"));
  EXPECT_THAT(message("host", {"remove", "/etc/passwd"}), HasSubstr("leads out"));
}

TEST_F(FaultsTest, LinesOfTheKernelLog) {
  const std::string log = host_.path() + "/dev/kmsg";
  host_.set("neuron0", "hw_err=SRAM_UNCORRECTABLE_ERROR");
  host_.set("neuron0/core1", "hw_err=HANG_ON_COLLECTIVES");
  host_.set("host", "kernel_log=two\nlines\\");
  const std::string text = text_of(log);
  EXPECT_THAT(text, ::testing::ContainsRegex("^3,1,[0-9]+,-;[^ ]+ NEURON_HW_ERR=SRAM_UNCORRECTABLE_ERROR "));
  EXPECT_THAT(text, ::testing::ContainsRegex(" nd-id=0 serial-num=[0-9a-f]+ action=TERMINATE_INSTANCE\n3,2,"));
  EXPECT_THAT(text, ::testing::ContainsRegex("HANG_ON_COLLECTIVES [^\n]+ nd-id=0 nc-id=1 serial-num=[0-9a-f]+\n3,3,"));
  EXPECT_THAT(text, HasSubstr(",-;two\\x0alines\\x5c\n"));
  host_.set("neuron0/core1", "heal");
  EXPECT_THAT(text_of(log), ::testing::AllOf(HasSubstr("SRAM"), ::testing::Not(HasSubstr("HANG"))));
  host_.set("neuron0", "heal");
  EXPECT_THAT(text_of(log), ::testing::AllOf(HasSubstr("two"), ::testing::Not(HasSubstr("SRAM"))));
  host_.set("neuron0", "hw_err=DMA_ERROR nd-id=7");
  EXPECT_THAT(text_of(log), HasSubstr("NEURON_HW_ERR=DMA_ERROR nd-id=7\n"));
  host_.set("host", "heal");
  EXPECT_EQ(text_of(log), "") << "as on a fresh node, where it can be read and says nothing";
  host_.set("host", "remove", "dev/kmsg").set("host", "heal");
  EXPECT_TRUE(is_there(log));
  EXPECT_THAT(message("host", {"remove", "kernel_log"}), HasSubstr("dev/kmsg"));
}

TEST_F(FaultsTest, TheClassFilesOfOneUltraServerStateGoTogether) {
  FakeHost server("trn2u.48xlarge");
  server.write();
  const std::string folder = server.path() + "/sys/class/neuron_device/";
  server.set("host", "ultraserver=4:3");
  EXPECT_EQ(text_of(folder + "node_id_4"), "3\n");
  EXPECT_EQ(text_of(folder + "node_id_2"), "1\n");
  EXPECT_NE(text_of(folder + "server_id_2"), text_of(folder + "server_id_4")) << "the second pair has an id of its own";
  server.set("host", "ultraserver=busy");
  EXPECT_EQ(text_of(folder + "ultraserver_mode"), "busy\n");
  EXPECT_EQ(text_of(folder + "node_id_2"), "busy\n");
  EXPECT_EQ(text_of(folder + "server_id_4"), "0000000000000000\n");
  server.set("host", "heal");
  EXPECT_EQ(text_of(folder + "ultraserver_mode"), "1,3,4\n");
  const auto refused = apply_fault(server.path(), "host", {"ultraserver=3"});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("4:3 for node 3 of 4"));
  EXPECT_THAT(message("host", {"ultraserver=busy"}), HasSubstr("not part of this driver"));
}

TEST_F(FaultsTest, AKernelLogOfSomebodyElseIsLeftAlone) {
  fs::rename(host_.path() + "/dev", host_.path() + "/dev-away");
  fs::create_directory_symlink("/dev", host_.path() + "/dev");
  EXPECT_THAT(message("neuron0", {"hw_err=DMA_ERROR"}), HasSubstr("dev/kmsg"));
  fs::remove(host_.path() + "/dev");
  fs::rename(host_.path() + "/dev-away", host_.path() + "/dev");
  fs::remove(host_.path() + "/dev/kmsg");
  fs::create_directory(host_.path() + "/dev/kmsg");
  EXPECT_THAT(message("neuron0", {"hw_err=DMA_ERROR"}), HasSubstr("not a regular file"));
}

TEST_F(FaultsTest, ABadFormAnywhereChangesNothing) {
  EXPECT_NE(message("neuron0", {"sram_ecc_uncorrected=1", "explode"}), "");
  EXPECT_EQ(text_of(device("stats/hardware/sram_ecc_uncorrected")), "0\n");
}

TEST_F(FaultsTest, LinksThatLeaveTheHostAreNotFollowed) {
  const std::string outside = host_.path() + "-outside";
  fs::create_directories(outside);
  std::ofstream(outside + "/file") << "keep";
  fs::create_directory_symlink(outside, host_.path() + "/way-out");
  EXPECT_NE(message("host", {"way-out/file=1"}), "");
  EXPECT_NE(message("host", {"remove", "way-out/file"}), "");
  EXPECT_EQ(text_of(outside + "/file"), "keep");
  fs::remove_all(outside);
}

TEST_F(FaultsTest, OtherDirectoriesAreRefused) {
  const auto applied = apply_fault("/", "neuron0", {"reset=0"});
  ASSERT_FALSE(applied);
  EXPECT_EQ(applied.error().code, ErrorCode::failed_precondition);
}

TEST_F(FaultsTest, AReaderNeverSeesHalfAValue) {
  const int before = ::open(device("info/serial_number").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(before, 0);
  host_.set("neuron0", "serial_number=0");
  char text[32];
  EXPECT_EQ(::read(before, text, sizeof text), 17);  // whoever had it open still reads the whole former text
  ::close(before);
}

}  // namespace
}  // namespace neuron::sim
