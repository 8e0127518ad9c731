#include <gmock/gmock.h>

#include "agent/host/machine_topology.h"
#include "test/fakes/fake_host.h"
#include "tools/neuron-sim/trees.h"

namespace neuron::sim {
namespace {

using ::testing::ElementsAre;

// hwloc must find every Amazon function that has a NUMA node, on that node.
TEST(Hwloc, ReadsEverySimulatedHost) {
  for (const char* type : {"trn1.32xlarge", "trn2.48xlarge", "inf2.48xlarge", "p5.48xlarge", "inf1.6xlarge"}) {
    fakes::FakeHost host(type);
    host.write();
    const auto topology = host::load_machine_topology(*host::FsRoot::open(host.path()));
    ASSERT_TRUE(topology.has_value()) << type << ": " << topology.error().message;
    HostPlan plan;
    plan.instance_type = type;
    const auto machine = *plan_machine(plan);
    EXPECT_EQ(topology->numa_nodes.size(), machine.type->numa.size()) << type;
    std::vector<PciFunction> functions;
    for (const auto& neuron : machine.neurons) functions.push_back(neuron.pci);
    for (const auto& rdma : machine.rdma) functions.push_back(rdma.pci);
    for (const auto& function : functions) {
      if (function.numa_node < 0) continue;
      const auto found = topology->numa_of.find(function.bdf);
      ASSERT_NE(found, topology->numa_of.end()) << type << " " << model::to_string(function.bdf);
      EXPECT_THAT(found->second, ElementsAre(function.numa_node)) << type << " " << model::to_string(function.bdf);
    }
  }
}

}  // namespace
}  // namespace neuron::sim
