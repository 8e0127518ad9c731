#include "plugin/dra/slices/pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugin/dra/slices/publisher.h"
#include "test/unit/dra/limits.h"
#include "test/unit/dra/pools.h"

namespace neuron::plugin::dra {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::array kShapes = {SliceShape::plain, SliceShape::combined, SliceShape::split};
constexpr std::array kPartitions = {Partitions::none, Partitions::cores, Partitions::groups, Partitions::all};

std::vector<std::size_t> sizes(const Layout& layout) {
  std::vector<std::size_t> all;
  for (const SliceContent& slice : layout.slices) all.push_back(slice.devices.size());
  return all;
}

std::size_t device_count(const Layout& layout) {
  std::size_t count = 0;
  for (const SliceContent& slice : layout.slices) count += slice.devices.size();
  return count;
}

// Every instance type, LNC, choice of partitions and kind of server, well, ill and half gone with claims.
TEST(SliceLayout, EveryNodeIsWithinTheLimitsOfEveryServer) {
  int nodes = 0;
  for (const core::InstanceType& type : core::all_instance_types()) {
    for (const int lnc : {1, 2}) {
      TestNode well(type.name, lnc);
      TestNode ill(type.name, lnc);
      for (model::NeuronDevice& device : ill.snapshot->host.devices) ill.make_ill(device.index);
      for (const Partitions partitions : kPartitions) {
        const std::vector<std::string> held = {"neuron-device-99-core-31", "neuron-group-0-1", "efa-rdmap1s1"};
        for (const Pool& pool : {well.pool(with_partitions(partitions)), ill.pool(with_partitions(partitions)),
                                 well.pool(with_partitions(partitions), held)}) {
          for (const SliceShape shape : kShapes) {
            for (const bool taints : {true, false}) {
              SCOPED_TRACE(type.name + " lnc " + std::to_string(lnc));
              expect_within_limits(lay_out(pool, {shape, taints}).slices, shape);
              ++nodes;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(nodes, 1000);
}

TEST(SliceLayout, FromOneThirtyFiveNothingIsLeftOut) {
  for (const core::InstanceType& type : core::all_instance_types()) {
    for (const int lnc : {1, 2}) {
      const Pool pool = TestNode(type.name, lnc).pool();
      const Layout layout = lay_out(pool, {SliceShape::split, true});
      EXPECT_EQ(device_count(layout), pool.devices.size()) << type.name;
      EXPECT_THAT(layout.left_out, IsEmpty());
      EXPECT_LE(layout.slices.size(), 5U) << type.name;
    }
  }
}

TEST(SliceLayout, WhatChangesTogetherIsInOneSliceWhereThatFits) {
  EXPECT_THAT(sizes(lay_out(TestNode("trn1.32xlarge").pool(), {})), ElementsAre(0, 16 + 7 + 32 + 8));
  EXPECT_THAT(sizes(lay_out(TestNode("trn1n.32xlarge").pool(), {})), ElementsAre(0, 16 + 7 + 32, 16));
  EXPECT_THAT(sizes(lay_out(TestNode("trn2.48xlarge", 2).pool(), {})), ElementsAre(0, 16 + 7 + 16, 64));
  EXPECT_THAT(sizes(lay_out(TestNode("trn2.48xlarge", 1).pool(), {})), ElementsAre(0, 16 + 7 + 16, 64, 64));
  EXPECT_THAT(sizes(lay_out(TestNode("inf2.48xlarge").pool(), {})), ElementsAre(0, 12 + 24, 64, 57));
  EXPECT_THAT(sizes(lay_out(TestNode("inf2.xlarge").pool(), {})), ElementsAre(0, 1 + 2));
  EXPECT_THAT(sizes(lay_out(TestNode("p5.48xlarge").pool(), {})), ElementsAre(32)) << "interfaces alone";
}

TEST(SliceLayout, KindsKeepTheirOrderOverSlices) {
  for (const core::InstanceType& type : core::all_instance_types()) {
    const Pool pool = TestNode(type.name, 1).pool();
    std::map<DeviceKind, std::vector<std::string>> seen;
    for (const SliceContent& slice : lay_out(pool, {}).slices) {
      for (const PoolDevice& device : slice.devices) seen[find(pool, device.name).kind].push_back(device.name);
    }
    for (const auto& [kind, names] : seen) EXPECT_EQ(names, names_of(pool, kind)) << type.name;
  }
}

TEST(SliceLayout, Pain11CountersAndDevicesShareASliceOnlyInOneThirtyFour) {
  const Pool pool = TestNode("trn1.32xlarge").pool();
  const Layout combined = lay_out(pool, {SliceShape::combined, true});
  EXPECT_THAT(sizes(combined), ElementsAre(16 + 7 + 32, 8));
  EXPECT_THAT(combined.slices[0].counters, SizeIs(16));
  const Layout split = lay_out(pool, {SliceShape::split, true});
  EXPECT_THAT(split.slices[0].counters, SizeIs(16));
  EXPECT_THAT(split.slices[0].devices, IsEmpty());
  EXPECT_THAT(split.slices[1].counters, IsEmpty());
}

TEST(SliceLayout, Pain12ThereIsNoEmptyCounterSet) {
  for (const SliceShape shape : kShapes) {
    for (const SliceContent& slice :
         lay_out(TestNode("trn1.32xlarge").pool(with_partitions(Partitions::none)), {shape, true}).slices) {
      EXPECT_THAT(slice.counters, IsEmpty());
      for (const PoolDevice& device : slice.devices) EXPECT_THAT(device.consumes, IsEmpty());
    }
  }
}

TEST(SliceLayout, OneThirtyFourHasNoRoomForAllOfTheGreatestNodes) {
  const Layout trn2 = lay_out(TestNode("trn2.48xlarge", 1).pool(), {SliceShape::combined, true});
  EXPECT_THAT(sizes(trn2), ElementsAre(16 + 7, 16));
  EXPECT_THAT(trn2.left_out, ElementsAre(HasSubstr("128 cores")));
  const Layout ring = lay_out(TestNode("inf2.48xlarge").pool(), {SliceShape::combined, true});
  EXPECT_THAT(sizes(ring), ElementsAre(12 + 24 + 12 * 7 + 1)) << "runs of 2 to 8, and the whole ring";
  EXPECT_THAT(ring.left_out,
              ElementsAre(HasSubstr("groups of 11"), HasSubstr("groups of 10"), HasSubstr("groups of 9")));
}

// Pain 3 of kind: without counters two overlapping devices would be two devices.
TEST(SliceLayout, WithoutCountersNothingOverlaps) {
  const Layout layout = lay_out(TestNode("trn1.32xlarge").pool(), {SliceShape::plain, true});
  EXPECT_THAT(sizes(layout), ElementsAre(16 + 8));
  EXPECT_THAT(layout.left_out, ElementsAre(HasSubstr("39 cores and groups")));
  const Layout held =
      lay_out(TestNode("trn1.32xlarge").pool_with_held({"neuron-device-3-core-1"}), {SliceShape::plain, true});
  EXPECT_THAT(sizes(held), ElementsAre(15 + 1 + 8)) << "the core that a claim holds, and not its device";
}

TEST(SliceLayout, WithoutTaintsAnIllDeviceIsThereOnlyForItsHolder) {
  TestNode node("trn1.32xlarge");
  node.make_ill(3);
  node.make_ill(4);
  const Layout layout =
      lay_out(node.pool(with_partitions(Partitions::none), {"neuron-device-4"}), {SliceShape::plain, false});
  EXPECT_THAT(sizes(layout), ElementsAre(15 + 8));
  for (const PoolDevice& device : layout.slices[0].devices) {
    EXPECT_NE(device.name, "neuron-device-3");
    EXPECT_THAT(device.taints, IsEmpty());
  }
}

TEST(SliceLayout, AnIllDeviceChangesNoOtherPlace) {
  TestNode node("trn2.48xlarge");
  const Layout before = lay_out(node.pool(), {});
  node.make_ill(3);
  const Layout after = lay_out(node.pool(), {});
  ASSERT_EQ(sizes(after), sizes(before));
  for (std::size_t slice = 0; slice < before.slices.size(); ++slice) {
    for (std::size_t i = 0; i < before.slices[slice].devices.size(); ++i) {
      EXPECT_EQ(after.slices[slice].devices[i].name, before.slices[slice].devices[i].name);
    }
  }
}

PoolOptions with_shares() {
  PoolOptions options;
  options.shares = Shares::on;
  return options;
}

const PoolDevice& laid(const Layout& layout, const std::string& name) {
  for (const SliceContent& slice : layout.slices) {
    for (const PoolDevice& device : slice.devices) {
      if (device.name == name) return device;
    }
  }
  ADD_FAILURE() << "no " << name;
  static const PoolDevice none;
  return none;
}

void make_core_ill(TestNode& node, int index) {
  node.make_ill(index);
  model::NeuronDevice& device = node.device(index);
  device.core_health.assign(8, model::Health{model::HealthState::healthy, "", "", ""});
  device.core_health[3] = device.health;
}

TEST(SliceLayout, ASharedDeviceWithAnUnhealthyCoreHasOneLessAndIsNotWhole) {
  TestNode node("trn2.48xlarge", 2);
  make_core_ill(node, 3);
  node.make_ill(4);
  const Pool pool = node.pool(with_shares());
  const Layout shared = lay_out(pool, {SliceShape::split, true, true});
  EXPECT_EQ(laid(shared, "neuron-device-2").shareable_cores, 4);
  EXPECT_TRUE(value_of<bool>(laid(shared, "neuron-device-2"), "whole"));
  const PoolDevice& unhealthy = laid(shared, "neuron-device-3");
  EXPECT_EQ(unhealthy.capacity.at("cores"), 3);
  EXPECT_THAT(unhealthy.taints, IsEmpty());
  EXPECT_FALSE(value_of<bool>(unhealthy, "whole"));
  EXPECT_THAT(laid(shared, "neuron-device-4").taints, SizeIs(1)) << "no core of it is healthy";
  EXPECT_EQ(laid(shared, "neuron-device-4").capacity.at("cores"), 4);
  EXPECT_TRUE(has(pool, "neuron-device-3"));
  // On a server that keeps no taints it stays too; on one that keeps no policies all is as without shares.
  EXPECT_EQ(laid(lay_out(pool, {SliceShape::split, false, true}), "neuron-device-3").shareable_cores, 3);
  EXPECT_EQ(device_count(lay_out(pool, {SliceShape::split, true, false})), pool.devices.size());
  for (const bool taints : {true, false}) {
    EXPECT_EQ(whole_slices(lay_out(pool, {SliceShape::split, taints, false}).slices, {"d", "p", {"n", ""}})[0].json,
              whole_slices(lay_out(node.pool(with_partitions(Partitions::none)), {SliceShape::split, taints}).slices,
                           {"d", "p", {"n", ""}})[0]
                  .json);
  }
}

TEST(SliceLayout, ASharedDeviceKeepsATaintThatEvicts) {
  TestNode node("trn2.48xlarge", 2);
  make_core_ill(node, 3);
  PoolOptions options = with_shares();
  options.taint_effect = "NoExecute";
  const Layout shared = lay_out(node.pool(options), {SliceShape::split, true, true});
  const PoolDevice& unhealthy = laid(shared, "neuron-device-3");
  ASSERT_THAT(unhealthy.taints, SizeIs(1));
  EXPECT_EQ(unhealthy.taints[0].effect, "NoExecute");
  EXPECT_EQ(unhealthy.capacity.at("cores"), 3);
}

TEST(SliceLayout, ByDefaultDevicesAreSharedWhereClaimsForAllOfThemWait) {
  const TestNode node("trn2.48xlarge", 2);
  const auto cores_shared = [&](Shares shares, bool all_waits) {
    PoolOptions options;
    options.shares = shares;
    return laid(lay_out(node.pool(options), {SliceShape::split, true, true, all_waits}), "neuron-device-3")
        .shareable_cores;
  };
  EXPECT_EQ(cores_shared(Shares::automatic, true), 4);
  EXPECT_EQ(cores_shared(Shares::automatic, false), 0);
  EXPECT_EQ(cores_shared(Shares::on, false), 4);
  EXPECT_EQ(cores_shared(Shares::off, true), 0);
}

// Counters do not count shares.
TEST(SliceLayout, BesideCountersNothingIsShared) {
  PoolOptions options = with_shares();
  options.partitions = Partitions::cores;
  const TestNode node("trn2.48xlarge", 2);
  EXPECT_EQ(node.pool(options).devices, node.pool(with_partitions(Partitions::cores)).devices);
  // Nor while a claim holds a core from before; on a server without counters the other devices are.
  const Pool held = node.pool(with_shares(), {"neuron-device-3-core-1"});
  EXPECT_EQ(laid(lay_out(held, {SliceShape::split, true, true}), "neuron-device-2").shareable_cores, 0);
  EXPECT_EQ(laid(lay_out(held, {SliceShape::plain, true, true}), "neuron-device-2").shareable_cores, 4);
}

TEST(SliceLayout, CoreDevicesAreCoresAloneWithoutCounters) {
  PoolOptions options = with_shares();
  options.core_devices = core::CoreDevices{false, {0, 1}};
  const TestNode node("trn2.48xlarge", 2);
  const Pool pool = node.pool(options);
  EXPECT_THAT(pool.counters, IsEmpty());
  EXPECT_THAT(names_of(pool, DeviceKind::device), SizeIs(14));
  EXPECT_THAT(names_of(pool, DeviceKind::core), SizeIs(8));
  for (const SliceShape shape : kShapes) EXPECT_EQ(device_count(lay_out(pool, {shape, true})), pool.devices.size());
  // What a claim holds stays as it holds it, and nothing overlaps with that.
  const Pool held = node.pool(options, {"neuron-device-0", "neuron-device-5-core-2"});
  EXPECT_THAT(held.counters, IsEmpty());
  EXPECT_THAT(names_of(held, DeviceKind::device), SizeIs(14)) << "0 instead of 5";
  EXPECT_THAT(names_of(held, DeviceKind::core), SizeIs(5));
  EXPECT_EQ(find(held, "neuron-device-0").shareable_cores, 0) << "so that it becomes free";
}

}  // namespace
}  // namespace neuron::plugin::dra
