// Whole simulated hosts, read with real hwloc.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "agent/health/assess.h"
#include "agent/host/scanner.h"
#include "test/unit/host/temp_tree.h"
#include "tools/neuron-sim/faults.h"
#include "tools/neuron-sim/host_plan.h"

namespace neuron::host {
namespace {

using model::DriverLayout;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class SimulatedHost : public ::testing::Test {
 protected:
  model::HostScan scan(sim::HostPlan plan) {
    const auto written = sim::write_host(plan, tree_.path());
    EXPECT_TRUE(written) << written.error().message;
    const FsRoot root = tree_.root();
    Scanner scanner(root, {});
    auto result = scanner.scan();
    EXPECT_EQ(scanner.scan(), result);
    EXPECT_THAT(result.problems, IsEmpty());
    EXPECT_EQ(result.instance_type, plan.instance_type);
    for (const auto& device : result.devices) EXPECT_THAT(device.problems, IsEmpty()) << device.index;
    for (const auto& efa : result.efas) EXPECT_THAT(efa.problems, IsEmpty()) << efa.name;
    return result;
  }
  model::HostScan scan(const std::string& type, const std::string& driver = "") {
    sim::HostPlan plan;
    plan.instance_type = type;
    plan.driver_version = driver;
    return scan(plan);
  }

  TempTree tree_{TempTree::Place::memory};
};

// Every device and interface with all its places, and every interface usable.
void expect_complete(const model::HostScan& scan) {
  std::set<model::Bdf> places;
  for (const auto& device : scan.devices) {
    ASSERT_TRUE(device.bdf);
    places.insert(device.bdf->value);
    EXPECT_TRUE(device.numa_node) << device.index;
    EXPECT_TRUE(device.cpus) << device.index;
    EXPECT_TRUE(device.node_present);
    EXPECT_EQ(device.cores.size(), static_cast<std::size_t>(device.physical_cores->value));
  }
  EXPECT_THAT(places, SizeIs(scan.devices.size()));
  std::set<std::string> nodes;
  for (const auto& efa : scan.efas) {
    EXPECT_NE(efa.name, "");
    EXPECT_NE(efa.switch_key, "");
    EXPECT_TRUE(efa.driver_bound && efa.node_present);
    nodes.insert(efa.uverbs.value_or(""));
  }
  EXPECT_THAT(nodes, SizeIs(scan.efas.size()));
}

TEST_F(SimulatedHost, Trn1) {
  const auto host = scan("trn1.32xlarge");
  expect_complete(host);
  EXPECT_EQ(host.layout, DriverLayout::health_v2);
  ASSERT_THAT(host.devices, SizeIs(16));
  ASSERT_THAT(host.efas, SizeIs(8));
  EXPECT_THAT(host.numa_nodes, SizeIs(2));
  EXPECT_EQ(host.devices[0].family, model::Family::trainium1);
  EXPECT_THAT(host.devices[0].neighbours->value, ::testing::ElementsAre(12, 3, 4, 1));
  EXPECT_EQ(host.devices[0].numa_node->value, 0);
  EXPECT_EQ(host.devices[2].numa_node->value, 1);
  EXPECT_EQ(host.efas[0].switch_key, "0000:10");
  EXPECT_EQ(host.efas[0].pcie_root, "pci0000:10");
  EXPECT_EQ(host.devices[2].pcie_root, "pci0000:a0");
  EXPECT_FALSE(host.ultraserver);
  EXPECT_EQ(host.neuron_pci_functions, 16);
}

TEST_F(SimulatedHost, Trn2) {
  const auto host = scan("trn2.48xlarge");
  expect_complete(host);
  ASSERT_THAT(host.devices, SizeIs(16));
  EXPECT_THAT(host.efas, SizeIs(16));
  EXPECT_THAT(host.devices[0].cores, SizeIs(8));
  EXPECT_THAT(host.devices[0].logical_to_physical.value(), ::testing::ElementsAre(4, 5, 6, 7, 2, 3, 0, 1));
  EXPECT_EQ(model::to_string(host.devices[0].bdf->value), "0000:cc:00.0");
  EXPECT_EQ(host.devices[0].signals.unreachable, false);
  const auto near =
      std::count_if(host.efas.begin(), host.efas.end(), [](const auto& efa) { return efa.switch_key == "0000:b9"; });
  EXPECT_EQ(near, 2);
}

TEST_F(SimulatedHost, UltraServer) {
  const auto host = scan("trn2u.48xlarge");
  ASSERT_TRUE(host.ultraserver);
  EXPECT_THAT(host.ultraserver->modes, ::testing::ElementsAre(1, 3, 4));
  ASSERT_THAT(host.ultraserver->memberships, SizeIs(2));
  EXPECT_EQ(host.ultraserver->memberships[1].nodes, 4);
  EXPECT_EQ(host.ultraserver->memberships[1].server_id, "8f10b6e35a7c92d4");
  sim::HostPlan partition;
  partition.instance_type = "trn3.48xlarge";
  partition.ultraserver = sim::UltraServerPlan{sim::UltraServerPlan::State::linked, 4, 2};
  const auto part = scan(partition);
  EXPECT_EQ(part.ultraserver->partition_nodes, 4);
  EXPECT_EQ(part.ultraserver->memberships.front(), (model::UltraServer::Membership{4, "8f10b6e35a7c92d4", 2}));
  const auto standard = scan("trn1.32xlarge", "2.24.7.0");
  ASSERT_TRUE(standard.ultraserver) << "older drivers have the files on every platform";
  EXPECT_THAT(standard.ultraserver->memberships, IsEmpty());
}

TEST_F(SimulatedHost, Inf2) {
  const auto host = scan("inf2.48xlarge");
  expect_complete(host);
  EXPECT_THAT(host.devices, SizeIs(12));
  EXPECT_THAT(host.efas, IsEmpty());
  EXPECT_THAT(host.numa_nodes, SizeIs(4));
  EXPECT_EQ(host.devices[0].family, model::Family::inferentia2);
}

TEST_F(SimulatedHost, Inf1) {
  const auto host = scan("inf1.6xlarge");
  EXPECT_THAT(host.devices, SizeIs(4));
  EXPECT_EQ(host.layout, DriverLayout::stats);
  EXPECT_EQ(host.devices[3].physical_cores->value, 4);
  EXPECT_EQ(host.devices[0].signals.sram_ecc_uncorrected, std::nullopt);
}

TEST_F(SimulatedHost, GpuNodeWithEfaOnly) {
  const auto host = scan("p5.48xlarge");
  expect_complete(host);
  EXPECT_EQ(host.layout, DriverLayout::none);
  EXPECT_THAT(host.devices, IsEmpty());
  EXPECT_THAT(host.efas, SizeIs(32));
}

TEST_F(SimulatedHost, ForeignNicsOfB200AreNotCounted) {
  EXPECT_THAT(scan("p6-b200.48xlarge").efas, SizeIs(8));
}

TEST_F(SimulatedHost, EveryDriverGeneration) {
  EXPECT_EQ(scan("trn1.2xlarge", "2.24.7.0").layout, DriverLayout::stats);
  EXPECT_EQ(scan("trn2.3xlarge", "2.26.5.0").layout, DriverLayout::stats);
  EXPECT_EQ(scan("trn2.3xlarge", "2.27.4.0").layout, DriverLayout::stats);
  EXPECT_EQ(scan("trn2.3xlarge", "2.28.0.0").layout, DriverLayout::health_v1);
  EXPECT_EQ(scan("trn2.3xlarge", "2.29.0.0").layout, DriverLayout::health_v1);
  EXPECT_EQ(scan("trn2.3xlarge", "2.30.2.0").layout, DriverLayout::health_v2);
}

TEST_F(SimulatedHost, UnknownGenerationIsOneProblem) {
  sim::HostPlan plan;
  plan.instance_type = "trn2.3xlarge";
  plan.driver_version = "2.31.7.0";
  ASSERT_TRUE(sim::write_host(plan, tree_.path()));
  const FsRoot root = tree_.root();
  const auto host = Scanner(root, {}).scan();
  EXPECT_EQ(host.layout, DriverLayout::unknown);
  EXPECT_THAT(host.problems, SizeIs(1));
  for (const auto& device : host.devices) EXPECT_EQ(device.signals, model::DeviceSignals{});
}

TEST_F(SimulatedHost, WithoutParts) {
  sim::HostPlan plan;
  plan.instance_type = "trn1.32xlarge";
  plan.without = {sim::Part::uverbs, sim::Part::ioctl};
  plan.lnc = 1;
  const auto host = scan(plan);
  EXPECT_EQ(host.lnc->value, 1);
  EXPECT_EQ(host.devices[0].bdf, std::nullopt);
  EXPECT_EQ(host.efas[0].uverbs, std::nullopt);
  EXPECT_TRUE(host.efas[0].driver_bound);
  plan.without = {sim::Part::driver};
  plan.lnc.reset();
  const auto without_driver = scan(plan);
  EXPECT_EQ(without_driver.layout, DriverLayout::none);
  EXPECT_EQ(without_driver.neuron_pci_functions, 16);
}

// The states of the driver that show in several files at once, from the files to the verdict.
class DriverStates : public ::testing::Test {
 protected:
  // The node after `actions` on `target`.
  health::Assessment node(const std::string& type, const std::string& driver, const std::string& target,
                          const std::vector<std::string>& actions) {
    sim::HostPlan plan;
    plan.instance_type = type;
    plan.driver_version = driver;
    EXPECT_TRUE(sim::write_host(plan, tree_.path()));
    const auto applied = sim::apply_fault(tree_.path(), target, actions);
    EXPECT_TRUE(applied) << applied.error().message;
    const FsRoot root = tree_.root();
    Scanner scanner(root, {.with_topology = false});
    health::AssessMemory memory;
    return health::assess(scanner.scan(), memory, {});
  }

  TempTree tree_{TempTree::Place::memory};
};

TEST_F(DriverStates, ADeviceOffTheBusIsSaidToBeSoByEveryDriver) {
  const std::vector<std::pair<std::string, std::string>> nodes = {{"trn1.32xlarge", "2.24.7.0"},
                                                                  {"trn2.48xlarge", "2.24.7.0"},
                                                                  {"inf2.48xlarge", "2.26.5.0"},
                                                                  {"trn2.48xlarge", "2.26.5.0"},
                                                                  {"trn2.48xlarge", "2.30.2.0"}};
  for (const auto& [type, driver] : nodes) {
    const auto host = node(type, driver, "neuron3", {"off-bus"}).host;
    EXPECT_EQ(host.devices[3].health.reason, "reads_all_ones") << type << driver;
    EXPECT_EQ(host.devices[3].health.state, model::HealthState::unhealthy) << type << driver;
    EXPECT_THAT(host.devices[3].health.sentence, HasSubstr("neuron3 is off the bus"));
    EXPECT_FALSE(host.devices[3].serial);
    EXPECT_FALSE(host.devices[3].signals.sram_ecc_uncorrected);
    EXPECT_FALSE(host.devices[3].signals.mem_ecc_uncorrected);
    EXPECT_FALSE(host.devices[3].signals.mem_ecc_repairable_uncorrected);
    EXPECT_FALSE(host.devices[3].signals.unhealthy_components);
    EXPECT_EQ(host.devices[4].health.state, model::HealthState::healthy) << host.devices[4].health.sentence;
  }
}

TEST_F(DriverStates, PackedCountsAskForWhatIsDue) {
  const auto reason = [&](const std::string& driver, const std::string& registers) {
    return node("trn2.3xlarge", driver, "neuron0", {"hbm=" + registers}).host.devices[0].health.reason;
  };
  for (const char* driver : {"2.24.7.0", "2.25.4.0", "2.28.0.0", "2.30.2.0"}) {
    EXPECT_EQ(reason(driver, "5,2,1"), "mem_ecc_uncorrected") << driver;
    EXPECT_EQ(reason(driver, "5,0,1"), "mem_ecc_uncorrected") << driver;
    EXPECT_EQ(reason(driver, "0,2,1"), "mem_ecc_repairable_uncorrected") << driver;
    EXPECT_EQ(reason(driver, "0,0,0"), "") << driver;
  }
  EXPECT_EQ(reason("2.26.5.0", "5,2,1"), "mem_ecc_uncorrected");
  EXPECT_EQ(reason("2.26.5.0", "5,0,1"), "") << "this driver hides it; the kernel log has it";
}

TEST_F(DriverStates, HealthThatTheDriverDoesNotMeasureIsNeverFine) {
  for (const char* parameter : {"nmetric_log_posts=0", "enable_sysfs_health_status_nodes=0"}) {
    const auto assessment = node("trn2.3xlarge", "2.30.2.0", "host", {parameter});
    EXPECT_THAT(assessment.missing, IsEmpty()) << parameter;
    for (const model::NeuronDevice& device : assessment.host.devices) {
      EXPECT_EQ(device.health.reason, "health_not_measured") << parameter;
      EXPECT_EQ(device.health.state, model::HealthState::unknown);
      EXPECT_FALSE(device.signals.heartbeat);
      EXPECT_FALSE(device.signals.unhealthy_components);
    }
    EXPECT_EQ(node("trn2.3xlarge", "2.26.5.0", "host", {parameter}).host.devices[0].health.state,
              model::HealthState::healthy)
        << "a driver that measures nothing of the kind";
  }
}

TEST_F(DriverStates, ADeadInterfaceIsUnhealthyAtFirstSight) {
  const auto host = node("trn1.32xlarge", "", "rdmap16s25", {"no_completion_cmds=1"}).host;
  const auto dead =
      std::find_if(host.efas.begin(), host.efas.end(), [](const auto& efa) { return efa.name == "rdmap16s25"; });
  ASSERT_NE(dead, host.efas.end());
  EXPECT_EQ(dead->health.reason, "no_completion_cmds");
}

}  // namespace
}  // namespace neuron::host
