// GetPreferredAllocation where a scheduler extender has chosen.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugin/device/allocations.h"
#include "test/fakes/fake_clock.h"
#include "test/unit/grant/nodes.h"

namespace neuron::plugin {
namespace {

using model::Resource;
using testing::ElementsAre;
using testing::HasSubstr;

struct Placed : testing::Test {
  fakes::FakeClock clock;
  holdings::CheckpointVersion version = 1;
  Allocations allocations{grant::GrantOptions{}, [this] { return version; }, clock};
  grant::NodeUnitsPtr node = node_of("trn1.32xlarge");

  void SetUp() override { allocations.set_node(node); }
  [[nodiscard]] Allocations::Preference prefer(Resource resource, int size, const PlacedIds& placed) {
    return allocations.prefer_placed(resource, ids(*node, resource), {}, size, placed);
  }
};

TEST_F(Placed, ExactlyTheseUnits) {
  const auto devices = prefer(Resource::neuron, 2, {Resource::neuron, {7, 12}});
  EXPECT_EQ(devices.obstacle, "");
  EXPECT_THAT(devices.ids, ElementsAre("7", "12"));
  EXPECT_THAT(prefer(Resource::neuroncore, 3, {Resource::neuroncore, {9, 10, 11}}).ids, ElementsAre("9", "10", "11"));
}

TEST_F(Placed, DevicesStandForTheirCoresAndForTheirAlias) {
  EXPECT_THAT(prefer(Resource::neuroncore, 2, {Resource::neuron, {7}}).ids, ElementsAre("14", "15"));
  EXPECT_THAT(prefer(Resource::neuron, 1, {Resource::neuroncore, {14, 15}}).obstacle, HasSubstr("not all of its ids"));
  Allocations all({}, [] { return 1; }, clock, {{Resource::neuron, Resource::neurondevice}, {}});
  all.set_node(node);
  EXPECT_THAT(
      all.prefer_placed(Resource::neurondevice, ids(*node, Resource::neurondevice), {}, 1, {Resource::neuron, {7}}).ids,
      ElementsAre("7"));
}

TEST_F(Placed, WhatDoesNotFitLeavesTheChoiceToTheAgent) {
  const auto unknown = prefer(Resource::neuron, 1, {Resource::neuron, {16}});
  EXPECT_THAT(unknown.obstacle, HasSubstr("not all of its ids are of this node"));
  EXPECT_THAT(unknown.ids, ElementsAre("0"));
  const auto fewer = prefer(Resource::neuron, 2, {Resource::neuron, {7}});
  EXPECT_THAT(fewer.obstacle, HasSubstr("1 unit"));
  EXPECT_THAT(fewer.ids, ElementsAre("0", "1"));
  const auto taken = allocations.prefer_placed(Resource::neuron, {"0", "1", "2"}, {}, 1, {Resource::neuron, {7}});
  EXPECT_THAT(taken.obstacle, HasSubstr("7 is not free at the kubelet"));
  EXPECT_EQ(taken.ids, allocations.prefer(Resource::neuron, {"0", "1", "2"}, {}, 1));
  const auto reused = allocations.prefer_placed(Resource::neuron, {"0", "7"}, {"0"}, 1, {Resource::neuron, {7}});
  EXPECT_THAT(reused.obstacle, HasSubstr("the kubelet reuses other ids"));
  EXPECT_THAT(reused.ids, ElementsAre("0"));
}

TEST_F(Placed, HeldUnitsAreNotGivenAgain) {
  ASSERT_TRUE(allocations.allocate(Resource::neuron, {"7"}));
  ++version;
  const auto cores = prefer(Resource::neuroncore, 2, {Resource::neuroncore, {14, 15}});
  EXPECT_THAT(cores.obstacle, HasSubstr("core 14 is held by"));
  EXPECT_EQ(cores.ids, allocations.prefer(Resource::neuroncore, ids(*node, Resource::neuroncore), {}, 2));
}

TEST_F(Placed, ASecondNameOfTheContainerStaysOnItsCores) {
  ASSERT_TRUE(allocations.allocate(Resource::neuroncore, {"14", "15"}));
  EXPECT_EQ(prefer(Resource::neuron, 1, {Resource::neuron, {7}}).obstacle, "");
  const auto other = prefer(Resource::neuron, 1, {Resource::neuron, {8}});
  EXPECT_THAT(other.obstacle, HasSubstr("other cores already"));
  EXPECT_THAT(other.ids, ElementsAre("7"));
}

}  // namespace
}  // namespace neuron::plugin
