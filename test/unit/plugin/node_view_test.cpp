#include "plugin/device/node_view.h"

#include <gtest/gtest.h>

#include "test/unit/plugin/views.h"

namespace neuron::plugin {
namespace {

TEST(NodeView, CountsTheUnitsOfEveryResource) {
  const NodeViewPtr trn1 = view_of("trn1.32xlarge");
  EXPECT_EQ(trn1->units(model::Resource::neuroncore).size(), 32U);
  EXPECT_EQ(trn1->units(model::Resource::neuron).size(), 16U);
  EXPECT_EQ(trn1->units(model::Resource::efa).size(), 8U);
  const NodeViewPtr trn2 = view_of("trn2.48xlarge");
  EXPECT_EQ(trn2->units(model::Resource::neuroncore).size(), 64U) << "logical cores, LNC 2";
  const NodeViewPtr gpu = view_of("p5.48xlarge");
  EXPECT_TRUE(gpu->units(model::Resource::neuron).empty());
  EXPECT_EQ(gpu->units(model::Resource::efa).size(), 32U);
}

TEST(NodeView, IdsAreBareIndicesAndRdmaNames) {
  const NodeViewPtr view = view_of("trn1.32xlarge");
  EXPECT_EQ(*view->unit_of(model::Resource::neuroncore, "31"), 31);
  EXPECT_EQ(view->cores_of(model::Resource::neuron, 3), (std::vector<int>{6, 7}));
  EXPECT_EQ(view->device_of_core(7), 3);
  const auto efa = view->unit_of(model::Resource::efa, "rdmap16s25");
  ASSERT_TRUE(efa);
  EXPECT_EQ(view->id_of(model::Resource::efa, *efa), "rdmap16s25");
}

TEST(NodeView, ForeignIdsAreRefusedByName) {
  const NodeViewPtr view = view_of("trn1.32xlarge");
  for (const char* bad : {"", "32", "-1", "01", "1 ", "x", "99999999999999999999", "rdmap16s25"}) {
    const auto unit = view->unit_of(model::Resource::neuroncore, bad);
    ASSERT_FALSE(unit) << bad;
    EXPECT_EQ(unit.error().code, ErrorCode::invalid_argument);
  }
  EXPECT_FALSE(view->unit_of(model::Resource::neuron, "16"));
  EXPECT_FALSE(view->unit_of(model::Resource::efa, "rdmap16s2"));
}

TEST(UnitList, ShowsHealthBlocksAndNumaAndDropsNothing) {
  auto snapshot = snapshot_of("trn1.32xlarge");
  snapshot->host.devices[2].health = {model::HealthState::unhealthy, "x", "", ""};
  snapshot->host.devices[3].health = {model::HealthState::degraded, "x", "", ""};
  const NodeView view(snapshot);
  const UnitList cores = make_unit_list(view, model::Resource::neuroncore, {}, {{0, 9}, {}});
  ASSERT_EQ(cores.size(), 32U);
  EXPECT_FALSE(cores[0].healthy);
  EXPECT_TRUE(cores[1].healthy);
  EXPECT_FALSE(cores[4].healthy);
  EXPECT_FALSE(cores[5].healthy);
  EXPECT_TRUE(cores[6].healthy) << "degraded stays allocatable";
  EXPECT_FALSE(cores[9].healthy);
  EXPECT_EQ(cores[4].numa_nodes, (std::vector<int>{1}));
  const UnitList devices = make_unit_list(view, model::Resource::neuron, {}, {{9}, {}});
  EXPECT_FALSE(devices[4].healthy) << "one blocked core blocks its device";
}

TEST(UnitList, AFaultOfOneCoreTakesItsUnitAndTheWholeDeviceOnly) {
  auto snapshot = snapshot_of("trn2.48xlarge");
  const model::Health sound{model::HealthState::healthy, "", "", ""};
  const model::Health broken{model::HealthState::unhealthy, "hw_nc_ue_error", "", ""};
  for (model::NeuronDevice& device : snapshot->host.devices) device.core_health.assign(8, sound);
  snapshot->host.devices[0].core_health[5] = broken;  // logical core 0 is made of the physical ones 4 and 5
  snapshot->host.devices[0].health = broken;
  const NodeView view(snapshot);
  const UnitList cores = make_unit_list(view, model::Resource::neuroncore, {}, {});
  ASSERT_EQ(cores.size(), 64U);
  for (std::size_t core = 0; core < cores.size(); ++core) EXPECT_EQ(cores[core].healthy, core != 0) << core;
  EXPECT_EQ(view.health_of(model::Resource::neuroncore, 0).reason, "hw_nc_ue_error");
  const UnitList devices = make_unit_list(view, model::Resource::neuron, {}, {});
  EXPECT_FALSE(devices[0].healthy);
  EXPECT_TRUE(devices[1].healthy);
}

TEST(UnitList, NumaMinusOneIsLeftOut) {
  const UnitList devices = make_unit_list(*view_of("trn1.2xlarge"), model::Resource::neuron, {}, {});
  ASSERT_EQ(devices.size(), 1U);
  EXPECT_TRUE(devices[0].numa_nodes.empty());
}

}  // namespace
}  // namespace neuron::plugin
