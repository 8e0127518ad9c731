// The allocations on a node whose pods still hold hardware by claims: the kubelet's device manager takes it for free.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugin/device/allocations.h"
#include "test/fakes/fake_clock.h"
#include "test/unit/grant/nodes.h"

namespace neuron::plugin {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr auto kDevice = model::Resource::neuron;
constexpr auto kCore = model::Resource::neuroncore;
constexpr auto kEfa = model::Resource::efa;

model::Allocation claimed(std::vector<std::string> devices, const std::string& driver = "neuron.aws.com") {
  return {"team", "train-0", "main", driver, std::move(devices), "", "chips"};
}

struct AllocationsClaims : testing::Test {
  fakes::FakeClock clock;
  holdings::CheckpointVersion version = 1;
  Allocations allocations{grant::GrantOptions{}, [this] { return version; }, clock};

  AllocationsClaims() { allocations.set_node(node_of("trn1.32xlarge")); }  // 16 devices of 2 cores
  std::vector<std::string> unhealthy(model::Resource resource) {
    std::vector<std::string> ids;
    const auto list = allocations.unit_list(resource);
    for (const auto& unit : *list) {
      if (!unit.healthy) ids.push_back(unit.id);
    }
    return ids;
  }
  // PodResources shows these claims, and no other holder.
  void shown(std::vector<model::Allocation> claims) {
    clock.advance(std::chrono::seconds(10));
    allocations.reconcile({{}, clock.now(), {}, 0, {}, std::move(claims)});
  }
};

TEST_F(AllocationsClaims, WhatAClaimHoldsIsWithheldFromEveryName) {
  EXPECT_FALSE(allocations.holds_anything());
  shown({claimed({"neuron-group-4-7", "neuron-device-9-core-1", "efa-rdmap16s25"})});
  EXPECT_THAT(unhealthy(kDevice), ElementsAre("4", "5", "6", "7", "9"));
  EXPECT_THAT(unhealthy(kCore), ElementsAre("8", "9", "10", "11", "12", "13", "14", "15", "19"));
  EXPECT_THAT(unhealthy(kEfa), ElementsAre("rdmap16s25"));
  EXPECT_TRUE(allocations.holds_anything()) << "so it is asked after";
  for (const auto resource : {kDevice, kCore, kEfa}) EXPECT_TRUE(allocations.withholds(resource));
  shown({});
  EXPECT_THAT(unhealthy(kDevice), IsEmpty());
  EXPECT_THAT(unhealthy(kEfa), IsEmpty());
  EXPECT_FALSE(allocations.holds_anything());
}

TEST_F(AllocationsClaims, AllocateRefusesAndNamesTheClaim) {
  shown({claimed({"neuron-device-3-core-1", "efa-rdmap16s25"})});
  const auto device = allocations.allocate(kDevice, {"3"});
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().code, ErrorCode::failed_precondition);
  EXPECT_THAT(device.error().message, HasSubstr("core 7 is held by team/train-0/main through claim chips"));
  EXPECT_FALSE(allocations.allocate(kCore, {"7"})) << "also by the name that one core has";
  EXPECT_TRUE(allocations.allocate(kCore, {"6"}));
  const auto nic = allocations.allocate(kEfa, {"rdmap16s25"});
  ASSERT_FALSE(nic);
  EXPECT_THAT(nic.error().message, HasSubstr("\"rdmap16s25\" is held by team/train-0/main through claim chips"));
}

TEST_F(AllocationsClaims, NoAnswerAndNoCheckpointEndsAClaim) {
  shown({claimed({"neuron-device-3"})});
  ASSERT_TRUE(allocations.allocate(kDevice, {"4"}));
  allocations.confirm({}, ++version, clock.now());
  EXPECT_FALSE(allocations.allocate(kDevice, {"3"}));
  EXPECT_THAT(allocations.prefer(kDevice, {"2", "3"}, {}, 1), ElementsAre("2"));
  EXPECT_THAT(unhealthy(kDevice), ElementsAre("3"));
}

TEST_F(AllocationsClaims, NoCheckpointIsAwaitedForWhatOnlyAClaimHolds) {
  shown({claimed({"neuron-device-3", "efa-rdmap16s25"})});
  EXPECT_FALSE(allocations.needs_fresh_checkpoint(kDevice, {"3"}));
  EXPECT_FALSE(allocations.needs_fresh_checkpoint(kCore, {"6"}));
  EXPECT_FALSE(allocations.needs_fresh_checkpoint(kEfa, {"rdmap16s25"}));
}

TEST_F(AllocationsClaims, OtherNamesHoldNothing) {
  shown({claimed({"gpu-0"}, "gpu.example.com"), claimed({"neuron-device-3", "gpu-0"}, "gpu.example.com"),
         claimed({}, "gpu.example.com"), claimed({"neuron-device-16x", "gpu-0", ""})});
  EXPECT_FALSE(allocations.holds_anything());
  EXPECT_TRUE(allocations.allocate(kDevice, {"3"}));
}

// Ours under the name that it had when the claims were prepared.
TEST_F(AllocationsClaims, ARenamedDriversClaimsHoldWhatTheyHeld) {
  auto snapshot = snapshot_of("trn1.32xlarge");
  snapshot->host.devices.erase(snapshot->host.devices.begin() + 4);
  allocations.set_node(std::make_shared<const grant::NodeUnits>(snapshot));
  shown({claimed({"neuron-device-3", "neuron-device-4"}, "second.neuron.example.com"),
         claimed({"efa-rdmap16s25"}, "third.example.com")});
  EXPECT_THAT(unhealthy(kDevice), ElementsAre("3", "4")) << "a device that has vanished, too";
  EXPECT_THAT(unhealthy(kEfa), ElementsAre("rdmap16s25"));
  const auto device = allocations.allocate(kDevice, {"3"});
  ASSERT_FALSE(device);
  EXPECT_THAT(device.error().message, HasSubstr("held by team/train-0/main through claim chips"));
}

TEST_F(AllocationsClaims, WhatAClaimHoldsAndNobodySeesIsListedAsVanished) {
  auto snapshot = snapshot_of("trn1.32xlarge");
  snapshot->host.devices.erase(snapshot->host.devices.begin() + 5);
  allocations.set_node(std::make_shared<const grant::NodeUnits>(snapshot));
  EXPECT_EQ(allocations.unit_list(kDevice)->size(), 15U);
  shown({claimed({"neuron-group-4-7"})});
  EXPECT_EQ(allocations.unit_list(kDevice)->size(), 16U);
  EXPECT_THAT(unhealthy(kDevice), ElementsAre("4", "5", "6", "7"));
}

}  // namespace
}  // namespace neuron::plugin
