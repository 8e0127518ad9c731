// What keeps the list of rules complete: every reader sees the same in a captured host as in the host itself.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/core/catalogue.h"
#include "agent/core/complete.h"
#include "agent/host/neuron_sysfs.h"
#include "agent/host/preflight_facts.h"
#include "agent/host/proc_files.h"
#include "agent/host/root_source.h"
#include "agent/host/scanner.h"
#include "agent/host/usage_reader.h"
#include "agent/preflight/preflight.h"
#include "test/unit/gather/capture_of.h"
#include "test/unit/host/temp_tree.h"
#include "tools/neuron-gather/capture.h"
#include "tools/neuron-gather/output.h"
#include "tools/neuron-sim/faults.h"
#include "tools/neuron-sim/host_plan.h"

namespace neuron::gather {
namespace {

using host::FsRoot;
using host::TempTree;

bool remembered_by_nobody(const Unfinished&) {
  return true;
}

// What all readers say of one directory.
struct Seen {
  model::HostScan scan;
  model::UsageSample usage;
  std::vector<preflight::Finding> findings;
  std::optional<host::DeviceUsers> users;
  std::vector<std::optional<std::uint64_t>> core_memory;
};

Seen look_at(const std::string& directory) {
  Seen seen;
  const FsRoot root = *FsRoot::open(directory);
  seen.scan = host::Scanner(root, {.kernel_log = host::KernelLogUse::where_allowed}).scan();
  model::UsageRequest everything;
  everything.flops = everything.memory_kinds_of_all = true;
  seen.usage = host::UsageReader(root).read(seen.scan, everything, SteadyTime{});
  seen.findings = preflight::preflight(core::complete(seen.scan), host::gather_preflight_facts(root));
  if (auto users = host::find_device_users(root)) seen.users = *std::move(users);
  for (const auto& device : seen.scan.devices) {
    for (const auto& core : device.cores) {
      seen.core_memory.push_back(host::process_memory_of_core(root, device.index, core.physical_index));
    }
  }
  return seen;
}

void expect_same(const Seen& seen, const Seen& original) {
  EXPECT_EQ(seen.scan, original.scan);
  EXPECT_EQ(seen.usage.devices, original.usage.devices);
  EXPECT_EQ(seen.usage.efas, original.usage.efas);
  EXPECT_EQ(seen.usage.cpu, original.usage.cpu);
  EXPECT_EQ(seen.usage.cpu_count, original.usage.cpu_count);
  EXPECT_EQ(seen.usage.memory, original.usage.memory);
  EXPECT_EQ(seen.usage.processes, original.usage.processes);
  EXPECT_EQ(seen.usage.no_utilization, original.usage.no_utilization);
  EXPECT_EQ(seen.usage.no_processes, original.usage.no_processes);
  EXPECT_EQ(seen.core_memory, original.core_memory);
  EXPECT_EQ(seen.users, original.users);
  EXPECT_EQ(seen.findings, original.findings);
}

class ReadBack : public ::testing::Test {
 protected:
  void expect_read_back(const sim::HostPlan& plan, Commands commands = Commands::leave_out) {
    const auto written = sim::write_host(plan, host_.path());
    ASSERT_TRUE(written) << written.error().message;
    expect_host_read_back(commands);
  }
  // Through an archive, as it is sent; the capture of the capture is the same file.
  void expect_host_read_back(Commands commands = Commands::leave_out) {
    const Seen original = look_at(host_.path());
    const Capture capture = capture_of(host_.path(), commands);
    EXPECT_THAT(capture.unreadable(), ::testing::IsEmpty());
    ASSERT_TRUE(write_output(capture, out_.at("one.tar.gz"), remembered_by_nobody));
    const auto source = host::RootSource::open(out_.at("one.tar.gz"));
    ASSERT_TRUE(source) << source.error().message;
    expect_same(look_at(source->directory()), original);
    ASSERT_TRUE(write_output(capture_of(source->directory(), commands), out_.at("two.tar.gz"), remembered_by_nobody));
    const std::string again = *out_.root().read_file("two.tar.gz", 64U << 20U);
    EXPECT_TRUE(again == *out_.root().read_file("one.tar.gz", 64U << 20U)) << "not the same bytes";
  }

  TempTree host_{TempTree::Place::memory};
  TempTree out_{TempTree::Place::memory};
};

TEST_F(ReadBack, TheKernelLogIsWhatItSaysOfNeuron) {
  sim::HostPlan plan;
  plan.instance_type = "trn1.32xlarge";
  ASSERT_TRUE(sim::write_host(plan, host_.path()));
  const auto set = [&](const std::string& target, const std::string& action) {
    ASSERT_TRUE(sim::apply_fault(host_.path(), target, {action})) << action;
  };
  set("neuron3", "hw_err=DMA_ERROR");
  set("host", "kernel_log=Neuron Driver Started with Version:2.30 at: secret");
  set("neuron4", "hw_err=SRAM_UNCORRECTABLE_ERROR");
  set("neuron5/core1", "hw_err=NC_UNCORRECTABLE_ERROR nd-id=5 nc-id=1");
  set("host", "kernel_log=neuron:probe: ** BDF: 10:1b.0 => nd[4] (routing id: 5)");
  set("host", "kernel_log=NEURON_HW_ERR=secret");
  set("host", "kernel_log=sshd: secret");
  expect_host_read_back();
  Capture capture = capture_of(host_.path(), Commands::leave_out);
  const std::string text = capture.entries().at("dev/kmsg").text;
  EXPECT_THAT(text, ::testing::HasSubstr(" nd-id=4 serial-num="));
  EXPECT_THAT(text, ::testing::Not(::testing::AnyOf(::testing::HasSubstr("secret"), ::testing::HasSubstr("instance"))));
  const auto serial = *host_.root().read_attribute("sys/class/neuron_device/neuron4/info/serial_number");
  EXPECT_THAT(text, ::testing::HasSubstr(serial));
  anonymise(capture);
  EXPECT_THAT(capture.entries().at("dev/kmsg").text, ::testing::Not(::testing::HasSubstr(serial)));
}

class ReadBackType : public ReadBack, public ::testing::WithParamInterface<std::string> {};

TEST_P(ReadBackType, EveryReaderSeesTheSame) {
  sim::HostPlan plan;
  plan.instance_type = GetParam();
  if (core::find_instance_type(GetParam())->device_count > 0) plan.lnc = 1;
  expect_read_back(plan);
}

std::vector<std::string> all_types() {
  std::vector<std::string> names;
  for (const auto& type : core::all_instance_types()) names.push_back(type.name);
  return names;
}

// A name that GoogleTest accepts.
std::string name_of(const std::string& text) {
  std::string name = text;
  for (char& c : name) {
    if (c == '.' || c == '-') c = '_';
  }
  return name;
}
std::string type_name(const ::testing::TestParamInfo<std::string>& tested) {
  return name_of(tested.param);
}
std::string driver_name(const ::testing::TestParamInfo<const char*>& tested) {
  return name_of(tested.param);
}

INSTANTIATE_TEST_SUITE_P(All, ReadBackType, ::testing::ValuesIn(all_types()), type_name);

class ReadBackDriver : public ReadBack, public ::testing::WithParamInterface<const char*> {};

TEST_P(ReadBackDriver, EveryReaderSeesTheSame) {
  sim::HostPlan plan;
  plan.instance_type = "trn2.3xlarge";
  plan.driver_version = GetParam();
  expect_read_back(plan);
}

INSTANTIATE_TEST_SUITE_P(All, ReadBackDriver,
                         ::testing::Values("2.26.5.0", "2.27.4.0", "2.28.0.0", "2.29.0.0", "2.30.2.0", "2.31.7.0"),
                         driver_name);

TEST_F(ReadBack, BrokenHosts) {
  sim::HostPlan plan;
  plan.instance_type = "trn1.32xlarge";
  plan.missing = {3, 5};
  plan.without = {sim::Part::uverbs, sim::Part::ioctl};
  expect_read_back(plan);
}

TEST_F(ReadBack, WithoutDriverOrEfa) {
  sim::HostPlan plan;
  plan.instance_type = "trn1.2xlarge";
  plan.without = {sim::Part::driver, sim::Part::efa};
  expect_read_back(plan);
}

TEST_F(ReadBack, NamesOfTheKernel) {
  sim::HostPlan plan;
  plan.instance_type = "trn1.32xlarge";
  plan.naming = sim::RdmaNaming::by_kernel;
  expect_read_back(plan);
}

TEST_F(ReadBack, MalformedTextsAndProcesses) {
  sim::HostPlan plan;
  plan.instance_type = "inf2.xlarge";
  plan.files = {
      {"sys/devices/virtual/neuron_device/neuron0/core_count", "many\n"},
      {"opt/aws/neuron/logical_nc_config", "3\n"},
      {"etc/containerd/config.toml", "version = 2\n[plugins]\n  enable_cdi = true # why not\n"},
      {"neuron-ioctl/neuron0.json",
       "{\"bdf\": 7, \"apps\": [{\"pid\": 4290, \"nc_lock_map\": 3, \"host_mem_bytes\": 16384}]}"},
      {"proc/stat", "cpu  10 20 30 40 50 60 70 80\ncpu0 1 2 3 4 5 6 7 8\n"},
      {"proc/4290/cmdline", std::string("python\0train.py\0", 16)},
      {"proc/4290/environ", std::string("A=secret\0NEURON_PROCESS_TAG=job-7\0B=secret\0", 44)},
      {"proc/4290/stat", "4290 (python) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22\n"},
      {"proc/4290/statm", "1000 200 30 4 0 5 0\n"},
  };
  expect_read_back(plan, Commands::include);
  const Seen seen = look_at(host_.path());
  ASSERT_EQ(seen.usage.processes.size(), 1U);
  EXPECT_EQ(seen.usage.processes[0].tag, "job-7");
}

TEST_F(ReadBack, UsersWithoutTheDriver) {
  sim::HostPlan plan;
  plan.instance_type = "inf2.xlarge";
  plan.without = {sim::Part::ioctl};
  plan.files = {
      {"proc/4290/fdinfo/3", "pos:\t0\nflags:\t02100002\nmnt_id:\t25\nino:\t9\n"},
      {"proc/4290/stat", "4290 (python) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22\n"},
  };
  ASSERT_TRUE(sim::write_host(plan, host_.path()));
  host_.folder("proc/1/fd");
  host_.link("proc/4290/fd/3", "/dev/neuron0");
  host_.link("proc/4290/fd/4", "socket:[4711]");
  expect_host_read_back();
  const Seen seen = look_at(host_.path());
  ASSERT_TRUE(seen.users);
  EXPECT_THAT(seen.users->users, ::testing::ElementsAre(host::DeviceUser{0, 4290, 3}));
}

}  // namespace
}  // namespace neuron::gather
