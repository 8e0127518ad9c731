#include "agent/core/complete.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/core/make_host.h"

namespace neuron::test {
namespace {

using model::Origin;
using ::testing::ElementsAre;

TEST(Complete, FillsASilentHostAndSaysSo) {
  const model::HostScan scan = core::complete(silent_scan("trn2.48xlarge"));
  const model::NeuronDevice& device = scan.devices[4];
  EXPECT_THAT(device.neighbours->value, ElementsAre(8, 5, 7, 0));
  EXPECT_EQ(device.neighbours->origin, Origin::assumed);
  EXPECT_EQ(device.numa_node, (model::Sourced<int>{0, Origin::assumed}));
  EXPECT_EQ(device.cpus->origin, Origin::assumed);
  EXPECT_EQ(format_int_list(device.cpus->value), "0-47,96-143");
  EXPECT_EQ(device.physical_cores, (model::Sourced<int>{8, Origin::assumed}));
  EXPECT_EQ(to_string(device.bdf->value), "0000:6f:00.0");
  EXPECT_EQ(device.bdf->origin, Origin::assumed);
  EXPECT_EQ(device.memory_bytes, 103079215104U);
  EXPECT_EQ(scan.lnc, (model::Sourced<int>{2, Origin::assumed}));
}

TEST(Complete, NeverOverwritesALiveValue) {
  model::HostScan scan = silent_scan("trn2.48xlarge");
  scan.lnc = model::Sourced<int>{1, Origin::live};
  scan.devices[0].neighbours = model::Sourced<std::vector<int>>{{7}, Origin::live};
  scan.devices[0].numa_node = model::Sourced<int>{0, Origin::live};
  scan.devices[0].cpus = model::Sourced<std::vector<int>>{{9}, Origin::live};
  scan.devices[0].bdf = model::Sourced<model::Bdf>{{0, 0x77, 0, 0}, Origin::live};
  scan.devices[0].physical_cores = model::Sourced<int>{4, Origin::live};
  scan.devices[0].memory_bytes = 5;
  const model::NeuronDevice before = scan.devices[0];
  const model::HostScan after = core::complete(scan);
  EXPECT_EQ(after.devices[0], before);
  EXPECT_EQ(after.lnc->value, 1);
}

TEST(Complete, NoLncIsAssumedForChipsWithAChoiceWhileItsFileIsUnread) {
  model::HostScan scan = silent_scan("trn2.48xlarge");
  scan.lnc_is_unread = true;
  EXPECT_EQ(core::complete(scan).lnc, std::nullopt);
  scan = silent_scan("trn1.32xlarge");
  scan.lnc_is_unread = true;
  EXPECT_EQ(core::complete(scan).lnc, (model::Sourced<int>{1, Origin::assumed})) << "it has no choice";
}

// A read that hangs from the start.
TEST(KeepLastSeen, WhatNoScanHasReadIsUnread) {
  core::SeenBefore before;
  model::HostScan scan = silent_scan("trn2.48xlarge");
  scan.unanswered = {{{model::ScanPart::Kind::host}, "then"}, {{model::ScanPart::Kind::devices}, "then"}};
  const auto unanswered = scan.unanswered;
  core::keep_last_seen(scan, before);
  EXPECT_TRUE(scan.lnc_is_unread && scan.ultraserver_is_unread);
  EXPECT_EQ(core::complete(scan).lnc, std::nullopt);
  model::HostScan read = silent_scan("trn2.48xlarge");
  read.lnc = model::Sourced<int>{1, Origin::live};
  core::keep_last_seen(read, before);
  model::HostScan later = silent_scan("trn2.48xlarge");
  later.unanswered = unanswered;
  core::keep_last_seen(later, before);
  EXPECT_FALSE(later.lnc_is_unread || later.ultraserver_is_unread);
  EXPECT_EQ(core::complete(later).lnc->value, 1);
}

TEST(Complete, TakesNeighboursTheDriverBlanked) {
  model::HostScan scan = silent_scan("trn1.32xlarge");
  scan.devices.erase(scan.devices.begin() + 3);
  for (auto& device : scan.devices) device.neighbours = model::Sourced<std::vector<int>>{};
  scan = core::complete(scan);
  EXPECT_THAT(scan.devices[0].neighbours->value, ElementsAre(12, 3, 4, 1));
  EXPECT_EQ(scan.devices[0].neighbours->origin, Origin::assumed);
}

TEST(Complete, KeepsAnEmptyListWhereThereAreNoNeighbours) {
  model::HostScan scan = silent_scan("trn1.2xlarge");
  scan.devices[0].neighbours = model::Sourced<std::vector<int>>{};
  scan = core::complete(scan);
  EXPECT_EQ(scan.devices[0].neighbours->origin, Origin::live);
  EXPECT_EQ(scan.devices[0].numa_node->value, -1);
  EXPECT_EQ(format_int_list(scan.devices[0].cpus->value), "0-7");
}

TEST(Complete, LeavesUnstableAddressesAndUnknownNumaUnknown) {
  EXPECT_FALSE(core::complete(silent_scan("trn1.32xlarge")).devices[0].bdf);
  const model::HostScan trn3 = core::complete(silent_scan("trn3p.48xlarge"));
  EXPECT_FALSE(trn3.devices[0].numa_node);
  EXPECT_FALSE(trn3.devices[0].cpus);
  EXPECT_FALSE(core::complete(silent_scan("inf1.24xlarge")).devices[0].neighbours);
}

TEST(Complete, PrefersTheMachinesOwnCpusAndRefusesNodesItLacks) {
  model::HostScan scan = silent_scan("trn2.48xlarge");
  scan.numa_nodes = {{1, {5, 6}}};
  scan = core::complete(scan);
  EXPECT_THAT(scan.devices[0].cpus->value, ElementsAre(5, 6));
  EXPECT_FALSE(scan.devices[4].numa_node) << "node 0 does not exist here";
}

TEST(Complete, UnknownTypeGetsWhatTheFamilyFixes) {
  model::HostScan scan = silent_scan("trn2.48xlarge");
  scan.instance_type = "trn9.huge";
  scan = core::complete(scan);
  EXPECT_EQ(scan.devices[0].memory_bytes, 103079215104U);
  EXPECT_EQ(scan.devices[0].physical_cores->value, 8);
  EXPECT_EQ(scan.lnc->value, 2);
  EXPECT_FALSE(scan.devices[0].neighbours);
  EXPECT_FALSE(scan.devices[0].numa_node);
}

TEST(Complete, AnotherFamilyOrIndexThanTheTypesGetsNoFactsOfTheType) {
  model::HostScan scan = silent_scan("trn2.48xlarge");
  scan.devices[0].family = model::Family::inferentia2;
  scan.devices[1].index = 99;
  scan.devices[2].family.reset();
  scan = core::complete(scan);
  EXPECT_FALSE(scan.devices[0].neighbours);
  EXPECT_EQ(scan.devices[0].physical_cores->value, 2);
  EXPECT_FALSE(scan.devices[1].neighbours);
  EXPECT_EQ(scan.devices[2].physical_cores->value, 8) << "the type says the family";
}

TEST(Complete, BareNodeStaysBare) {
  const model::HostScan scan = core::complete({});
  EXPECT_EQ(scan, model::HostScan{});
}

TEST(Complete, AnLncThatTheChipsDoNotKnowIsIgnoredAndSaid) {
  for (const char* type : {"trn1.32xlarge", "inf2.48xlarge", "inf1.6xlarge"}) {
    model::HostScan scan = silent_scan(type);
    scan.lnc = model::Sourced<int>{2, Origin::live};
    scan = core::complete(std::move(scan));
    EXPECT_EQ(scan.lnc, (model::Sourced<int>{1, Origin::assumed})) << type;
    ASSERT_EQ(scan.problems.size(), 1U) << type;
    EXPECT_EQ(sentence(scan.problems[0]).rfind("opt/aws/neuron/logical_nc_config: asks for LNC 2", 0), 0U)
        << sentence(scan.problems[0]);
  }
}

}  // namespace
}  // namespace neuron::test
