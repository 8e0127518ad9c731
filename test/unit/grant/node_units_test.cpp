#include "agent/grant/grant.h"

#include <gtest/gtest.h>

#include "test/unit/grant/nodes.h"

namespace neuron::grant {
namespace {

TEST(NodeUnits, CountsTheUnitsOfEveryResource) {
  const NodeUnitsPtr trn1 = node_of("trn1.32xlarge");
  EXPECT_EQ(trn1->units(model::Resource::neuroncore).size(), 32U);
  EXPECT_EQ(trn1->units(model::Resource::neuron).size(), 16U);
  EXPECT_EQ(trn1->units(model::Resource::efa).size(), 8U);
  const NodeUnitsPtr trn2 = node_of("trn2.48xlarge");
  EXPECT_EQ(trn2->units(model::Resource::neuroncore).size(), 64U) << "logical cores, LNC 2";
  const NodeUnitsPtr gpu = node_of("p5.48xlarge");
  EXPECT_TRUE(gpu->units(model::Resource::neuron).empty());
  EXPECT_EQ(gpu->units(model::Resource::efa).size(), 32U);
}

TEST(NodeUnits, WhileLncIsUnreadThereAreInterfacesOnly) {
  const auto snapshot = snapshot_of("trn2.48xlarge");
  snapshot->host.lnc.reset();
  snapshot->host.lnc_is_unread = true;
  const NodeUnits unread(snapshot);
  EXPECT_TRUE(unread.units(model::Resource::neuron).empty());
  EXPECT_TRUE(unread.units(model::Resource::neuroncore).empty());
  EXPECT_FALSE(unread.unit_of(model::Resource::neuron, "3"));
  EXPECT_EQ(unread.units(model::Resource::efa).size(), 16U);
  EXPECT_NE(unread.device(3), nullptr) << "it is there all the same";
}

TEST(NodeUnits, IdsAreBareIndicesAndRdmaNames) {
  const NodeUnitsPtr node = node_of("trn1.32xlarge");
  EXPECT_EQ(*node->unit_of(model::Resource::neuroncore, "31"), 31);
  EXPECT_EQ(node->cores_of(model::Resource::neuron, 3), (std::vector<int>{6, 7}));
  EXPECT_EQ(node->device_of_core(7), 3);
  const auto efa = node->unit_of(model::Resource::efa, "rdmap16s25");
  ASSERT_TRUE(efa);
  EXPECT_EQ(node->id_of(model::Resource::efa, *efa), "rdmap16s25");
}

TEST(NodeUnits, ForeignIdsAreRefusedByName) {
  const NodeUnitsPtr node = node_of("trn1.32xlarge");
  for (const char* bad : {"", "32", "-1", "01", "1 ", "x", "99999999999999999999", "rdmap16s25"}) {
    const auto unit = node->unit_of(model::Resource::neuroncore, bad);
    ASSERT_FALSE(unit) << bad;
    EXPECT_EQ(unit.error().code, ErrorCode::invalid_argument);
  }
  EXPECT_FALSE(node->unit_of(model::Resource::neuron, "16"));
  EXPECT_FALSE(node->unit_of(model::Resource::efa, "rdmap16s2"));
}

}  // namespace
}  // namespace neuron::grant
