#include "tools/neuron-sim/trees.h"

#include <gmock/gmock.h>

#include <set>

namespace neuron::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

HostPlan plan_of(std::string type) {
  HostPlan plan;
  plan.instance_type = std::move(type);
  return plan;
}

TEST(MachinePlan, EveryTypeOfTheCatalogueCanBePlanned) {
  for (const auto& type : core::all_instance_types()) {
    const auto machine = plan_machine(plan_of(type.name));
    ASSERT_TRUE(machine.has_value()) << type.name << ": " << machine.error().message;
    EXPECT_EQ(static_cast<int>(machine->neurons.size()), type.device_count) << type.name;
    std::set<model::Bdf> places;
    std::set<int> uverbs;
    std::set<std::string> names;
    int efas = 0;
    for (const auto& neuron : machine->neurons) places.insert(neuron.pci.bdf);
    for (const auto& bridge : machine->bridges) places.insert(bridge.function.bdf);
    for (const auto& other : machine->others) places.insert(other.bdf);
    for (const auto& rdma : machine->rdma) {
      places.insert(rdma.pci.bdf);
      uverbs.insert(rdma.uverbs);
      names.insert(rdma.name);
      efas += rdma.is_efa ? 1 : 0;
    }
    EXPECT_EQ(efas, type.efa_count) << type.name;
    EXPECT_EQ(uverbs.size(), machine->rdma.size()) << type.name;
    EXPECT_EQ(names.size(), machine->rdma.size()) << type.name;
    EXPECT_EQ(places.size(),
              machine->neurons.size() + machine->rdma.size() + machine->bridges.size() + machine->others.size())
        << type.name << ": two functions at one address";
  }
}

TEST(MachinePlan, FunctionsSitWhereTheCatalogueSays) {
  const auto trn1 = *plan_machine(plan_of("trn1.32xlarge"));
  EXPECT_EQ(trn1.neurons[0].pci.path, "sys/devices/pci0000:10/0000:10:1b.0");
  EXPECT_EQ(trn1.neurons[0].pci.device, 0x7164);
  EXPECT_THAT(trn1.bridges, IsEmpty());
  const auto trn2 = *plan_machine(plan_of("trn2.48xlarge"));
  // docs/reference/topology.md#trn2-eight-switches: the parent of 0000:cc:00.0 is the port 0000:b9:02.1, that of its
  // EFA c9 is b9:01.6.
  EXPECT_THAT(trn2.neurons[0].pci.path, HasSubstr("/0000:b9:02.1/0000:cc:00.0"));
  for (const auto& rdma : trn2.rdma) {
    if (rdma.name != "rdmap201s0") continue;
    EXPECT_THAT(rdma.pci.path, HasSubstr("/0000:b9:01.6/0000:c9:00.0"));
  }
}

TEST(MachinePlan, MadeUpTrainium3DevicesShareASwitchWithTheirNearestEfa) {
  const auto trn3 = *plan_machine(plan_of("trn3.48xlarge"));
  const auto* type = core::find_instance_type("trn3.48xlarge");
  for (const auto& neuron : trn3.neurons) {
    const auto& nearest = type->devices[static_cast<std::size_t>(neuron.index)].nearest_efa;
    const auto efa =
        std::find_if(trn3.rdma.begin(), trn3.rdma.end(), [&](const auto& rdma) { return rdma.pci.bdf == *nearest; });
    ASSERT_NE(efa, trn3.rdma.end());
    const auto switch_of = [](const std::string& path) { return path.substr(0, path.find("/0000:", 40)); };
    EXPECT_EQ(switch_of(neuron.pci.path), switch_of(efa->pci.path)) << neuron.index;
  }
}

TEST(MachinePlan, TheCatalogueKnowsTheServersOfAnUltraServer) {
  for (const auto& type : core::all_instance_types()) {
    const bool is_linked = platform_of(type.name, DriverGeneration{}) == Platform::ultraserver;
    EXPECT_EQ(type.in_ultraserver, is_linked) << type.name;
  }
}

TEST(MachinePlan, UverbsAreNotInTheOrderOfTheNames) {
  for (const char* type : {"trn1.32xlarge", "trn2.48xlarge", "p5.48xlarge"}) {
    const auto machine = *plan_machine(plan_of(type));
    for (std::size_t k = 0; k < machine.rdma.size(); ++k)
      EXPECT_NE(machine.rdma[k].uverbs, static_cast<int>(k)) << type;
  }
}

TEST(MachinePlan, NamesFollowTheUdevHelperOrTheKernel) {
  auto plan = plan_of("trn1.32xlarge");
  EXPECT_EQ(plan_machine(plan)->rdma[0].name, "rdmap16s25");
  plan.naming = RdmaNaming::by_kernel;
  EXPECT_EQ(plan_machine(plan)->rdma[7].name, "efa_7");
}

TEST(MachinePlan, OneMissingDeviceBlanksTheListsOfAllOthers) {
  auto plan = plan_of("trn1.32xlarge");
  EXPECT_THAT(plan_machine(plan)->neurons[0].neighbours, ElementsAre(12, 3, 4, 1));
  plan.missing = {3};
  const auto machine = *plan_machine(plan);
  EXPECT_EQ(machine.neurons.size(), 15U);
  for (const auto& neuron : machine.neurons) {
    EXPECT_NE(neuron.index, 3);
    EXPECT_THAT(neuron.neighbours, IsEmpty()) << neuron.index;
  }
}

TEST(MachinePlan, Inferentia1ReadsItsLinks) {
  auto plan = plan_of("inf1.6xlarge");
  plan.missing = {1};
  const auto machine = *plan_machine(plan);
  EXPECT_EQ(machine.options.driver_version, "2.24.7.0");
  EXPECT_THAT(machine.neurons[1].neighbours, ElementsAre(3));
}

TEST(MachinePlan, BridgeBusesEncloseWhatIsBelow) {
  const auto machine = *plan_machine(plan_of("trn2.48xlarge"));
  EXPECT_EQ(machine.bridges.size(), 8U * (1 + 1 + 4));
  for (const auto& bridge : machine.bridges) {
    EXPECT_LE(bridge.secondary_bus, bridge.subordinate_bus);
    for (const auto& neuron : machine.neurons) {
      if (!neuron.pci.path.starts_with(bridge.function.path + "/")) continue;
      EXPECT_GE(neuron.pci.bdf.bus, bridge.secondary_bus);
      EXPECT_LE(neuron.pci.bdf.bus, bridge.subordinate_bus);
    }
  }
}

TEST(MachinePlan, BadPlansAreRefusedInWords) {
  const auto message = [](const HostPlan& plan) {
    const auto machine = plan_machine(plan);
    return machine ? std::string() : machine.error().message;
  };
  EXPECT_THAT(message(plan_of("trn1.32xlrage")), HasSubstr("did you mean trn1.32xlarge"));
  EXPECT_THAT(message(plan_of("")), HasSubstr("unknown instance type"));
  auto plan = plan_of("trn1.32xlarge");
  plan.missing = {16};
  EXPECT_THAT(message(plan), HasSubstr("numbered from 0"));
  plan = plan_of("trn1.32xlarge");
  plan.lnc = 2;
  EXPECT_THAT(message(plan), HasSubstr("LNC 2"));
  plan = plan_of("p5.48xlarge");
  plan.lnc = 1;
  EXPECT_THAT(message(plan), HasSubstr("LNC 1"));
  plan = plan_of("inf1.6xlarge");
  plan.driver_version = "2.30.2.0";
  EXPECT_THAT(message(plan), HasSubstr("2.24"));
  plan = plan_of("trn1.32xlarge");
  plan.files["../out"] = "x";
  EXPECT_THAT(message(plan), HasSubstr("leads out"));
}

TEST(CpuMask, KernelForm) {
  EXPECT_EQ(format_cpumask({0, 1, 2, 3}, 4), "0000000f");
  EXPECT_EQ(format_cpumask({0, 64}, 128), "00000000,00000001,00000000,00000001");
  EXPECT_EQ(format_cpumask({}, 0), "00000000");
}

}  // namespace
}  // namespace neuron::sim
