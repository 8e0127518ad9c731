// The allocations on nodes that offer a device under one name only.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "plugin/device/allocations.h"
#include "test/fakes/fake_clock.h"
#include "test/unit/grant/nodes.h"

namespace neuron::plugin {
namespace {

using testing::HasSubstr;

// trn1.32xlarge, devices 0 to 3 as cores.
struct AllocationsSplit : testing::Test {
  fakes::FakeClock clock;
  holdings::CheckpointVersion version = 1;
  core::OfferPolicy offer{*core::parse_resource_list("all"), *core::parse_core_devices("0-3")};
  Allocations allocations{grant::GrantOptions{}, [this] { return version; }, clock, offer};
  grant::NodeUnitsPtr node = node_of("trn1.32xlarge");

  AllocationsSplit() { allocations.set_node(node); }
  std::vector<std::string> listed(model::Resource resource, bool healthy = true) {
    std::vector<std::string> ids;
    const auto list = allocations.unit_list(resource);
    for (const auto& unit : *list) {
      if (unit.healthy == healthy) ids.push_back(unit.id);
    }
    return ids;
  }
  // PodResources shows these holders, and only these.
  void shown(const std::vector<model::Allocation>& holders) {
    clock.advance(std::chrono::seconds(10));
    allocations.reconcile({holders, clock.now(), {}, 0});
  }
};

const std::vector<std::string> kFirstCores = {"0", "1", "2", "3", "4", "5", "6", "7"};
const std::vector<std::string> kLastDevices = {"4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15"};

TEST_F(AllocationsSplit, EachDeviceIsInOneListAndNothingIsWithheldAcross) {
  EXPECT_EQ(listed(model::Resource::neuroncore), kFirstCores);
  EXPECT_EQ(listed(model::Resource::neuron), kLastDevices);
  EXPECT_TRUE(allocations.unit_list(model::Resource::neurondevice)->empty());
  EXPECT_EQ(listed(model::Resource::efa).size(), 8U);
  ASSERT_TRUE(allocations.allocate(model::Resource::neuron, kLastDevices));
  ++version;
  ASSERT_TRUE(allocations.allocate(model::Resource::neuroncore, kFirstCores));
  EXPECT_EQ(listed(model::Resource::neuroncore), kFirstCores);
  EXPECT_EQ(listed(model::Resource::neuron), kLastDevices);
  EXPECT_FALSE(allocations.withholds(model::Resource::neuron)) << "nobody waits for what is not offered";
  EXPECT_FALSE(allocations.withholds(model::Resource::neuroncore));
}

TEST_F(AllocationsSplit, ABrokenDeviceOfEitherClassIsUnhealthyInItsList) {
  auto snapshot = snapshot_of("trn1.32xlarge");
  snapshot->host.devices[2].health.state = model::HealthState::unhealthy;
  snapshot->host.devices[9].health.state = model::HealthState::unhealthy;
  allocations.set_node(std::make_shared<const grant::NodeUnits>(snapshot));
  EXPECT_EQ(listed(model::Resource::neuroncore, false), (std::vector<std::string>{"4", "5"}));
  EXPECT_EQ(listed(model::Resource::neuron, false), (std::vector<std::string>{"9"}));
}

TEST_F(AllocationsSplit, BothNamesInOneContainerAreRefusedInWords) {
  ASSERT_TRUE(allocations.allocate(model::Resource::neuron, {"8"}));
  EXPECT_EQ(allocations.allocate(model::Resource::neuroncore, {"0", "1"}).error().message,
            "aws.amazon.com/neuroncore: the container was just allocated 2 cores through aws.amazon.com/neuron, and "
            "this node offers no device under both names; request one of the two resources only "
            "(docs/resources.md#one-name-or-two)");
}

// From before a restart with another split: device 3 was given whole, core 20 as a core.
TEST_F(AllocationsSplit, WhatIsHeldUnderTheOtherNameStaysListedThereAndIsWithheldHere) {
  shown({{"default", "old", "c", "aws.amazon.com/neuron", {"3"}},
         {"default", "small", "c", "aws.amazon.com/neuroncore", {"20"}}});
  EXPECT_THAT(listed(model::Resource::neuron, true), testing::Contains("3"))
      << "the kubelet does not survive its leaving";
  EXPECT_EQ(listed(model::Resource::neuron, false), (std::vector<std::string>{"10"}));
  EXPECT_EQ(listed(model::Resource::neuroncore, false), (std::vector<std::string>{"6", "7"}));
  EXPECT_THAT(listed(model::Resource::neuroncore), testing::Contains("20"));
  EXPECT_EQ(allocations.unit_list(model::Resource::neuroncore)->size(), 9U);
  EXPECT_TRUE(allocations.withholds(model::Resource::neuron));
  EXPECT_TRUE(allocations.withholds(model::Resource::neuroncore));
  EXPECT_THAT(allocations.allocate(model::Resource::neuroncore, {"6"}).error().message,
              HasSubstr("core 6 is held by default/old/c through aws.amazon.com/neuron"));
  shown({{"default", "small", "c", "aws.amazon.com/neuroncore", {"20"}}});
  EXPECT_EQ(listed(model::Resource::neuroncore),
            (std::vector<std::string>{"0", "1", "2", "3", "4", "5", "6", "7", "20"}));
  EXPECT_EQ(allocations.unit_list(model::Resource::neuron)->size(), 12U);
  shown({});
  EXPECT_EQ(listed(model::Resource::neuroncore), kFirstCores);
  EXPECT_EQ(listed(model::Resource::neuron), kLastDevices);
}

TEST_F(AllocationsSplit, WhatIsHeldThroughBothNamesLeavesTheWrongListSoonAsWell) {
  shown({{"default", "old", "c", "aws.amazon.com/neuron", {"3"}},
         {"default", "old", "c", "aws.amazon.com/neuroncore", {"6", "7"}}});
  EXPECT_FALSE(allocations.withholds(model::Resource::neuroncore));
  EXPECT_TRUE(allocations.withholds(model::Resource::neuron)) << "device 3 is there only because it is held";
}

TEST_F(AllocationsSplit, AUnitOfTheOtherClassIsNeitherPreferredNorGiven) {
  shown({{"default", "old", "c", "aws.amazon.com/neuron", {"3"}}});
  EXPECT_THAT(allocations.prefer(model::Resource::neuron, ids(*node, model::Resource::neuron), {}, 12),
              testing::Not(testing::Contains("3")));
  shown({});
  EXPECT_EQ(allocations.allocate(model::Resource::neuron, {"3"}).error().message,
            "aws.amazon.com/neuron: \"3\" is offered under another resource name now (--resources or --core-devices of "
            "this node); have a Job or ReplicaSet recreate this pod");
  EXPECT_FALSE(allocations.holds_anything());
}

TEST_F(AllocationsSplit, NicsThatComeFirstAreChosenBesideDevicesThatCanBeGivenWhole) {
  const auto nics = allocations.prefer(model::Resource::efa, ids(*node, model::Resource::efa), {}, 2);
  std::set<int> beside;
  for (const auto& device : node->topology().devices) {
    for (const std::string& nic : nics) {
      if (std::count(device.near_efas.begin(), device.near_efas.end(), *node->unit_of(model::Resource::efa, nic)) > 0) {
        beside.insert(device.index);
      }
    }
  }
  EXPECT_EQ(beside, (std::set<int>{4, 5, 6, 7}));
}

TEST(OneNameDesk, TheOtherNameHasNoListAndIsRespectedAllTheSame) {
  fakes::FakeClock clock;
  Allocations allocations({}, [] { return 0; }, clock, {*core::parse_resource_list("neuroncore"), std::nullopt});
  allocations.set_node(node_of("trn1.32xlarge"));
  clock.advance(std::chrono::seconds(1));
  allocations.reconcile({{{"default", "old", "c", "aws.amazon.com/neuron", {"3"}}}, clock.now(), {}, 0});
  EXPECT_TRUE(allocations.unit_list(model::Resource::neuron)->empty()) << "another plugin may serve it";
  EXPECT_TRUE(allocations.unit_list(model::Resource::efa)->empty());
  EXPECT_TRUE(allocations.withholds(model::Resource::neuroncore));
  EXPECT_FALSE(allocations.allocate(model::Resource::neuroncore, {"7"}));
  EXPECT_FALSE(allocations.withholds(model::Resource::neuron));
}

}  // namespace
}  // namespace neuron::plugin
