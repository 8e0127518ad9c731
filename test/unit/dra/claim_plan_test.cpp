#include "plugin/dra/claim/claim_plan.h"

#include <gtest/gtest.h>

#include "test/unit/grant/nodes.h"

namespace neuron::plugin::dra {
namespace {

using Devices = std::vector<HeldDevice>;

Devices devices_of(const grant::NodeUnits& node, const std::string& name) {
  const auto hardware = hardware_of(node, name);
  EXPECT_TRUE(hardware) << name << ": " << hardware.error().message;
  return hardware ? hardware->devices : Devices{};
}

TEST(ClaimPlan, NamesOfThePoolAreHardwareOfThisNode) {
  const auto node = node_of("trn2.48xlarge");
  EXPECT_EQ(devices_of(*node, "neuron-device-3"), (Devices{{3, {}}}));
  EXPECT_EQ(devices_of(*node, "neuron-group-4-7"), (Devices{{4, {}}, {5, {}}, {6, {}}, {7, {}}}));
  EXPECT_EQ(devices_of(*node, "neuron-node").size(), 16U);
  EXPECT_EQ(hardware_of(*node, "efa-" + node->efa(0).name)->efas, (std::vector<std::string>{node->efa(0).name}));
  EXPECT_EQ(devices_of(*node_of("inf2.48xlarge"), "neuron-group-11-0"), (Devices{{0, {}}, {11, {}}}));
}

// Cores are places, which mean the same silicon whatever LNC says now.
TEST(ClaimPlan, CoresArePlacesBeforeLncJoinsThem) {
  const auto two = node_of("trn2.48xlarge");
  ASSERT_EQ(two->snapshot().host.lnc->value, 2);
  EXPECT_EQ(devices_of(*two, "neuron-device-5-core-1"), (Devices{{5, {2, 3}}}));
  auto snapshot = snapshot_of("trn2.48xlarge");
  snapshot->host.lnc = model::Sourced<int>{1, model::Origin::live};
  EXPECT_EQ(devices_of(grant::NodeUnits(snapshot), "neuron-device-5-core-1"), (Devices{{5, {1}}}));
}

// Of a rebuilt record there is the name only, and the file that sets LNC may have been edited since.
TEST(ClaimPlan, ACoreThatOnlyItsNameTellsOfMayBeUnderEveryLnc) {
  for (const int lnc : {1, 2}) {
    auto snapshot = snapshot_of("trn2.48xlarge");
    snapshot->host.lnc = model::Sourced<int>{lnc, model::Origin::live};
    const grant::NodeUnits node(snapshot);
    EXPECT_EQ(possible_hardware_of(node, "neuron-device-5-core-1")->devices, (Devices{{5, {1, 2, 3}}}));
    EXPECT_EQ(possible_hardware_of(node, "neuron-device-5-core-6")->devices, (Devices{{5, {6}}}));
    EXPECT_FALSE(possible_hardware_of(node, "neuron-device-5-core-8"));
    EXPECT_EQ(possible_hardware_of(node, "neuron-device-5")->devices, (Devices{{5, {}}}));
  }
  EXPECT_EQ(possible_hardware_of(*node_of("trn1.32xlarge"), "neuron-device-5-core-1")->devices, (Devices{{5, {1}}}));
}

TEST(ClaimPlan, WhileLncIsUnreadNoDeviceIsPrepared) {
  auto snapshot = snapshot_of("trn2.48xlarge");
  snapshot->host.lnc.reset();
  snapshot->host.lnc_is_unread = true;
  const grant::NodeUnits node(snapshot);
  ResourceClaim claim;
  claim.is_allocated = true;
  AllocationResult result;
  result.request = "r";
  result.pool = "n1";
  for (const char* device : {"neuron-device-3", "neuron-device-3-core-1"}) {
    result.device = device;
    claim.results = {result};
    const auto plan = plan_of(claim, node, "n1", {});
    ASSERT_FALSE(plan) << device;
    EXPECT_EQ(plan.error().code, ErrorCode::unavailable);
    EXPECT_THAT(plan.error().message, testing::HasSubstr("logical_nc_config cannot be read"));
  }
  result.device = "efa-" + node.efa(0).name;
  claim.results = {result};
  EXPECT_TRUE(plan_of(claim, node, "n1", {}));
}

// Somebody else may have written a slice under our driver's name: nothing that a claim says is believed.
TEST(ClaimPlan, WhatIsNotThereIsRefusedByName) {
  const auto node = node_of("trn1.32xlarge");
  for (const char* name : {"neuron-device-16", "neuron-device-3-core-2", "neuron-group-12-16", "neuron-group-3-3",
                           "efa-rdmap0s0", "../../etc/passwd", "", "neuron-device-03"}) {
    const auto hardware = hardware_of(*node, name);
    ASSERT_FALSE(hardware) << name;
    EXPECT_THAT(hardware.error().message, testing::HasSubstr(std::string("\"") + name));
  }
  auto hole = snapshot_of("trn1.32xlarge");
  hole->host.devices.erase(hole->host.devices.begin() + 5);
  EXPECT_FALSE(hardware_of(grant::NodeUnits(hole), "neuron-group-4-7"));  // a member is gone
  EXPECT_TRUE(hardware_of(grant::NodeUnits(hole), "neuron-group-0-3"));
}

// The device is named, with its reason.
TEST(ClaimPlan, AnIllDeviceIsRefusedUnlessTheClaimToleratesItsTaint) {
  const UnhealthyTaint taint{"neuron.aws.com/unhealthy", "NoSchedule"};
  auto snapshot = snapshot_of("trn1.32xlarge");
  snapshot->host.devices[3].health = {model::HealthState::unhealthy, "sram_ecc_uncorrected", "3 uncorrected errors",
                                      "replace the instance"};
  const grant::NodeUnits node(snapshot);
  AllocationResult result;
  result.device = "neuron-group-0-3";
  const auto checked = check_health(node, result, taint);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().message,
            "\"neuron-group-0-3\" is unhealthy: 3 uncorrected errors; replace the instance; delete the pod, so that a "
            "new one gets another device");
  result.tolerations = {{taint.key, false, "sram_ecc_uncorrected", ""}};
  EXPECT_TRUE(check_health(node, result, taint));
  result.tolerations = {{taint.key, true, "", ""}};
  EXPECT_TRUE(check_health(node, result, taint));
  EXPECT_FALSE(check_health(node, result, {taint.key, ""}));  // no taint, nothing to tolerate
  result.device = "neuron-group-4-7";
  EXPECT_TRUE(check_health(node, result, taint));
}

TEST(ClaimPlan, OneIllCoreDoesNotForbidTheOthers) {
  auto snapshot = snapshot_of("trn1.32xlarge");
  auto& device = snapshot->host.devices[3];
  device.core_health.resize(2);
  device.core_health[0].state = model::HealthState::healthy;
  device.core_health[1] = {model::HealthState::unhealthy, "hw_error", "an error", ""};
  device.health = device.core_health[1];
  const grant::NodeUnits node(snapshot);
  AllocationResult result;
  result.device = "neuron-device-3-core-0";
  EXPECT_TRUE(check_health(node, result, {}));
  result.device = "neuron-device-3-core-1";
  EXPECT_FALSE(check_health(node, result, {}));
  result.device = "neuron-device-3";
  EXPECT_FALSE(check_health(node, result, {}));
}

TEST(Hardware, DevicesCoresAndGroupsExcludeEachOther) {
  const auto node = node_of("trn2.48xlarge");
  const auto of = [&](const char* name) { return *hardware_of(*node, name); };
  EXPECT_EQ(overlap(of("neuron-device-3"), of("neuron-device-3")), "neuron3");
  EXPECT_EQ(overlap(of("neuron-device-3"), of("neuron-device-3-core-1")), "neuron3");
  EXPECT_EQ(overlap(of("neuron-device-3-core-1"), of("neuron-group-0-3")), "neuron3");
  EXPECT_EQ(overlap(of("neuron-device-3-core-1"), of("neuron-device-3-core-1")), "core position 2 of neuron3");
  EXPECT_EQ(overlap(of("neuron-device-3-core-1"), of("neuron-device-3-core-2")), std::nullopt);
  EXPECT_EQ(overlap(of("neuron-group-0-3"), of("neuron-group-4-7")), std::nullopt);
  const std::string efa = "efa-" + node->efa(0).name;
  EXPECT_EQ(overlap(of(efa.c_str()), of(efa.c_str())), "interface " + node->efa(0).name);
}

TEST(Hardware, AddsUp) {
  Hardware all{{{1, {0, 1}}}, {"b"}};
  all.add({{{0, {}}, {1, {1, 2}}}, {"a"}});
  EXPECT_EQ(all, (Hardware{{{0, {}}, {1, {0, 1, 2}}}, {"a", "b"}}));
  all.add({{{1, {}}}, {"a"}});
  EXPECT_EQ(all, (Hardware{{{0, {}}, {1, {}}}, {"a", "b"}}));
}

}  // namespace
}  // namespace neuron::plugin::dra
