#include "agent/host/machine_topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "test/unit/host/small_host.h"

namespace neuron::host {
namespace {

using ::testing::ElementsAre;
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

TEST(MachineTopology, NodesAndLocalityOfNeuronFunctions) {
  TempTree tree;
  write_machine(tree);
  write_pci(tree, "0000:10:1b.0", "0x7164", "0x088000");
  write_pci(tree, "0000:10:19.0", "0xefa1", "0x020000");
  set_hwloc_root(tree.path() + "/");
  EXPECT_EQ(hwloc_root(), tree.path());
  const auto machine = load_machine_topology();
  ASSERT_TRUE(machine) << machine.error().message;
  EXPECT_THAT(machine->numa_nodes, ElementsAre(model::NumaNode{0, {0, 1}}, model::NumaNode{1, {2, 3}}));
  const model::Bdf neuron{0, 0x10, 0x1b, 0};
  ASSERT_TRUE(machine->numa_of.contains(neuron));
  EXPECT_THAT(machine->numa_of.at(neuron), ElementsAre(1));
  EXPECT_THAT(machine->numa_of, SizeIs(2));
}

TEST(MachineTopology, UnknownLocalityIsAbsent) {
  TempTree tree;
  write_machine(tree);
  write_pci(tree, "0000:10:1b.0", "0x7164", "0x088000");
  tree.write("sys/devices/pci0000:10/0000:10:1b.0/local_cpus", "f\n");
  set_hwloc_root(tree.path());
  const auto machine = load_machine_topology();
  ASSERT_TRUE(machine);
  EXPECT_THAT(machine->numa_of, ::testing::IsEmpty());
}

TEST(MachineTopology, LiveRootLeavesTheEnvironmentAlone) {
  ::unsetenv("HWLOC_FSROOT");
  set_hwloc_root("/");
  EXPECT_EQ(::getenv("HWLOC_FSROOT"), nullptr);
  EXPECT_EQ(hwloc_root(), "/");
}

TEST(MachineTopology, ARootWithoutProcessorsHasNone) {
  TempTree tree;
  set_hwloc_root(tree.path());
  EXPECT_EQ(load_machine_topology().error().code, ErrorCode::internal);
  tree.write("sys/devices/system/cpu/online", "garbage");
  tree.fifo("sys/devices/system/cpu/possible");
  EXPECT_FALSE(load_machine_topology());
}

}  // namespace
}  // namespace neuron::host
