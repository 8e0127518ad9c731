// Whole simulated hosts of all driver generations, read as neuron-top reads them.

#include "agent/host/usage_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "agent/core/complete.h"
#include "agent/host/scanner.h"
#include "test/fakes/fake_host.h"
#include "test/unit/host/small_host.h"
#include "test/unit/host/temp_tree.h"

namespace neuron::host {
namespace {

using fakes::FakeHost;
using model::UsageRequest;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Key;
using ::testing::Not;
using ::testing::Optional;
using ::testing::Pair;
using ::testing::SizeIs;
using namespace std::string_literals;

model::HostScan scan_of(const FsRoot& root) {
  Scanner::Options options;
  options.with_topology = false;
  return core::complete(Scanner(root, options).scan());
}

// One host, its scan at the beginning, and a reader that goes on.
struct Watched {
  explicit Watched(const std::string& path) : root(*FsRoot::open(path)), scan(scan_of(root)), reader(root) {}
  model::UsageSample read(const UsageRequest& request = {}) { return reader.read(scan, request, SteadyTime{}); }

  FsRoot root;
  model::HostScan scan;
  UsageReader reader;
};

constexpr const char* kBusy = "nc_time_in_use";

TEST(UsageReader, LiveCountersOfDriver230) {
  FakeHost host("trn2.48xlarge");
  host.write();
  host.set("neuron3/core5", "nc_time_in_use=1234", "flop_count=99", "inference_count=7", "device_mem=4096");
  host.set("neuron3", "power=POWER_STATUS_VALID,1789180860,1.00,3.00,2.00");
  Watched watched(host.path());
  UsageRequest request;
  request.flops = true;
  const auto sample = watched.read(request);
  EXPECT_EQ(sample.no_utilization, "");
  ASSERT_THAT(sample.devices, SizeIs(16));
  const auto& device = sample.devices[3];
  EXPECT_EQ(device.index, 3);
  EXPECT_THAT(device.power, Optional(model::PowerUsage{1, 3, 2}));
  ASSERT_THAT(device.cores, SizeIs(8));
  const auto& core = device.cores[5];
  EXPECT_EQ(core.physical_index, 5);
  EXPECT_THAT(core.busy_us, Optional(1234U));
  EXPECT_THAT(core.flops, Optional(99U));
  EXPECT_THAT(core.inferences, Optional(7U));
  EXPECT_THAT(core.device_memory_bytes, Optional(4096U));
  EXPECT_THAT(core.host_memory_bytes, Optional(266240U)) << "the driver's own";
  EXPECT_THAT(device.cores[4].busy_us, Optional(0U));
  // The next sample goes through the same handles and sees the new value.
  host.set("neuron3/core5", "nc_time_in_use=2000");
  EXPECT_THAT(watched.read().devices[3].cores[5].busy_us, Optional(2000U));
}

TEST(UsageReader, ExecutionsWhenAskedForAndLive) {
  constexpr auto kTimeout = static_cast<std::size_t>(model::ExecutionStatus::timeout);
  constexpr auto kSuccess = static_cast<std::size_t>(model::ExecutionStatus::success);
  UsageRequest request;
  request.executions = true;
  FakeHost live("trn2.48xlarge");
  live.write();
  live.set("neuron3/core5", "timeout=4");
  Watched watched(live.path());
  const auto sample = watched.read(request);
  EXPECT_THAT(sample.devices[3].cores[5].executions[kTimeout], Optional(4U));
  EXPECT_THAT(sample.devices[3].cores[5].executions[kSuccess], Optional(0U));
  EXPECT_FALSE(watched.read().devices[3].cores[5].executions[kTimeout]);
  FakeHost stale("trn1.32xlarge");
  stale.driver("2.27.4.0").write();
  EXPECT_FALSE(Watched(stale.path()).read(request).devices[0].cores[0].executions[kTimeout]);
}

TEST(UsageReader, StaleCountersAreUnknownNotIdle) {
  for (const char* driver : {"2.24.7.0", "2.26.5.0", "2.27.4.0", "2.28.0.0", "2.29.0.0"}) {
    FakeHost host("trn1.32xlarge");
    host.driver(driver).write();
    host.set("neuron0/core1", "nc_time_in_use=5", "device_mem=8");
    Watched watched(host.path());
    UsageRequest request;
    request.flops = true;
    const auto sample = watched.read(request);
    EXPECT_EQ(sample.no_utilization,
              "driver "s + driver + " counts busy time only when a process ends (live from 2.30.2)");
    EXPECT_FALSE(sample.devices[0].cores[1].busy_us) << driver;
    EXPECT_FALSE(sample.devices[0].cores[1].flops) << driver;
    EXPECT_THAT(sample.devices[0].cores[1].device_memory_bytes, Optional(8U)) << driver;
  }
}

TEST(UsageReader, Inferentia1AndTrainium3) {
  FakeHost first("inf1.6xlarge");
  first.write();
  const auto old = Watched(first.path()).read();
  EXPECT_THAT(old.no_utilization, HasSubstr("2.24.7.0"));
  EXPECT_THAT(old.devices, SizeIs(4));
  EXPECT_THAT(old.devices[0].cores[0].device_memory_bytes, Optional(0U));
  FakeHost third("trn3.48xlarge");
  third.write();
  const auto fresh = Watched(third.path()).read();
  EXPECT_EQ(fresh.no_utilization, "");
  EXPECT_THAT(fresh.devices[0].cores[0].busy_us, Optional(0U));
}

TEST(UsageReader, UnknownLayoutAndNoDriver) {
  FakeHost moved("trn2.48xlarge");
  moved.driver("2.31.7.0").write();
  const auto sample = Watched(moved.path()).read();
  EXPECT_EQ(sample.no_utilization, "driver 2.31.7.0 has a layout unknown to this program");
  EXPECT_THAT(sample.devices, SizeIs(16));
  EXPECT_FALSE(sample.devices[0].power);
  FakeHost bare("trn2.48xlarge");
  bare.without(sim::Part::driver).write();
  const auto nothing = Watched(bare.path()).read();
  EXPECT_EQ(nothing.no_utilization, "no Neuron driver");
  EXPECT_EQ(nothing.no_processes, "no Neuron devices");
  EXPECT_THAT(nothing.devices, IsEmpty());
  EXPECT_THAT(nothing.efas, SizeIs(16));
}

TEST(UsageReader, ReadsNoMoreThanTheViewShows) {
  FakeHost host("trn1.32xlarge");
  host.write();
  host.set("neuron1/core0", "stats/memory_usage/device_mem/tensors/total=11");
  host.set("neuron1", "stats/memory_usage/host_mem/dma_buffers/total=12");
  Watched watched(host.path());
  UsageRequest request;
  request.power = request.efa = false;
  auto sample = watched.read(request);
  EXPECT_THAT(sample.efas, IsEmpty());
  EXPECT_FALSE(sample.devices[1].power);
  EXPECT_FALSE(sample.devices[1].cores[0].flops);
  EXPECT_FALSE(sample.devices[1].cores[0].device_memory[1]);
  request.memory_kinds_of = {1};
  sample = watched.read(request);
  EXPECT_THAT(sample.devices[1].cores[0].device_memory[1], Optional(11U));
  EXPECT_THAT(sample.devices[1].host_memory[0], Optional(12U));
  EXPECT_FALSE(sample.devices[2].host_memory[0]);
  request.memory_kinds_of_all = true;
  EXPECT_THAT(watched.read(request).devices[2].host_memory[0], Optional(0U));
}

TEST(UsageReader, OneBrokenFileCostsOneValue) {
  for (const char* fault : {"fifo", "garbage", "huge", "empty", "unreadable", "remove"}) {
    FakeHost host("inf2.xlarge");
    host.write();
    Watched watched(host.path());
    EXPECT_TRUE(watched.read().devices[0].cores[0].busy_us);
    host.set("neuron0/core0", fault, kBusy);
    host.set("neuron0", fault, "power");
    auto sample = watched.read();
    EXPECT_FALSE(sample.devices[0].cores[0].busy_us) << fault;
    EXPECT_FALSE(sample.devices[0].power) << fault;
    EXPECT_TRUE(sample.devices[0].cores[0].device_memory_bytes) << fault;
    EXPECT_TRUE(sample.devices[0].cores[1].busy_us) << fault;
    EXPECT_EQ(sample.no_utilization, "") << fault;
    host.set("neuron0/core1", fault, kBusy);
    EXPECT_THAT(watched.read().no_utilization, HasSubstr("nc_time_in_use")) << fault;
    host.set("neuron0", "heal");
    EXPECT_TRUE(watched.read().devices[0].cores[0].busy_us) << fault;
  }
}

TEST(UsageReader, DeviceThatLeavesAndComesBack) {
  FakeHost host("trn1.32xlarge");
  host.write();
  Watched watched(host.path());
  EXPECT_TRUE(watched.read().devices[4].cores[0].busy_us);
  host.set("neuron4", "vanish");
  const auto sample = watched.read();
  ASSERT_THAT(sample.devices, SizeIs(16));
  ASSERT_THAT(sample.devices[4].cores, SizeIs(2));
  EXPECT_FALSE(sample.devices[4].cores[0].busy_us);
  EXPECT_FALSE(sample.devices[4].power);
  EXPECT_TRUE(sample.devices[5].cores[0].busy_us);
  host.set("neuron4", "heal");
  EXPECT_TRUE(watched.read().devices[4].cores[0].busy_us);
}

TEST(UsageReader, DeviceThatWasRegisteredAgainIsOpenedAnew) {
  TempTree tree;
  write_device(tree, 0, Generation::trn2_2_30);
  const std::string busy = "/neuron_core0/stats/other_info/nc_time_in_use/total";
  tree.write("sys/devices/virtual/neuron_device/neuron0" + busy, "10\n");
  Watched watched(tree.path());
  EXPECT_THAT(watched.read().devices[0].cores[0].busy_us, Optional(10U));
  // The old folder stays reachable through the handle, as a removed sysfs folder does.
  tree.move("sys/devices/virtual/neuron_device/neuron0", "gone/neuron0");
  write_device(tree, 0, Generation::trn2_2_30);
  tree.write("sys/devices/virtual/neuron_device/neuron0" + busy, "3\n");
  EXPECT_THAT(watched.read().devices[0].cores[0].busy_us, Optional(3U));
}

std::ptrdiff_t open_files() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return std::distance(begin(files), end(files));
}

TEST(UsageReader, HandlesDoNotPileUp) {
  FakeHost host("trn1.32xlarge");
  host.write();
  Watched watched(host.path());
  const auto before = open_files();
  static_cast<void>(watched.read());
  const auto first = open_files();
  EXPECT_EQ(first - before, 16 + 8);
  for (int i = 0; i < 3; ++i) static_cast<void>(watched.read());
  EXPECT_EQ(open_files(), first);
  watched.scan.devices.resize(2);
  watched.scan.efas.clear();
  static_cast<void>(watched.read());
  EXPECT_EQ(open_files(), before + 2);
}

TEST(UsageReader, EfaCounters) {
  FakeHost host("trn1.32xlarge");
  host.write();
  Watched watched(host.path());
  const std::string name = watched.scan.efas[2].name;
  host.set(name, "tx_bytes=77", "cmds_err=3");
  auto sample = watched.read();
  ASSERT_THAT(sample.efas, SizeIs(8));
  EXPECT_EQ(sample.efas[2].name, name);
  EXPECT_THAT(sample.efas[2].counters, Contains(Pair("tx_bytes", 77U)));
  EXPECT_THAT(sample.efas[2].counters, Contains(Pair("cmds_err", 3U)));
  EXPECT_THAT(sample.efas[2].counters, Contains(Pair("rx_drops", 0U)));
  EXPECT_THAT(sample.efas[2].counters, Contains(Key("rdma_read_bytes")));
  EXPECT_THAT(sample.efas[2].counters, Contains(Key("rdma_write_bytes")));
  EXPECT_THAT(sample.efas[2].counters, Not(Contains(Key("lifespan"))));
  EXPECT_THAT(sample.efas[2].counters, Not(Contains(Key("send_wrs"))));
  UsageRequest request;
  request.efa_every_counter = true;
  sample = watched.read(request);
  EXPECT_THAT(sample.efas[2].counters, Contains(Pair("send_wrs", 0U)));
  EXPECT_THAT(sample.efas[2].counters, Not(Contains(Key("lifespan"))));
  host.set(name, "fifo", "tx_bytes");
  EXPECT_THAT(watched.read().efas[2].counters, Not(Contains(Key("tx_bytes"))));
  host.set(name, "unbind");
  EXPECT_THAT(watched.read().efas[2].counters, IsEmpty());
  host.set(name, "heal");
  EXPECT_THAT(watched.read().efas[2].counters, Contains(Pair("tx_bytes", 0U)));
}

// Each read of a port counter is a command to the device, which a dead one does not answer for up to 30 s.
TEST(UsageReader, PortCountersOfADeadInterfaceAreNotAskedFor) {
  FakeHost host("trn1.32xlarge");
  host.write();
  Watched watched(host.path());
  const std::string name = watched.scan.efas[2].name;
  host.set(name, "no_completion_cmds=1", "tx_bytes=77", "cmds_err=3");
  auto sample = watched.read();
  EXPECT_THAT(sample.efas[2].counters, Contains(Pair("no_completion_cmds", 1U)));
  EXPECT_THAT(sample.efas[2].counters, Contains(Pair("cmds_err", 3U)));
  EXPECT_THAT(sample.efas[2].counters, Not(Contains(Key("tx_bytes"))));
  EXPECT_THAT(sample.efas[1].counters, Contains(Key("tx_bytes")));
  host.set(name, "heal");
  EXPECT_THAT(watched.read().efas[2].counters, Contains(Key("tx_bytes")));
}

TEST(UsageReader, AListOfCountersThatCouldNotBeReadIsReadAgain) {
  FakeHost host("trn1.32xlarge");
  host.write();
  const std::string name = Watched(host.path()).scan.efas[2].name;
  const std::filesystem::path efa = host.path() + "/sys/class/infiniband/" + name;
  for (const char* list : {"hw_counters", "ports/1/hw_counters"}) {
    Watched watched(host.path());
    std::filesystem::rename(efa / list, efa / "spoilt");
    std::ofstream(efa / list) << "no folder\n";
    auto sample = watched.read();
    EXPECT_THAT(sample.efas[2].counters, Not(Contains(Key("tx_bytes")))) << list << ": the device may be dead";
    std::filesystem::remove(efa / list);
    std::filesystem::rename(efa / "spoilt", efa / list);
    sample = watched.read();
    EXPECT_THAT(sample.efas[2].counters, IsSupersetOf({Key("no_completion_cmds"), Key("tx_bytes")})) << list;
    EXPECT_EQ(sample.efas[2].counters.size(), sample.efas[1].counters.size());
  }
  host.set(name, "garbage", "no_completion_cmds");
  EXPECT_THAT(Watched(host.path()).read().efas[2].counters, Not(Contains(Key("tx_bytes"))));
}

TEST(UsageReader, InterfaceWithoutNameIsLeftOut) {
  FakeHost host("trn1.32xlarge");
  host.write();
  Watched first(host.path());
  host.set(first.scan.efas[0].name, "unbind");
  EXPECT_THAT(Watched(host.path()).read().efas, SizeIs(7));
}

TEST(UsageReader, MachineTimesAndMemory) {
  FakeHost host("inf2.xlarge");
  host.file("proc/stat", "cpu  1 2 3 4 5 6 7 8 0 0\ncpu0 1 2 3 4\ncpu1 1 2 3 4\n");
  host.file("proc/meminfo", "MemTotal: 100 kB\nMemAvailable: 60 kB\n").write();
  const auto sample = Watched(host.path()).read();
  EXPECT_THAT(sample.cpu, Optional(model::CpuTicks{3, 16, 9, 8}));
  EXPECT_EQ(sample.cpu_count, 2);
  ASSERT_TRUE(sample.memory);
  EXPECT_EQ(sample.memory->available_bytes, 61440U);
  EXPECT_FALSE(sample.memory->swap_total_bytes);
}

TEST(UsageReader, Processes) {
  FakeHost host("inf2.48xlarge");
  host.file("proc/4290/cmdline", "python3\0train.py\0"s);
  host.file("proc/4290/environ", "A=b\0NEURON_PROCESS_TAG=train\0"s);
  host.file("proc/4290/stat", "4290 (python3) S 1 2 2 0 -1 4194304 1 2 3 4 555 66 0 0 20 0 8 0 7777 1000 50\n");
  host.file("proc/4290/statm", "300 20 5 1 0 40 0\n").write();
  host.set("neuron0", "apps=4290:3:16384:100").set("neuron1", "apps=4290:1,17");
  Watched watched(host.path());
  const auto sample = watched.read();
  EXPECT_EQ(sample.no_processes, "");
  ASSERT_THAT(sample.processes, SizeIs(2));
  EXPECT_EQ(sample.processes[0].pid, 17);
  EXPECT_EQ(sample.processes[0].command, "");  // it has ended, or not accessible
  EXPECT_FALSE(sample.processes[0].user_ticks);
  model::ProcessUsage expected;
  expected.pid = 4290;
  expected.command = "python3 train.py";
  expected.tag = "train";
  expected.user_ticks = 555;
  expected.system_ticks = 66;
  expected.resident_bytes = 81920;
  expected.start_ticks = 7777;
  EXPECT_EQ(sample.processes[1], expected);
  host.set("host", "fifo", "proc/4290/environ").set("host", "garbage", "proc/4290/stat");
  expected.tag.reset();
  expected.user_ticks.reset();
  expected.system_ticks.reset();
  expected.start_ticks.reset();
  EXPECT_EQ(watched.read().processes[1], expected);
}

TEST(UsageReader, ProcessesThatNobodyNames) {
  FakeHost host("inf2.xlarge");
  host.without(sim::Part::ioctl).write();
  const auto sample = Watched(host.path()).read();
  EXPECT_THAT(sample.processes, IsEmpty());
  EXPECT_EQ(sample.no_processes, "no recorded driver answers in neuron-ioctl/");
}

// In a container the driver's numbers are those of other processes.
TEST(UsageReader, ProcOfAContainerIsNotAsked) {
  FakeHost host("inf2.xlarge");
  host.file("proc/17/cmdline", "other\0"s).write();
  host.set("neuron0", "apps=17");
  std::filesystem::create_directories(host.path() + "/proc/self/ns");
  std::filesystem::create_symlink("pid:[4026532999]", host.path() + "/proc/self/ns/pid");
  const auto sample = Watched(host.path()).read();
  ASSERT_THAT(sample.processes, SizeIs(1));
  EXPECT_EQ(sample.processes[0].command, "");
}

TEST(UsageReader, TimeIsTheCallers) {
  FakeHost host("inf2.xlarge");
  host.write();
  Watched watched(host.path());
  const SteadyTime time{std::chrono::seconds(42)};
  EXPECT_EQ(watched.reader.read(watched.scan, {}, time).at, time);
}

}  // namespace
}  // namespace neuron::host
