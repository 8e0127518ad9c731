// What the pool of a node has: names, order, attributes, counters, taints, what is held.
#include "plugin/dra/slices/pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "plugin/dra/slices/pool.h"
#include "test/unit/dra/pools.h"

namespace neuron::plugin::dra {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

TEST(Pool, CoresAndDevicesFromTheLowEndGroupsFromTheHighEnd) {
  const Pool pool = TestNode("trn1.32xlarge").pool();
  const auto devices = names_of(pool, DeviceKind::device), cores = names_of(pool, DeviceKind::core);
  ASSERT_THAT(devices, SizeIs(16));
  EXPECT_EQ(devices.front(), "neuron-device-0");
  EXPECT_EQ(devices.back(), "neuron-device-15");
  ASSERT_THAT(cores, SizeIs(32));
  EXPECT_EQ(cores[0], "neuron-device-0-core-0");
  EXPECT_EQ(cores[1], "neuron-device-0-core-1");
  EXPECT_EQ(cores[2], "neuron-device-1-core-0");
  EXPECT_THAT(names_of(pool, DeviceKind::group),
              ElementsAre("neuron-group-12-15", "neuron-group-8-11", "neuron-group-4-7", "neuron-group-0-3",
                          "neuron-group-8-15", "neuron-group-0-7", "neuron-group-0-15"));
  EXPECT_THAT(names_of(pool, DeviceKind::efa), SizeIs(8));
}

TEST(Pool, PartitionsAreAsAskedFor) {
  const TestNode node("trn1.32xlarge");
  const auto counts = [&](Partitions partitions) {
    const Pool pool = node.pool(with_partitions(partitions));
    return std::tuple(names_of(pool, DeviceKind::device).size(), names_of(pool, DeviceKind::core).size(),
                      names_of(pool, DeviceKind::group).size(), pool.counters.size());
  };
  EXPECT_EQ(counts(Partitions::none), std::tuple(16, 0, 0, 0)) << "nothing overlaps, so no counters";
  EXPECT_EQ(counts(Partitions::cores), std::tuple(16, 32, 0, 16));
  EXPECT_EQ(counts(Partitions::groups), std::tuple(16, 0, 7, 16));
  EXPECT_EQ(counts(Partitions::all), std::tuple(16, 32, 7, 16));
  const Pool single = TestNode("inf2.xlarge").pool(with_partitions(Partitions::groups));
  EXPECT_THAT(single.counters, IsEmpty()) << "one device makes no group";
}

// The sums of what any set of devices of the pool takes are right by construction: each takes every logical core of its
// own counters.
TEST(Pool, EveryDeviceConsumesTheCoresThatItIs) {
  const Pool pool = TestNode("trn2.48xlarge").pool();
  ASSERT_THAT(pool.counters, SizeIs(16));
  for (const auto& [counter, cores] : pool.counters) EXPECT_EQ(cores, 4) << counter;
  EXPECT_EQ(find(pool, "neuron-device-3").consumes, (std::map<std::string, std::int64_t>{{"device-3", 4}}));
  EXPECT_EQ(find(pool, "neuron-device-3-core-1").consumes, (std::map<std::string, std::int64_t>{{"device-3", 1}}));
  EXPECT_EQ(find(pool, "neuron-group-4-7").consumes,
            (std::map<std::string, std::int64_t>{{"device-4", 4}, {"device-5", 4}, {"device-6", 4}, {"device-7", 4}}));
  EXPECT_THAT(find(pool, "neuron-group-0-15").consumes, SizeIs(16));
  for (const std::string& efa : names_of(pool, DeviceKind::efa)) EXPECT_THAT(find(pool, efa).consumes, IsEmpty());
}

TEST(Pool, RunsOfARingGoOnPastItsEnd) {
  const Pool pool = TestNode("inf2.48xlarge").pool();
  const auto groups = names_of(pool, DeviceKind::group);
  EXPECT_THAT(groups, SizeIs(12 * 10 + 1)) << "12 of each length from 2 to 11, and the whole ring once";
  EXPECT_EQ(groups[0], "neuron-group-10-11");
  EXPECT_EQ(groups[10], "neuron-group-0-1");
  EXPECT_EQ(groups[11], "neuron-group-11-0");
  EXPECT_THAT(find(pool, "neuron-group-10-1").devices, ElementsAre(10, 11, 0, 1));
  EXPECT_EQ(value_of<std::int64_t>(find(pool, "neuron-group-10-1"), "size"), 4);
  EXPECT_EQ(value_of<std::int64_t>(find(pool, "neuron-group-10-1"), "first"), 10);
}

TEST(Pool, RunsOfALineEndAtItsEnds) {
  const Pool line = TestNode("inf2.24xlarge").pool();
  EXPECT_THAT(names_of(line, DeviceKind::group), SizeIs(5 + 4 + 3 + 2 + 1));
  EXPECT_FALSE(has(line, "neuron-group-5-0"));
  const Pool inf1 = TestNode("inf1.24xlarge").pool();
  EXPECT_THAT(names_of(inf1, DeviceKind::group), SizeIs(15 * 16 / 2)) << "lists are not public, ids are consecutive";
}

TEST(Pool, SwitchedTypesHaveAlignedGroups) {
  EXPECT_THAT(names_of(TestNode("trn3e.24xlarge").pool(), DeviceKind::group), ElementsAre("neuron-group-0-3"));
  EXPECT_THAT(names_of(TestNode("trn3.48xlarge").pool(), DeviceKind::group), SizeIs(7));
}

TEST(Pool, AGroupNeedsAllItsMembers) {
  TestNode node("trn1.32xlarge");
  node.take_away(6);
  const Pool pool = node.pool();
  EXPECT_THAT(names_of(pool, DeviceKind::group),
              ElementsAre("neuron-group-12-15", "neuron-group-8-11", "neuron-group-0-3", "neuron-group-8-15"));
  TestNode ring("inf2.48xlarge");
  ring.take_away(6);
  EXPECT_FALSE(has(ring.pool(), "neuron-group-5-7"));
  EXPECT_TRUE(has(ring.pool(), "neuron-group-7-5")) << "the ring is a line now, from 7 over 0 to 5";
}

TEST(Pool, AttributesOfAWholeDeviceAreThoseOfAwsDriver) {
  const Pool pool = TestNode("trn1.32xlarge").pool();
  const PoolDevice& device = find(pool, "neuron-device-6");
  EXPECT_EQ(value_of<std::string>(device, "resourceType"), "neuron_device");
  EXPECT_EQ(value_of<std::string>(device, "instanceType"), "trn1.32xlarge");
  EXPECT_EQ(value_of<std::string>(device, "neuronDriverVersion"), "2.30.2.0");
  EXPECT_NE(value_of<Version>(device, "draDriverVersion").text, "");
  EXPECT_EQ(value_of<std::int64_t>(device, "deviceId"), 6);
  EXPECT_EQ(value_of<std::int64_t>(device, "topology_x"), 1);
  EXPECT_EQ(value_of<std::int64_t>(device, "topology_y"), 2);
  EXPECT_EQ(value_of<std::string>(device, "resource.aws.com/devicegroup1_id"), "0000:90:19.0");
  EXPECT_EQ(value_of<std::string>(device, "resource.aws.com/devicegroup4_id"), "69b2225fd72a59dd");
  EXPECT_EQ(value_of<std::string>(device, "resource.aws.com/devicegroup8_id"), "86c451036f622685");
  EXPECT_EQ(value_of<std::string>(device, "resource.aws.com/devicegroup16_id"), "fb838249c99a6341");
  EXPECT_EQ(value_of<std::int64_t>(device, "numaNode"), 1);
  EXPECT_EQ(value_of<std::int64_t>(device, "lnc"), 1);
  EXPECT_EQ(value_of<std::string>(device, "family"), "Trainium1");
  EXPECT_EQ(device.capacity.at("cores"), 2);
  EXPECT_EQ(device.capacity.at("memory"), std::int64_t{32} << 30U);
  EXPECT_EQ(find(pool, "neuron-device-6-core-1").capacity.at("memory"), std::int64_t{16} << 30U);
}

TEST(Pool, AnInterfaceHasTheGroupIdsOfItsDevices) {
  const Pool pool = TestNode("trn1.32xlarge").pool();
  const PoolDevice& efa = find(pool, "efa-rdmap16s25");
  EXPECT_EQ(value_of<std::string>(efa, "resourceType"), "efa");
  EXPECT_EQ(value_of<std::string>(efa, "rdmaDevice"), "rdmap16s25");
  EXPECT_EQ(value_of<std::string>(efa, "pciAddress"), "0000:10:19.0");
  EXPECT_EQ(value_of<std::string>(efa, "resource.aws.com/devicegroup4_id"), "178a9e264a26793e");
}

// For sizes that AWS has no id of: two devices and their interfaces, and runs of rings and lines.
TEST(Pool, IdsOfOursGoBesideThoseOfAws) {
  const Pool trn2 = TestNode("trn2.48xlarge").pool();
  EXPECT_EQ(value_of<std::int64_t>(find(trn2, "neuron-device-7"), "group2_id"), 3);
  EXPECT_EQ(value_of<std::int64_t>(find(trn2, "neuron-device-7-core-0"), "group2_id"), 3);
  EXPECT_EQ(value_of<std::int64_t>(find(trn2, "efa-rdmap109s0"), "group2_id"), 3) << "the nearest of device 7";
  EXPECT_FALSE(find(trn2, "neuron-device-7").attributes.contains("group4_id")) << "AWS has one";
  EXPECT_FALSE(find(trn2, "neuron-group-4-7").attributes.contains("group2_id")) << "a group is not in one";
  const Pool ring = TestNode("inf2.48xlarge").pool();
  EXPECT_EQ(value_of<std::int64_t>(find(ring, "neuron-device-7"), "group2_id"), 3);
  EXPECT_EQ(value_of<std::int64_t>(find(ring, "neuron-device-7"), "group3_id"), 2);
  EXPECT_EQ(value_of<std::int64_t>(find(ring, "neuron-device-7"), "group4_id"), 1);
  EXPECT_EQ(value_of<std::int64_t>(find(ring, "neuron-device-7"), "group6_id"), 1);
  EXPECT_FALSE(find(ring, "neuron-device-7").attributes.contains("group8_id")) << "12 devices have no two of 8";
}

TEST(Pool, AGroupHasTheIdsThatItsMembersShare) {
  const Pool pool = TestNode("trn1.32xlarge").pool();
  const PoolDevice& four = find(pool, "neuron-group-4-7");
  EXPECT_FALSE(four.attributes.contains("resource.aws.com/devicegroup1_id"));
  EXPECT_EQ(value_of<std::string>(four, "resource.aws.com/devicegroup4_id"), "69b2225fd72a59dd");
  const PoolDevice& eight = find(pool, "neuron-group-0-7");
  EXPECT_FALSE(eight.attributes.contains("resource.aws.com/devicegroup4_id"));
  EXPECT_EQ(value_of<std::string>(eight, "resource.aws.com/devicegroup8_id"), "86c451036f622685");
  EXPECT_EQ(value_of<std::int64_t>(eight, "numaNode"), -1) << "spans both";
}

TEST(Pool, ThePcieRootIsThatOfSysfs) {
  constexpr const char* kRoot = "resource.kubernetes.io/pcieRoot";
  TestNode node("trn1.32xlarge");
  for (model::NeuronDevice& device : node.snapshot->host.devices) {
    if (device.index != 9) device.pcie_root = device.index < 4 ? "pci0000:10" : "pci0000:20";
  }
  node.snapshot->host.efas[0].pcie_root = "pci0000:10";
  const Pool pool = node.pool();
  EXPECT_EQ(value_of<std::string>(find(pool, "neuron-device-3"), kRoot), "pci0000:10");
  EXPECT_EQ(value_of<std::string>(find(pool, "neuron-device-3-core-1"), kRoot), "pci0000:10");
  EXPECT_EQ(value_of<std::string>(find(pool, "neuron-group-0-3"), kRoot), "pci0000:10");
  EXPECT_EQ(value_of<std::string>(find(pool, "efa-rdmap16s25"), kRoot), "pci0000:10");
  for (const char* name : {"neuron-device-9", "neuron-group-8-11", "neuron-group-0-7", "efa-rdmap16s26"}) {
    EXPECT_FALSE(find(pool, name).attributes.contains(kRoot)) << name << ": an empty one would equal another";
  }
}

TEST(Pool, NumaNodeAndPciAddressAreAlsoUnderTheNamesOfKubernetes) {
  constexpr const char* kNumaNode = "resource.kubernetes.io/numaNode";
  constexpr const char* kPciBusId = "resource.kubernetes.io/pciBusID";
  TestNode node("trn1.32xlarge");
  std::vector<model::NeuronDevice>& devices = node.snapshot->host.devices;
  for (model::NeuronDevice& device : devices) {
    device.bdf = model::Sourced<model::Bdf>{*model::parse_bdf("0000:10:1c.0")};
    device.numa_node = model::Sourced<int>{device.index == 0 ? 0 : 1};
  }
  devices[9].numa_node = model::Sourced<int>{-1};
  devices[9].bdf = std::nullopt;
  node.snapshot->host.efas[0].numa_node = 0;
  node.snapshot->host.efas[1].numa_node = -1;
  const Pool pool = node.pool();
  for (const char* name : {"neuron-device-6", "neuron-device-6-core-1", "neuron-group-4-7"}) {
    EXPECT_EQ(value_of<std::int64_t>(find(pool, name), kNumaNode), 1) << name;
  }
  EXPECT_EQ(value_of<std::string>(find(pool, "neuron-device-6-core-1"), kPciBusId), "0000:10:1c.0");
  EXPECT_FALSE(find(pool, "neuron-group-4-7").attributes.contains(kPciBusId)) << "four addresses";
  EXPECT_EQ(value_of<std::int64_t>(find(pool, "efa-rdmap16s25"), kNumaNode), 0);
  EXPECT_EQ(value_of<std::string>(find(pool, "efa-rdmap16s25"), kPciBusId), "0000:10:19.0");
  for (const char* name : {"neuron-device-9", "neuron-group-8-11", "neuron-group-0-7", "efa-rdmap16s26"}) {
    EXPECT_FALSE(find(pool, name).attributes.contains(kNumaNode)) << name << ": -1 would match every other -1";
  }
  EXPECT_FALSE(find(pool, "neuron-device-9").attributes.contains(kPciBusId));
}

TEST(Pool, Pain36EveryDeviceHasEveryAttributeThatAClassMayName) {
  const std::vector<std::string> common = {
      "resourceType", "instanceType", "neuronDriverVersion", "draDriverVersion", "family", "lnc", "deviceId", "size",
      "numaNode",     "health"};
  for (const core::InstanceType& type : core::all_instance_types()) {
    const TestNode node(type.name);
    std::vector<std::string> held = {"neuron-device-0", "neuron-device-0-core-0", "neuron-group-0-1", "efa-gone"};
    for (const auto& claims : {std::vector<std::string>{}, held}) {
      for (const PoolDevice& device : node.pool_with_held(claims).devices) {
        for (const std::string& name : common) {
          EXPECT_TRUE(device.attributes.contains(name)) << type.name << " " << device.name << " " << name;
        }
      }
    }
  }
}

// Devices of one kind on one node have the same names of attributes, but for a group's ids.
TEST(Pool, Pain36DevicesOfOneKindHaveTheSameAttributes) {
  for (const core::InstanceType& type : core::all_instance_types()) {
    std::map<DeviceKind, std::set<std::string>> names;
    for (const PoolDevice& device : TestNode(type.name).pool().devices) {
      if (device.kind == DeviceKind::group) continue;
      std::set<std::string> own;
      for (const auto& [name, value] : device.attributes) own.insert(name);
      const auto [first, is_first] = names.emplace(device.kind, own);
      EXPECT_EQ(first->second, own) << type.name << " " << device.name;
    }
  }
}

TEST(Pool, WhatIsUnhealthyIsTaintedWithItsReason) {
  TestNode node("trn1.32xlarge");
  node.make_ill(5);
  const Pool pool = node.pool();
  const Taint taint{"neuron.aws.com/unhealthy", "sram_ecc_uncorrected", "NoSchedule"};
  EXPECT_THAT(find(pool, "neuron-device-5").taints, ElementsAre(taint));
  EXPECT_THAT(find(pool, "neuron-device-5-core-1").taints, ElementsAre(taint));
  EXPECT_THAT(find(pool, "neuron-group-4-7").taints, ElementsAre(taint));
  EXPECT_THAT(find(pool, "neuron-group-0-15").taints, ElementsAre(taint));
  EXPECT_THAT(find(pool, "neuron-group-0-3").taints, IsEmpty());
  EXPECT_THAT(find(pool, "neuron-device-4").taints, IsEmpty());
  EXPECT_EQ(value_of<std::string>(find(pool, "neuron-group-4-7"), "health"), "unhealthy");
}

TEST(Pool, Pain22AHealedDeviceLosesItsTaint) {
  TestNode node("trn1.32xlarge");
  const Pool before = node.pool();
  node.make_ill(5);
  EXPECT_NE(node.pool(), before);
  node.device(5).health = {model::HealthState::healthy, "", "", ""};
  EXPECT_EQ(node.pool(), before) << "the pool follows from the snapshot alone";
}

TEST(Pool, Pain19TheTaintOnlyEvictsWhereThatWasAskedFor) {
  TestNode node("inf2.xlarge");
  node.make_ill(0);
  EXPECT_EQ(node.pool().devices.front().taints.front().effect, "NoSchedule");
  PoolOptions options = with_partitions(Partitions::all);
  options.taint_effect = "NoExecute";
  EXPECT_EQ(node.pool(options).devices.front().taints.front().effect, "NoExecute");
  options.taint_effect = "";
  EXPECT_THAT(node.pool(options).devices.front().taints, IsEmpty());
}

TEST(Pool, OneIllCoreTaintsItselfAndWhatHoldsIt) {
  TestNode node("trn1.32xlarge");
  const model::Health ill{model::HealthState::unhealthy, "hw_nc_ue_error", "a sentence", ""};
  node.device(5).health = ill;
  node.device(5).core_health = {ill, {model::HealthState::healthy, "", "", ""}};
  const Pool pool = node.pool();
  EXPECT_THAT(find(pool, "neuron-device-5-core-0").taints, SizeIs(1));
  EXPECT_THAT(find(pool, "neuron-device-5-core-1").taints, IsEmpty());
  EXPECT_THAT(find(pool, "neuron-device-5").taints, SizeIs(1));
}

TEST(Pool, Pain15WhatAClaimHoldsStaysWithItsCounters) {
  TestNode node("trn1.32xlarge");
  const Pool before = node.pool();
  node.take_away(6);
  const Pool pool = node.pool_with_held({"neuron-device-6-core-1", "neuron-group-4-7", "efa-rdmap99s1"});
  for (const char* name : {"neuron-device-6-core-1", "neuron-group-4-7"}) {
    EXPECT_EQ(find(pool, name).consumes, find(before, name).consumes) << name;
    EXPECT_EQ(find(pool, name).taints.front().value, "device_vanished") << name;
    EXPECT_TRUE(find(pool, name).held);
  }
  EXPECT_EQ(pool.counters, before.counters);
  EXPECT_EQ(find(pool, "efa-rdmap99s1").taints.front().value, "efa_vanished");
  EXPECT_FALSE(has(pool, "neuron-device-6")) << "nobody holds the whole";
}

TEST(Pool, WhatAClaimHoldsOfAListThatWasNeverReadIsNotCalledVanished) {
  using Kind = model::ScanPart::Kind;
  TestNode node("trn1.32xlarge");
  node.snapshot->host.devices.clear();
  node.snapshot->host.efas.clear();
  const std::vector<std::string> held = {"neuron-device-6-core-1", "neuron-group-4-7", "efa-rdmap99s1"};
  for (const std::string& name : held) EXPECT_THAT(find(node.pool_with_held(held), name).taints, SizeIs(1)) << name;
  node.snapshot->host.unread_lists = {{Kind::devices}, {Kind::pci}};
  const Pool pool = node.pool_with_held(held);
  for (const std::string& name : held) {
    EXPECT_THAT(find(pool, name).taints, IsEmpty()) << name;
    EXPECT_FALSE(find(pool, name).unhealthy) << name;
    EXPECT_TRUE(find(pool, name).held) << name;
  }
}

TEST(Pool, WhileItsUltraServerFilesOrItsLncAreUnreadNoDeviceIsOffered) {
  TestNode node("trn2.48xlarge");
  ASSERT_THAT(names_of(node.pool(), DeviceKind::device), SizeIs(16));
  node.snapshot->host.ultraserver_is_unread = true;
  EXPECT_THAT(names_of(node.pool(), DeviceKind::device), IsEmpty()) << "it may have to be offered as one";
  EXPECT_THAT(names_of(node.pool(), DeviceKind::efa), SizeIs(16));
  PoolOptions options;
  options.ultraserver = UltraServer::devices;
  EXPECT_THAT(names_of(node.pool(options), DeviceKind::device), SizeIs(16)) << "asked for in any case";
  node.snapshot->host.ultraserver_is_unread = false;
  node.snapshot->host.lnc.reset();
  node.snapshot->host.lnc_is_unread = true;
  EXPECT_THAT(names_of(node.pool(), DeviceKind::device), IsEmpty());
  EXPECT_THAT(names_of(node.pool(with_partitions(Partitions::all)), DeviceKind::group), IsEmpty());
}

TEST(Pool, Pain15AHeldCoreKeepsCountersThoughPartitionsWereSwitchedOff) {
  const Pool pool = TestNode("trn1.32xlarge").pool(with_partitions(Partitions::none), {"neuron-device-2-core-0"});
  EXPECT_THAT(names_of(pool, DeviceKind::core), ElementsAre("neuron-device-2-core-0"));
  EXPECT_THAT(find(pool, "neuron-device-2-core-0").taints, IsEmpty());
  EXPECT_EQ(find(pool, "neuron-device-2").consumes.at("device-2"), 2) << "so that it is not given away whole";
}

TEST(Pool, Pain15AHeldCoreOutlivesAChangeOfLnc) {
  const Pool pool = TestNode("trn2.48xlarge", 2).pool_with_held({"neuron-device-2-core-7"});
  EXPECT_EQ(pool.counters.at("device-2"), 8) << "the claim was made with 8 cores";
  EXPECT_EQ(find(pool, "neuron-device-2").consumes.at("device-2"), 8) << "the whole cannot be had beside it";
  EXPECT_EQ(find(pool, "neuron-device-2-core-7").taints.front().value, "core_missing");
}

TEST(Pool, NamesThatNobodyPublishedAreIgnored) {
  const TestNode node("trn1.32xlarge");
  EXPECT_EQ(node.pool_with_held({"", "x", "neuron-device-007", "neuron-group-3-3", "neuron-group-14-99"}), node.pool());
}

TEST(Pool, AnUltraServersNodeIsOneDevice) {
  TestNode node("trn2u.48xlarge");
  node.snapshot->host.ultraserver =
      model::UltraServer{false, {1, 2, 4}, {{2, "4d2a71c09be3f652", 0}, {4, "8f10b6e35a7c92d4", 3}}};
  const Pool pool = node.pool();
  EXPECT_THAT(names_of(pool, DeviceKind::node), ElementsAre("neuron-node"));
  EXPECT_THAT(names_of(pool, DeviceKind::device), IsEmpty());
  EXPECT_THAT(names_of(pool, DeviceKind::efa), SizeIs(16));
  EXPECT_THAT(pool.counters, IsEmpty());
  const PoolDevice& one = find(pool, "neuron-node");
  EXPECT_EQ(value_of<std::string>(one, "resourceType"), "neuron_node");
  EXPECT_EQ(value_of<std::int64_t>(one, "size"), 16);
  EXPECT_EQ(value_of<std::string>(one, "ultraserverMode"), "1_2_4");
  EXPECT_EQ(value_of<std::string>(one, "ultraserverId"), "8f10b6e35a7c92d4");
  EXPECT_EQ(value_of<std::string>(one, "ultraserverServerId2"), "4d2a71c09be3f652");
  EXPECT_EQ(value_of<std::int64_t>(one, "ultraserverNodeId4"), 3);
  EXPECT_EQ(one.capacity.at("cores"), 64);
  PoolOptions options = with_partitions(Partitions::all);
  options.ultraserver = UltraServer::devices;
  EXPECT_THAT(names_of(node.pool(options), DeviceKind::device), SizeIs(16));
  EXPECT_THAT(names_of(node.pool_with_held({"neuron-device-3"}), DeviceKind::device), SizeIs(16))
      << "while one is held";
  EXPECT_THAT(names_of(node.pool_with_held({"neuron-device-3"}), DeviceKind::node), IsEmpty());
  EXPECT_THAT(names_of(node.pool(options, {"neuron-node"}), DeviceKind::device), IsEmpty()) << "while it is held";
}

TEST(Pool, AnUltraServerThatIsNotFormedIsItsDevices) {
  TestNode node("trn2u.48xlarge");
  node.snapshot->host.ultraserver = model::UltraServer{false, {4}, {}};
  EXPECT_THAT(names_of(node.pool(), DeviceKind::device), SizeIs(16));
  node.snapshot->host.ultraserver->busy = true;
  EXPECT_THAT(names_of(node.pool(), DeviceKind::device), IsEmpty()) << "nothing is promised yet";
  EXPECT_THAT(names_of(node.pool_with_held({"neuron-device-3"}), DeviceKind::device), SizeIs(16));
}

TEST(Pool, ANodeWithoutHardwareIsEmpty) {
  EXPECT_EQ(make_pool(grant::NodeUnits(std::make_shared<model::Snapshot>()), {}, {}), Pool{});
}

TEST(Pool, MembersOfANameAreThoseOfItsDevice) {
  for (const core::InstanceType& type : core::all_instance_types()) {
    const TestNode node(type.name);
    for (const PoolDevice& device : node.pool().devices) {
      const auto name = parse_pool_name(device.name);
      ASSERT_TRUE(name) << device.name;
      if (const auto* group = std::get_if<GroupName>(&*name)) {
        EXPECT_EQ(members_of(*group, core::ring_size(node.snapshot->host)), device.devices)
            << type.name << " " << device.name;
      }
    }
  }
}

}  // namespace
}  // namespace neuron::plugin::dra
