// The real program on simulated machines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "agent/core/catalogue.h"
#include "test/fakes/paths.h"
#include "test/unit/render/golden.h"
#include "test/unit/render/ls_program.h"

namespace neuron {
namespace {

namespace fs = std::filesystem;
using test::Outcome;
using test::text_of;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class NeuronLs : public test::LsProgram {};

class NeuronLsOf : public NeuronLs, public ::testing::WithParamInterface<std::string> {};

void expect_whole(const core::InstanceType& type, const nlohmann::json& list) {
  ASSERT_EQ(list.size(), static_cast<std::size_t>(type.device_count));
  const int cores = type.physical_cores_per_device / type.default_lnc;
  for (std::size_t i = 0; i < list.size(); ++i) {
    EXPECT_EQ(list[i]["neuron_device"], i);
    EXPECT_EQ(list[i]["nc_count"], cores);
    EXPECT_EQ(list[i]["neuroncore_ids"][0], i * static_cast<std::size_t>(cores));
    EXPECT_EQ(list[i]["memory_size"], core::family_facts(*type.family).memory_bytes);
    EXPECT_EQ(list[i]["connected_to"].is_null(), type.devices[i].neighbours.empty());
    EXPECT_EQ(list[i]["instance_type"], type.name);
  }
}

TEST_P(NeuronLsOf, IsListedWhole) {
  const core::InstanceType& type = *core::find_instance_type(GetParam());
  simulate(type.name);
  const Outcome json = run("--json-output");
  if (type.device_count == 0) {
    EXPECT_EQ(json.exit_code, 1);
    EXPECT_EQ(json.out, "");
    EXPECT_THAT(json.err, HasSubstr("no Neuron device"));
    return;
  }
  EXPECT_EQ(json.exit_code, 0);
  EXPECT_EQ(json.err, "");
  EXPECT_FALSE(json.out.ends_with('\n'));
  expect_whole(type, nlohmann::json::parse(json.out));
  test::expect_golden("host/" + type.name + ".txt", run("").out);
  test::expect_golden("host/" + type.name + ".topology.txt", run("--topology").out);
}

std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const core::InstanceType& type : core::all_instance_types()) names.push_back(type.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Types, NeuronLsOf, ::testing::ValuesIn(all_names()), [](const auto& type) {
  std::string name = type.param;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
});

TEST_F(NeuronLs, JsonOfTrn2IsAsRecorded) {
  simulate("trn2.3xlarge");
  test::expect_golden("host/trn2.3xlarge.json", run("-j").out);
  EXPECT_EQ(run("-j -t").out, run("-j").out);
}

TEST_F(NeuronLs, LogicalCoreConfigOfTheHostCounts) {
  sim::HostPlan plan;
  plan.instance_type = "trn2.48xlarge";
  plan.lnc = 1;
  simulate(plan);
  const Outcome outcome = run("");
  EXPECT_THAT(outcome.out, HasSubstr("logical-neuroncore-config: 1\n"));
  EXPECT_THAT(outcome.out, HasSubstr("| 15     | 8      | 120-127  | 96 GB  |"));
}

TEST_F(NeuronLs, MissingDeviceLeavesAHoleAndKeepsTheTopology) {
  sim::HostPlan plan;
  plan.instance_type = "trn1.32xlarge";
  plan.missing = {3};
  simulate(plan);
  const Outcome table = run("");
  EXPECT_THAT(table.out, Not(HasSubstr("| 3      |")));
  EXPECT_THAT(table.out, HasSubstr("| 4      | 2      | 8-9      | 32 GB  | 0000:20:1e.0 |"));
  EXPECT_THAT(run("-t").out, HasSubstr("[ 2 ]◄––►[   ]◄––*"));
}

TEST_F(NeuronLs, WithoutDriverAnswersAddressesAreUnknownButLocalityIsNot) {
  sim::HostPlan plan;
  plan.instance_type = "trn1.32xlarge";
  plan.without = {sim::Part::ioctl};
  simulate(plan);
  const Outcome outcome = run("");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out,
              HasSubstr("| 2      | 2      | 4-5      | 32 GB  | 14, 1, 6, 3   | NA  | 32-63,96-127 | 1    |"));
}

TEST_F(NeuronLs, ProcessesHaveTheirCommandsFromProc) {
  simulate("inf2.xlarge");
  record(0, {{"bdf", "0000:00:1f.0"},
             {"apps",
              {{{"pid", 4290}, {"nc_lock_map", 3}, {"host_mem_bytes", 16384}, {"device_mem_bytes", 1782579}},
               {{"pid", 512}, {"nc_lock_map", 0}, {"host_mem_bytes", 0}, {"device_mem_bytes", 0}}}}});
  fs::create_directories(host() / "proc/4290");
  std::ofstream(host() / "proc/4290/cmdline")
      << "python3" << '\0' << "train_a_model_that_has_a_long_name.py" << '\0' << "--x";
  test::expect_golden("host/inf2.xlarge.processes.txt", run("").out);
  test::expect_golden("host/inf2.xlarge.processes-all-wide.txt", run("-a -w").out);
  test::expect_golden("host/inf2.xlarge.processes.json", run("-j").out);
  fs::remove_all(host() / "proc/4290");
  EXPECT_THAT(run("").out, Not(HasSubstr("COMMAND")));
}

TEST_F(NeuronLs, ContainerWithOneDeviceCountsFromZero) {
  simulate("trn2.48xlarge");
  for (int i = 0; i < 16; ++i) {
    if (i != 13) fs::remove(host() / "dev" / ("neuron" + std::to_string(i)));
  }
  const auto list = nlohmann::json::parse(run("-j").out);
  ASSERT_EQ(list.size(), 1U);
  EXPECT_EQ(list[0]["neuron_device"], 0);
  EXPECT_EQ(list[0]["bdf"], "0000:e1:00.0");
  EXPECT_EQ(list[0]["connected_to"], (std::vector<int>{12, 1, 9, 14}));
  EXPECT_EQ(list[0]["neuroncore_ids"], (std::vector<int>{0, 1, 2, 3}));
}

void expect_refusal(const Outcome& outcome, const std::string& what, const std::string& action) {
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 2) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr(what));
  EXPECT_THAT(outcome.err, HasSubstr(action));
}

TEST_F(NeuronLs, SaysWhatIsMissingAndWhatToDo) {
  sim::HostPlan plan;
  plan.instance_type = "trn1.32xlarge";
  plan.without = {sim::Part::driver};
  simulate(plan);
  expect_refusal(run("-j"), "16 Neuron PCI functions found, but the kernel driver is not loaded", "modprobe neuron");
  simulate("inf2.xlarge");
  fs::remove(host() / "dev/neuron0");
  expect_refusal(run(""), "there is no device node", "aws.amazon.com/neuron");
  fs::remove_all(host());
  fs::create_directories(host());
  expect_refusal(run(""), "no Neuron device", "--root");
  fs::remove_all(host());
  expect_refusal(run(""), host().string(), "give a directory");
  expect_refusal(run_raw("--badflag"), "unknown flag `badflag'", "--help");
}

TEST_F(NeuronLs, HelpVersionAndEnvironment) {
  EXPECT_EQ(run_raw("--help").exit_code, 0);
  EXPECT_THAT(run_raw("--version").out, StartsWith("neuron-ls "));
  simulate("inf2.xlarge");
  ::setenv("NEURON_LS_ROOT", host().c_str(), 1);
  EXPECT_EQ(run_raw("").out, run("").out);
  ::unsetenv("NEURON_LS_ROOT");
}

TEST_F(NeuronLs, AFullDiskIsAFailure) {
  simulate("inf2.xlarge");
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  const std::string command = fakes::bin_dir() + "/neuron-ls --root " + host().string() + " >/dev/full 2>&1";
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 1);
}

TEST_F(NeuronLs, CompletionsAndManPageNameEveryOption) {
  const std::string help = run_raw("--help").out;
  const fs::path tools = fs::path(fakes::source_dir()) / "tools";
  for (const char* option :
       {"--wide", "--show-all-procs", "--topology", "--json-output", "--root", "--help", "--version", "--output-format",
        "--health", "--efa", "--pods", "--device", "--watch", "--kubelet-dir"}) {
    EXPECT_THAT(help, HasSubstr(option));
    EXPECT_THAT(text_of(tools / "completions/neuron-ls.bash"), HasSubstr(option));
    EXPECT_THAT(text_of(tools / "completions/_neuron-ls"), HasSubstr(std::string(option).substr(2)));
    EXPECT_THAT(text_of(tools / "man/neuron-ls.1.scd"), HasSubstr(option));
  }
}

}  // namespace
}  // namespace neuron
