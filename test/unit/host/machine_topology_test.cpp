#include "agent/host/machine_topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "test/unit/host/small_host.h"

namespace neuron::host {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

// Four CPUs in two packages with a NUMA node each: the least that hwloc accepts.
void write_machine(TempTree& tree) {
  const std::string cpus = "sys/devices/system/cpu/";
  for (const char* name : {"online", "possible", "present"}) tree.write(cpus + name, "0-3\n");
  for (int cpu = 0; cpu < 4; ++cpu) {
    const std::string topology = cpus + "cpu" + std::to_string(cpu) + "/topology/";
    const std::string mask = cpu < 2 ? "3\n" : "c\n";
    tree.write(topology + "physical_package_id", cpu < 2 ? "0\n" : "1\n");
    tree.write(topology + "core_id", std::to_string(cpu) + "\n");
    for (const char* own : {"thread_siblings", "core_cpus"})
      tree.write(topology + own, std::to_string(1 << cpu) + "\n");
    for (const char* shared : {"core_siblings", "package_cpus"}) tree.write(topology + shared, mask);
  }
  const std::string nodes = "sys/devices/system/node/";
  for (const char* name : {"online", "possible"}) tree.write(nodes + name, "0-1\n");
  for (int node = 0; node < 2; ++node) {
    const std::string path = nodes + "node" + std::to_string(node) + '/';
    tree.write(path + "cpumap", node == 0 ? "3\n" : "c\n");
    tree.write(path + "meminfo", "Node " + std::to_string(node) + " MemTotal: 1024 kB\n");
    tree.write(path + "distance", node == 0 ? "10 20\n" : "20 10\n");
  }
  tree.write("proc/cpuinfo", "processor\t: 0\n");
  tree.write("proc/meminfo", "MemTotal: 2048 kB\n");
}

void write_pci(TempTree& tree, const std::string& bdf, const std::string& id, const std::string& numa_class) {
  write_function(tree, "pci0000:10", bdf, id);
  const std::string path = "sys/devices/pci0000:10/" + bdf;
  tree.write(path + "/class", numa_class + "\n");
  tree.write(path + "/subsystem_vendor", "0x1d0f\n");
  tree.write(path + "/subsystem_device", id + "\n");
}

class MachineTopologyTest : public ::testing::Test {
 protected:
  Result<MachineTopology> load() { return load_machine_topology(tree_.root()); }
  // A machine of two nodes with one Neuron function.
  void write_small_machine() {
    write_machine(tree_);
    write_pci(tree_, "0000:10:1b.0", "0x7164", "0x088000");
  }
  // What hwloc says of it.
  void expect_small_machine() {
    const auto machine = load();
    ASSERT_TRUE(machine) << machine.error().message;
    EXPECT_THAT(machine->numa_nodes, ElementsAre(model::NumaNode{0, {0, 1}}, model::NumaNode{1, {2, 3}}));
    EXPECT_THAT(machine->numa_of, ElementsAre(Pair(kNeuron, ElementsAre(1))));
  }

  const model::Bdf kNeuron{0, 0x10, 0x1b, 0};
  TempTree tree_;
};

TEST_F(MachineTopologyTest, NodesAndLocalityOfNeuronFunctions) {
  write_small_machine();
  expect_small_machine();
  write_pci(tree_, "0000:10:19.0", "0xefa1", "0x020000");
  EXPECT_THAT(load()->numa_of, SizeIs(2));
}

TEST_F(MachineTopologyTest, UnknownLocalityIsAbsent) {
  write_small_machine();
  tree_.write("sys/devices/pci0000:10/0000:10:1b.0/local_cpus", "f\n");
  const auto machine = load();
  ASSERT_TRUE(machine);
  EXPECT_THAT(machine->numa_of, IsEmpty());
}

TEST_F(MachineTopologyTest, TheEnvironmentChangesNothing) {
  write_small_machine();
  ::setenv("HWLOC_FSROOT", "/nowhere", 1);
  ::setenv("HWLOC_SYNTHETIC", "node:7 pu:1", 1);
  expect_small_machine();
  ::unsetenv("HWLOC_FSROOT");
  ::unsetenv("HWLOC_SYNTHETIC");
}

TEST_F(MachineTopologyTest, TheLiveMachineHasProcessors) {
  const auto machine = load_machine_topology(*FsRoot::open("/"));
  ASSERT_TRUE(machine) << machine.error().message;
  EXPECT_FALSE(machine->numa_nodes.empty());
}

TEST_F(MachineTopologyTest, ARootWithoutProcessorsHasNone) {
  const auto none = load();
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::internal);
  EXPECT_THAT(none.error().message, HasSubstr("hwloc: cannot load the machine below " + tree_.path()));
  tree_.write("sys/devices/system/cpu/online", "garbage");
  tree_.fifo("sys/devices/system/cpu/possible");
  EXPECT_FALSE(load());
}

// What aborted the process, kept it for ever, or cost it 1.2 GB.
TEST_F(MachineTopologyTest, HostileNumbersAreLeftOut) {
  write_small_machine();
  tree_.write("sys/devices/system/node/online", "0-2147483647\n");
  tree_.write("sys/devices/system/cpu/possible", "0-2147483647\n");
  tree_.write("sys/devices/system/node/node2147483647/cpumap", "3\n");
  tree_.write("sys/devices/system/cpu/cpu2147483646/topology/core_cpus", "3\n");
  tree_.write("sys/devices/system/cpu/cpu1000000000/topology/thread_siblings", "3\n");
  expect_small_machine();
}

TEST_F(MachineTopologyTest, NothingThatBlocksIsWaitedFor) {
  write_small_machine();
  tree_.fifo("proc/cpuinfo");
  tree_.fifo("proc/meminfo");
  tree_.fifo("sys/devices/system/node/possible");
  tree_.fifo("sys/devices/pci0000:10/0000:10:1b.0/config");
  expect_small_machine();
}

// An absolute link starts at the root, also where the machine of the test has something else there.
TEST_F(MachineTopologyTest, AbsoluteLinksStayInside) {
  write_small_machine();
  for (const std::string part : {"sys/devices/system/cpu", "sys/devices/system/node", "sys/bus/pci/devices"}) {
    const std::string moved = "elsewhere/" + part;
    tree_.move(part, moved);
    tree_.link(part, '/' + moved);
  }
  tree_.link("elsewhere/sys/bus/pci/devices/0000:10:1b.0", "/sys/devices/pci0000:10/0000:10:1b.0");
  expect_small_machine();
  // Outside, these lead to the live machine's processors.
  tree_.remove("proc/cpuinfo");
  tree_.link("sys/devices/system/node", "/proc/self/root/sys/devices/system/node");
  tree_.link("sys/devices/system/cpu", "/../../../../../../sys/devices/system/cpu");
  EXPECT_FALSE(load());
}

TEST_F(MachineTopologyTest, NoCopyIsLeft) {
  TempTree place;
  ::setenv("TMPDIR", place.path().c_str(), 1);
  write_small_machine();
  expect_small_machine();
  EXPECT_THAT(*place.root().list(""), IsEmpty());
  ::setenv("TMPDIR", "/nowhere", 1);
  EXPECT_THAT(load().error().message, HasSubstr("hwloc: /nowhere: no temporary directory"));
  ::unsetenv("TMPDIR");
}

TEST(TopologyText, SurvivesTheWay) {
  MachineTopology machine;
  machine.numa_nodes = {{0, {0, 1, 2}}, {3, {}}};
  machine.numa_of = {{{0, 0x10, 0x1b, 0}, {0}}, {{1, 0xff, 0x1f, 7}, {0, 3}}};
  EXPECT_EQ(*parse_topology(format_topology(machine)), machine);
  EXPECT_EQ(*parse_topology(format_topology({})), MachineTopology{});
}

TEST(TopologyText, WhatIsNotAnAnswerIsRefused) {
  const std::string begin = "neuron-topology/1\n";
  for (const char* text : {"", "end\n", "neuron-topology/2\nend\n", "neuron-topology/1\n"}) {
    EXPECT_FALSE(parse_topology(text)) << text;
  }
  for (const char* line : {"node 0", "node x 0", "node 0 0-2147483647", "node 1 0\nnode 0 0", "function 0 0",
                           "function 0000:10:1b.0 9999", "other 0 0"}) {
    EXPECT_FALSE(parse_topology(begin + line + "\nend\n")) << line;
  }
}

}  // namespace
}  // namespace neuron::host
