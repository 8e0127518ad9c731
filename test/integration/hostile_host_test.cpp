// Machines that somebody made to harm whoever looks at them: what the programs write of them, and that they end.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "test/fakes/fake_host.h"
#include "test/fakes/hostile_host.h"
#include "test/fakes/paths.h"
#include "test/integration/shell.h"

namespace neuron::fakes {
namespace {

class HostileHost : public ::testing::TestWithParam<Hostility> {};

// In the directory as it is: no terminal is told anything by the names, links and texts of a machine.
TEST_P(HostileHost, NothingReachesTheTerminalRaw) {
  FakeHost host("trn1.32xlarge");  // with RDMA devices, whose links are resolved
  host.write();
  make_hostile(host.path(), GetParam());
  const std::string root = " --root " + host.path();
  for (const std::string& command : {
           "neuron-agent check" + root,
           "neuron-agent check --output json" + root,
           "neuron-agent run --once" + root,
           "neuron-ls" + root,
           "neuron-ls --health" + root,
           "neuron-ls --topology" + root,
           "neuron-ls --health --output-format json" + root,
           "neuron-ls --health --output-format csv" + root,
           "neuron-ls --json-output" + root,
           "neuron-top --once" + root,
           "neuron-top --once --json" + root,
           "neuron-gather --output /dev/null" + root,
           "neuron-sim set " + host.path() + " neuron0 nothing=1",
       }) {
    const Ended ended = run_line("timeout -s KILL 20 " + bin_dir() + '/' + command + " 2>&1 < /dev/null");
    EXPECT_LE(ended.status, 2) << command << '\n' << ended.output;
    EXPECT_FALSE(is_raw(ended.output)) << command << '\n' << ended.output;
  }
}

INSTANTIATE_TEST_SUITE_P(All, HostileHost,
                         ::testing::Values(Hostility::links_through_a_file, Hostility::looping_links,
                                           Hostility::links_to_fifos, Hostility::names, Hostility::texts,
                                           Hostility::longer_texts, Hostility::folders));

// What is asked of hwloc must neither end `run` nor keep it.
TEST(HostileTopology, RunEndsAllTheSame) {
  FakeHost host("trn1.32xlarge");
  host.file("sys/devices/system/node/online", "0-2147483647\n")
      .file("sys/devices/system/cpu/possible", "0-2147483647\n")
      .file("sys/devices/system/cpu/cpu1000000000/topology/core_cpus", "1\n")
      .write();
  std::filesystem::remove(host.path() + "/proc/cpuinfo");
  ASSERT_EQ(::mkfifo((host.path() + "/proc/cpuinfo").c_str(), 0600), 0);
  const Ended ended =
      run_line("timeout -s KILL 20 " + bin_dir() + "/neuron-agent run --once --root " + host.path() + " 2>&1");
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_NE(ended.output.find("neuroncore 32 of 32 allocatable"), std::string::npos) << ended.output;
}

}  // namespace
}  // namespace neuron::fakes
