#include "plugin/device/units.h"

#include <gtest/gtest.h>

#include "test/unit/grant/nodes.h"

namespace neuron::plugin {
namespace {

TEST(UnitList, ShowsHealthBlocksAndNumaAndDropsNothing) {
  auto snapshot = snapshot_of("trn1.32xlarge");
  snapshot->host.devices[2].health = {model::HealthState::unhealthy, "x", "", ""};
  snapshot->host.devices[3].health = {model::HealthState::degraded, "x", "", ""};
  const grant::NodeUnits node(snapshot);
  const UnitList cores = make_unit_list(node, model::Resource::neuroncore, {}, {{0, 9}, {}});
  ASSERT_EQ(cores.size(), 32U);
  EXPECT_FALSE(cores[0].healthy);
  EXPECT_TRUE(cores[1].healthy);
  EXPECT_FALSE(cores[4].healthy);
  EXPECT_FALSE(cores[5].healthy);
  EXPECT_TRUE(cores[6].healthy) << "degraded stays allocatable";
  EXPECT_FALSE(cores[9].healthy);
  EXPECT_EQ(cores[4].numa_nodes, (std::vector<int>{1}));
  const UnitList devices = make_unit_list(node, model::Resource::neuron, {}, {{9}, {}});
  EXPECT_FALSE(devices[4].healthy) << "one blocked core blocks its device";
}

TEST(UnitList, AFaultOfOneCoreTakesItsUnitAndTheWholeDeviceOnly) {
  auto snapshot = snapshot_of("trn2.48xlarge");
  const model::Health sound{model::HealthState::healthy, "", "", ""};
  const model::Health broken{model::HealthState::unhealthy, "hw_nc_ue_error", "", ""};
  for (model::NeuronDevice& device : snapshot->host.devices) device.core_health.assign(8, sound);
  snapshot->host.devices[0].core_health[5] = broken;  // logical core 0 is made of the physical ones 4 and 5
  snapshot->host.devices[0].health = broken;
  const grant::NodeUnits node(snapshot);
  const UnitList cores = make_unit_list(node, model::Resource::neuroncore, {}, {});
  ASSERT_EQ(cores.size(), 64U);
  for (std::size_t core = 0; core < cores.size(); ++core) EXPECT_EQ(cores[core].healthy, core != 0) << core;
  EXPECT_EQ(node.health_of(model::Resource::neuroncore, 0).reason, "hw_nc_ue_error");
  const UnitList devices = make_unit_list(node, model::Resource::neuron, {}, {});
  EXPECT_FALSE(devices[0].healthy);
  EXPECT_TRUE(devices[1].healthy);
}

TEST(UnitList, NumaMinusOneIsLeftOut) {
  const UnitList devices = make_unit_list(*node_of("trn1.2xlarge"), model::Resource::neuron, {}, {});
  ASSERT_EQ(devices.size(), 1U);
  EXPECT_TRUE(devices[0].numa_nodes.empty());
}

}  // namespace
}  // namespace neuron::plugin
