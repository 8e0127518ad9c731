// A workload on simulated hosts, read back as neuron-top and neuron-ls do.

#include "tools/neuron-sim/load_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "agent/core/complete.h"
#include "agent/core/usage_rates.h"
#include "agent/host/proc_files.h"
#include "agent/host/scanner.h"
#include "agent/host/usage_reader.h"
#include "test/fakes/fake_host.h"
#include "tools/neuron-sim/load_workload.h"

namespace neuron::sim {
namespace {

using fakes::FakeHost;
using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::Not;
using ::testing::Optional;
using ::testing::SizeIs;

// What a program with --root sees: scan, and a sample at a time that the test makes up.
struct Seen {
  model::HostScan scan;
  model::UsageSample sample;
};

Seen look(const std::string& path, SteadyTime now = {}) {
  const auto root = *host::FsRoot::open(path);
  host::Scanner::Options options;
  options.with_topology = false;
  Seen seen;
  seen.scan = core::complete(host::Scanner(root, options).scan());
  model::UsageRequest request;
  request.flops = request.memory_kinds_of_all = true;
  seen.sample = host::UsageReader(root).read(seen.scan, request, now);
  return seen;
}

// One load, step by step.
class Playing {
 public:
  explicit Playing(const std::string& path, std::uint64_t seed = 1)
      : host_(*LoadHost::open(path)), workload_(host_.shape(), seed) {}
  Activity play(int steps, std::chrono::milliseconds step = 1s) {
    Activity last;
    for (int i = 0; i < steps; ++i) {
      last = workload_.step(step);
      const auto written = host_.write(last);
      EXPECT_TRUE(written) << written.error().message;
    }
    EXPECT_TRUE(host_.finish());
    return last;
  }
  [[nodiscard]] const LoadHost& host() const { return host_; }

 private:
  LoadHost host_;
  Workload workload_;
};

TEST(LoadHost, ShapeOfTheHost) {
  FakeHost host("trn1.32xlarge");
  host.missing({3}).write();
  const auto opened = LoadHost::open(host.path());
  ASSERT_TRUE(opened);
  EXPECT_THAT(opened->shape().devices, SizeIs(15));
  EXPECT_THAT(opened->shape().devices[0].cores, ElementsAre(0, 1));
  ASSERT_THAT(opened->shape().efas, SizeIs(8));
  EXPECT_EQ(opened->shape().efas[0].name, "rdmap16s26");  // the one beside device 0
  EXPECT_EQ(opened->shape().core_memory_bytes, std::uint64_t{16} << 30U);
  EXPECT_EQ(opened->shape().cpus, 128);
  EXPECT_TRUE(opened->counts_live());
}

TEST(LoadHost, NeedsASimulatedHostWithDevices) {
  const auto foreign = LoadHost::open("/tmp");
  ASSERT_FALSE(foreign);
  EXPECT_EQ(foreign.error().code, ErrorCode::failed_precondition);
  FakeHost host("trn2.48xlarge");
  host.driver("2.31.7.0").write();
  ASSERT_FALSE(LoadHost::open(host.path()));
}

TEST(LoadHost, AProgramSeesABusyNode) {
  FakeHost host("trn2.48xlarge");
  host.write();
  Playing playing(host.path());
  playing.play(9);
  const SteadyTime time;
  const Seen before = look(host.path(), time);
  const Activity activity = playing.play(2);
  const Seen now = look(host.path(), time + 2s);
  EXPECT_THAT(now.scan.problems, IsEmpty());
  for (const auto& device : now.scan.devices) EXPECT_THAT(device.problems, IsEmpty());
  EXPECT_EQ(now.sample.no_utilization, "");
  EXPECT_EQ(now.sample.no_processes, "");
  EXPECT_THAT(now.sample.processes, SizeIs(activity.processes.size()));
  const auto rates = core::usage_rates(before.sample, now.sample, now.scan);
  EXPECT_THAT(rates.mean_utilization, Optional(AllOf(Ge(20), Le(90))));
  for (const auto& core : rates.cores) {
    EXPECT_TRUE(core.utilization_percent && core.flops_per_second && core.device_memory_bytes) << core.id;
  }
  double sent = 0;
  for (const auto& efa : rates.efas) sent += efa.tx_bytes_per_second.value_or(-1);
  EXPECT_GT(sent, 1e9);
  ASSERT_TRUE(rates.cpu);
  EXPECT_GT(rates.cpu->user_percent, 0);
  ASSERT_TRUE(rates.all_processes);
  EXPECT_GT(*rates.all_processes->user_percent, 0);
  EXPECT_LE(*rates.all_processes->user_percent, rates.cpu->user_percent + 0.1);
  ASSERT_TRUE(now.sample.memory);
  EXPECT_LT(now.sample.memory->available_bytes, now.sample.memory->total_bytes);
}

TEST(LoadHost, FilesOfOneMomentAgree) {
  FakeHost host("trn2.48xlarge");
  host.write();
  Playing playing(host.path());
  playing.play(30);
  const Seen seen = look(host.path());
  for (std::size_t i = 0; i < seen.scan.devices.size(); ++i) {
    std::uint64_t device_bytes = 0;
    for (const auto& core : seen.sample.devices[i].cores) {
      std::uint64_t sum = 0;
      for (const auto& kind : core.device_memory) sum += kind.value_or(0);
      EXPECT_THAT(core.device_memory_bytes, Optional(sum));
      device_bytes += sum;
    }
    ASSERT_TRUE(seen.scan.devices[i].processes);
    for (const auto& process : *seen.scan.devices[i].processes) device_bytes -= process.device_memory_bytes.value_or(0);
    EXPECT_EQ(device_bytes, 0U) << i;
    EXPECT_TRUE(seen.sample.devices[i].power) << i;
  }
  for (const auto& process : seen.sample.processes) {
    EXPECT_NE(process.command, "") << process.pid;
    EXPECT_TRUE(process.user_ticks && process.resident_bytes && process.start_ticks) << process.pid;
  }
}

// Text of all regular files, by path.
std::map<std::string, std::string> everything(const std::string& path) {
  std::map<std::string, std::string> texts;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
    if (!entry.is_regular_file() || entry.is_symlink()) continue;
    const auto name = std::filesystem::relative(entry.path(), path).string();
    const auto root = *host::FsRoot::open(path);
    texts[name] = root.read_file(name, 1U << 20U).value_or("?");
  }
  return texts;
}

TEST(LoadHost, SameSeedSameHost) {
  FakeHost first("trn1.2xlarge");
  first.write();
  FakeHost second("trn1.2xlarge");
  second.write();
  Playing(first.path(), 7).play(60);
  Playing(second.path(), 7).play(60);
  EXPECT_EQ(everything(first.path()), everything(second.path()));
  Playing(second.path(), 8).play(1);
  EXPECT_NE(everything(first.path()), everything(second.path()));
}

TEST(LoadHost, ASecondLoadGoesOnAndLeavesNoProcessBehind) {
  FakeHost host("inf2.48xlarge");
  host.write();
  Playing(host.path(), 1).play(20);
  const Seen before = look(host.path());
  Playing(host.path(), 99).play(20);
  const Seen now = look(host.path());
  int below_proc = 0;
  for (const auto& entry : std::filesystem::directory_iterator(host.path() + "/proc")) {
    if (entry.is_directory() && entry.path().filename() != "1") ++below_proc;
  }
  EXPECT_EQ(below_proc, static_cast<int>(now.sample.processes.size()));
  for (std::size_t i = 0; i < now.sample.devices.size(); ++i) {
    EXPECT_GE(now.sample.devices[i].cores[0].busy_us, before.sample.devices[i].cores[0].busy_us);
  }
  EXPECT_GT(now.sample.cpu->user, before.sample.cpu->user);
}

// Where the driver does not answer, proc says who uses which device: the same, without cores and memory.
TEST(LoadHost, ProcTellsTheSameUsersAsTheDriver) {
  FakeHost host("trn1.32xlarge");
  host.write();
  Playing(host.path()).play(30);
  const auto root = *host::FsRoot::open(host.path());
  std::vector<std::pair<int, int>> told;
  for (const auto& device : look(host.path()).scan.devices) {
    for (const auto& process : *device.processes) told.emplace_back(device.index, process.pid);
  }
  std::sort(told.begin(), told.end());
  EXPECT_THAT(told, Not(IsEmpty()));
  const auto found = host::find_device_users(root);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->gap, "");
  std::vector<std::pair<int, int>> seen;
  for (const auto& user : found->users) seen.emplace_back(user.device, user.pid);
  EXPECT_EQ(seen, told);
}

TEST(LoadHost, OldDriversCountWhenAProcessEnds) {
  FakeHost host("trn1.2xlarge");
  host.driver("2.27.4.0").write();
  Playing playing(host.path());
  EXPECT_FALSE(playing.host().counts_live());
  const auto busy = [&] {
    const auto root = *host::FsRoot::open(host.path());
    const auto folder = std::string("sys/class/neuron_device/neuron0/neuron_core0/stats/other_info/nc_time_in_use/");
    EXPECT_EQ(*root.read_attribute(folder + "total") == "0", *root.read_attribute(folder + "present") == "0");
    return *root.read_attribute(folder + "total");
  };
  playing.play(20);
  EXPECT_EQ(busy(), "0");
  EXPECT_THAT(look(host.path()).sample.no_utilization, Not(IsEmpty()));
  playing.play(600);
  EXPECT_NE(busy(), "0");
}

TEST(LoadHost, GoesOnWhileDevicesVanishAndFilesBreak) {
  FakeHost host("trn1.32xlarge");
  host.write();
  Playing playing(host.path());
  playing.play(5);
  host.set("neuron0", "vanish").set("rdmap16s26", "unbind").set("neuron1/core0", "fifo", "nc_time_in_use");
  host.set("neuron2", "garbage", "apps").set("host", "garbage", "proc/stat");
  playing.play(5);
  Seen seen = look(host.path());
  EXPECT_THAT(seen.scan.devices, SizeIs(15));
  EXPECT_FALSE(seen.sample.devices[0].cores[0].busy_us);
  EXPECT_TRUE(seen.sample.devices[0].cores[1].busy_us);
  host.set("host", "heal");
  playing.play(5);
  seen = look(host.path());
  EXPECT_THAT(seen.scan.devices, SizeIs(16));
  EXPECT_TRUE(seen.sample.devices[1].cores[0].busy_us);
}

TEST(LoadHost, EndsWhenTheHostIsTakenAway) {
  FakeHost host("trn1.2xlarge");
  host.write();
  auto opened = LoadHost::open(host.path());
  ASSERT_TRUE(opened);
  Workload workload(opened->shape(), 1);
  std::filesystem::remove_all(host.path() + "/.neuron-sim");
  EXPECT_FALSE(opened->write(workload.step(1s)));
}

TEST(LoadHost, EveryTypeAndDriver) {
  for (const char* type : {"inf1.24xlarge", "inf2.24xlarge", "trn1n.32xlarge", "trn2.3xlarge", "trn3.48xlarge"}) {
    for (const char* driver : {"", "2.26.5.0", "2.28.0.0"}) {
      if (std::string(type).starts_with("inf1") && *driver != '\0') continue;
      FakeHost host(type);
      host.driver(driver).write();
      Playing(host.path()).play(8);
      const Seen seen = look(host.path());
      EXPECT_THAT(seen.scan.problems, IsEmpty()) << type << driver;
      EXPECT_THAT(seen.sample.processes, Not(IsEmpty())) << type << driver;
      EXPECT_TRUE(seen.sample.devices[0].cores[0].device_memory_bytes) << type << driver;
    }
  }
}

}  // namespace
}  // namespace neuron::sim
