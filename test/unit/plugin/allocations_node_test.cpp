// What the allocations makes of a scan: held hardware that is not there, the numbering that held cores have, moved
// interfaces.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugin/device/allocations.h"
#include "test/fakes/fake_clock.h"
#include "test/unit/grant/nodes.h"

namespace neuron::plugin {
namespace {

using testing::ElementsAre;

constexpr const char* kCores = "aws.amazon.com/neuroncore";
constexpr const char* kDevices = "aws.amazon.com/neuron";
constexpr const char* kEfas = "vpc.amazonaws.com/efa";

struct AllocationsNode : testing::Test {
  fakes::FakeClock clock;
  holdings::CheckpointVersion version = 1;
  Allocations allocations{grant::GrantOptions{}, [this] { return version; }, clock};

  void scan(const std::shared_ptr<model::Snapshot>& snapshot) {
    allocations.set_node(std::make_shared<const grant::NodeUnits>(snapshot));
  }
  void scan_with_lnc(int lnc) {
    const auto snapshot = snapshot_of("trn2.48xlarge");
    snapshot->host.lnc = {lnc, model::Origin::live};
    scan(snapshot);
  }
  void shown(std::vector<model::Allocation> holdings, core::NumberingEvidence numbering = {}) {
    clock.advance(std::chrono::seconds(10));
    allocations.reconcile({std::move(holdings), clock.now(), {}, 0, std::move(numbering)});
    allocations.adopt_numbering();
  }
  std::size_t units(model::Resource resource) { return allocations.unit_list(resource)->size(); }
  std::vector<std::string> unhealthy(model::Resource resource) {
    const auto list = allocations.unit_list(resource);
    std::vector<std::string> ids;
    for (const auto& unit : list.value_or(UnitList{})) {
      if (!unit.healthy) ids.push_back(unit.id);
    }
    return ids;
  }
};

std::shared_ptr<model::Snapshot> without_devices(std::shared_ptr<model::Snapshot> snapshot, std::vector<int> gone) {
  for (auto at = gone.rbegin(); at != gone.rend(); ++at) {
    snapshot->host.devices.erase(snapshot->host.devices.begin() + *at);
  }
  return snapshot;
}

std::shared_ptr<model::Snapshot> without_efa(std::shared_ptr<model::Snapshot> snapshot, int position) {
  snapshot->host.efas.erase(snapshot->host.efas.begin() + position);
  return snapshot;
}

TEST_F(AllocationsNode, HeldDevicesThatNoScanHasShownAreListedAsVanished) {
  scan(without_devices(snapshot_of("trn2.48xlarge"), {3, 5, 6}));
  shown({{"a", "b", "c", kDevices, {"3"}}, {"a", "d", "c", kCores, {"20", "21"}}});
  EXPECT_EQ(units(model::Resource::neuron), 15U) << "nobody holds neuron6";
  EXPECT_THAT(unhealthy(model::Resource::neuron), ElementsAre("3", "5"));
  EXPECT_THAT(unhealthy(model::Resource::neuroncore), ElementsAre("12", "13", "14", "15", "20", "21", "22", "23"));
  EXPECT_EQ(allocations.node()->health_of(model::Resource::neuron, 5).reason, "device_vanished");
  shown({});
  EXPECT_EQ(units(model::Resource::neuron), 15U) << "like what vanished later";
  scan(snapshot_of("trn2.48xlarge"));
  EXPECT_EQ(units(model::Resource::neuron), 16U);
  EXPECT_TRUE(unhealthy(model::Resource::neuroncore).empty()) << "it is back";
}

TEST_F(AllocationsNode, HeldUnitsOfAListThatWasNeverReadAreListedAndNotUnhealthy) {
  auto bare = without_devices(snapshot_of("trn2.48xlarge"), {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15});
  bare->host.unread_lists = {{model::ScanPart::Kind::devices}};
  scan(bare);
  shown({{"a", "b", "c", kDevices, {"3"}}, {"a", "d", "c", kCores, {"20", "21"}}});
  EXPECT_EQ(units(model::Resource::neuron), 2U);
  EXPECT_THAT(unhealthy(model::Resource::neuron), ElementsAre("5")) << "its cores are held by the other name";
  EXPECT_THAT(unhealthy(model::Resource::neuroncore), ElementsAre("12", "13", "14", "15")) << "likewise";
  EXPECT_EQ(allocations.node()->health_of(model::Resource::neuron, 3).reason, "unread");
  EXPECT_EQ(allocations.node()->health_of(model::Resource::neuroncore, 20).reason, "unread");
  scan(without_devices(snapshot_of("trn2.48xlarge"), {3}));
  EXPECT_EQ(allocations.node()->health_of(model::Resource::neuron, 3).reason, "device_vanished") << "now it is known";
  EXPECT_EQ(units(model::Resource::neuron), 16U);
}

TEST_F(AllocationsNode, HeldDevicesAreListedThoughNoneIsThere) {
  auto bare = without_devices(snapshot_of("trn2.48xlarge"), {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15});
  bare->host.lnc.reset();
  scan(bare);
  shown({{"a", "b", "c", kCores, {"4"}}});
  EXPECT_THAT(unhealthy(model::Resource::neuron), ElementsAre("1"));
  EXPECT_THAT(unhealthy(model::Resource::neuroncore), ElementsAre("4", "5", "6", "7"));
}

// Its file cannot be read since the start: only the checkpoint can show how held cores are numbered.
TEST_F(AllocationsNode, WhileLncIsUnreadNothingIsGivenUnlessTheCheckpointShowsIt) {
  const auto unread = snapshot_of("trn2.48xlarge");
  unread->host.lnc.reset();
  unread->host.lnc_is_unread = true;
  scan(unread);
  const core::NumberingEvidence ambiguous{{{{0, 1}, {0}}}, std::nullopt};
  shown({{"a", "b", "c", kCores, {"0", "1"}}}, ambiguous);
  EXPECT_EQ(units(model::Resource::neuron) + units(model::Resource::neuroncore), 0U);
  EXPECT_FALSE(allocations.allocate(model::Resource::neuron, {"3"}));
  shown({{"a", "b", "c", kCores, {"0", "1", "60"}}}, {{{{0, 1}, {0}}, {{60}, {15}}}, std::nullopt});
  EXPECT_EQ(units(model::Resource::neuroncore), 64U) << "60 is on neuron15 with LNC 2 only";
  EXPECT_THAT(unhealthy(model::Resource::neuron), ElementsAre("0", "15"));
  ++version;
  const auto answer = allocations.allocate(model::Resource::neuron, {"3"});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->envs.at("NEURON_LOGICAL_NC_CONFIG"), "2") << "the runtime may read another one";
}

TEST_F(AllocationsNode, CoresHeldWhileLncWasUnreadAreReadWithTheLncOfTheirTime) {
  const auto unread = snapshot_of("trn2.48xlarge");
  unread->host.lnc.reset();
  unread->host.lnc_is_unread = true;
  scan(unread);
  shown({{"a", "b", "c", kCores, {"20"}}});
  scan_with_lnc(1);
  shown({{"a", "b", "c", kCores, {"20"}}}, {{{{20}, {5}}}, std::nullopt});
  EXPECT_EQ(units(model::Resource::neuroncore), 64U);
  EXPECT_THAT(unhealthy(model::Resource::neuron), ElementsAre("5")) << "not neuron2, as the file now numbers it";
}

TEST_F(AllocationsNode, AHeldInterfaceThatNoScanHasShownIsListedAsVanished) {
  scan(without_efa(snapshot_of("trn1.32xlarge"), 2));
  const std::string name = node_of("trn1.32xlarge")->id_of(model::Resource::efa, 2);
  shown({{"a", "b", "c", kEfas, {name, "rdmap16s99", "efa_0"}}});
  EXPECT_EQ(units(model::Resource::efa), 8U) << "names that tell no address are left out";
  EXPECT_THAT(unhealthy(model::Resource::efa), ElementsAre(name));
}

TEST_F(AllocationsNode, AnInterfaceThatNeverHadANameGetsTheHeldOne) {
  auto snapshot = snapshot_of("trn1.32xlarge");
  const std::string name = std::exchange(snapshot->host.efas[2].name, "");
  snapshot->host.efas[2].health = {model::HealthState::unhealthy, "efa_driver_unbound", "", ""};
  scan(snapshot);
  EXPECT_EQ(units(model::Resource::efa), 7U);
  shown({{"a", "b", "c", kEfas, {name}}});
  EXPECT_THAT(unhealthy(model::Resource::efa), ElementsAre(name));
  EXPECT_EQ(allocations.node()->health_of(model::Resource::efa, 2).reason, "efa_driver_unbound");
}

TEST_F(AllocationsNode, IdsThatMakeNoSenseAddNothing) {
  scan(snapshot_of("trn1.32xlarge"));
  const grant::NodeUnitsPtr before = allocations.node();
  shown({{"a", "b", "c", kDevices, {"16", "63", "-1", "x", "999999999999"}}, {"a", "d", "c", kCores, {"32", "1000"}}});
  EXPECT_EQ(allocations.node(), before);
}

TEST_F(AllocationsNode, CoreIdsKeepTheirMeaningWhileAnythingIsHeld) {
  scan_with_lnc(2);
  ASSERT_TRUE(allocations.allocate(model::Resource::neuroncore, {"4", "5", "6", "7"}));
  scan_with_lnc(1);
  allocations.adopt_numbering();
  EXPECT_EQ(units(model::Resource::neuroncore), 64U);
  EXPECT_THAT(unhealthy(model::Resource::neuron), ElementsAre("1"));
  ++version;
  const auto answer = allocations.allocate(model::Resource::neuroncore, {"8"});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->device_nodes.at(0).container_path, "/dev/neuron2");
  EXPECT_EQ(allocations.node()->snapshot().host.lnc->value, 2) << "PreStart looks at two physical cores for each";
  shown({{"a", "b", "c", kCores, {"8"}}});
  EXPECT_EQ(units(model::Resource::neuroncore), 64U);
  shown({{"a", "b", "c", kEfas, {"rdmap201s0"}}});
  EXPECT_EQ(units(model::Resource::neuroncore), 128U) << "interfaces have no cores";
}

// A runtime that starts reads the file as it is now, whatever the numbers mean that it is given.
TEST_F(AllocationsNode, TheLncOfTheNumbersIsSetWhileTheFileSaysAnother) {
  constexpr const char* kLnc = "NEURON_LOGICAL_NC_CONFIG";
  scan_with_lnc(2);
  const auto before = allocations.allocate(model::Resource::neuroncore, {"4", "5"});
  ASSERT_TRUE(before);
  EXPECT_FALSE(before->envs.contains(kLnc)) << "the file says the same";
  scan_with_lnc(1);
  allocations.adopt_numbering();
  ++version;
  const auto device = allocations.allocate(model::Resource::neuron, {"3"});
  ASSERT_TRUE(device);
  EXPECT_EQ(device->envs, (std::map<std::string, std::string>{{kLnc, "2"}, {"NEURON_RT_VISIBLE_CORES", "0-3"}}));
  const auto same = allocations.allocate(model::Resource::neuroncore, {"12", "13", "14", "15"});
  ASSERT_TRUE(same) << same.error().message;
  EXPECT_EQ(same->envs, device->envs) << "one container, two names of its cores";
  ++version;
  const auto interface = allocations.allocate(model::Resource::efa, {"rdmap201s0"});
  ASSERT_TRUE(interface);
  EXPECT_TRUE(interface->envs.empty());
  scan_with_lnc(2);
  ++version;
  const auto again = allocations.allocate(model::Resource::neuron, {"6"});
  ASSERT_TRUE(again);
  EXPECT_FALSE(again->envs.contains(kLnc)) << "the change was taken back";
  scan_with_lnc(1);
  shown({});
  ++version;
  const auto after = allocations.allocate(model::Resource::neuron, {"3"});
  ASSERT_TRUE(after);
  EXPECT_EQ(after->envs, (std::map<std::string, std::string>{{"NEURON_RT_VISIBLE_CORES", "0-7"}}));
}

TEST_F(AllocationsNode, TheLncIsNotSetBecauseAHeldDeviceIsGone) {
  scan(without_devices(snapshot_of("trn2.48xlarge"), {2}));
  shown({{"a", "b", "c", kDevices, {"2"}}});
  const auto answer = allocations.allocate(model::Resource::neuron, {"3"});
  ASSERT_TRUE(answer);
  EXPECT_FALSE(answer->envs.contains("NEURON_LOGICAL_NC_CONFIG"));
}

TEST_F(AllocationsNode, AnotherScanIsReadAsTheNodeIs) {
  EXPECT_EQ(allocations.numbered(nullptr), nullptr);
  const std::shared_ptr<model::Snapshot> snapshot = snapshot_of("trn2.48xlarge");
  snapshot->host.lnc = {1, model::Origin::live};
  EXPECT_EQ(allocations.numbered(snapshot), snapshot) << "no scan yet";
  scan(snapshot);
  EXPECT_EQ(allocations.numbered(snapshot), snapshot);
  ASSERT_TRUE(allocations.allocate(model::Resource::neuroncore, {"8"}));
  const std::shared_ptr<model::Snapshot> later = snapshot_of("trn2.48xlarge");
  later->host.lnc = {2, model::Origin::live};
  later->number = 7;
  scan(later);
  allocations.adopt_numbering();
  EXPECT_EQ(allocations.numbered(later)->host.lnc->value, 1) << "as core 8 was numbered";
  EXPECT_EQ(allocations.numbered(later)->number, 7U);
  shown({});
  EXPECT_EQ(allocations.numbered(later), later) << "nothing is held any more";
}

TEST_F(AllocationsNode, AnotherScanHasTheHeldInterfaceThatIsGone) {
  const std::shared_ptr<model::Snapshot> snapshot = without_efa(snapshot_of("trn1.32xlarge"), 2);
  scan(snapshot);
  const grant::NodeUnitsPtr whole = node_of("trn1.32xlarge");
  shown({{"a", "b", "c", kEfas, {whole->id_of(model::Resource::efa, 2), whole->id_of(model::Resource::efa, 5)}}});
  const model::SnapshotPtr numbered = allocations.numbered(snapshot);
  ASSERT_EQ(numbered->host.efas.size(), 8U);
  for (const holdings::Holding& holding : allocations.all_holdings()) {
    EXPECT_THAT(holding.units, ElementsAre(2, 5)) << "positions, of this list";
  }
  EXPECT_EQ(numbered->host.efas[5].name, whole->id_of(model::Resource::efa, 5));
}

TEST_F(AllocationsNode, TheNumberingChangesOnlyWhenAListIsMade) {
  scan_with_lnc(2);
  scan_with_lnc(1);
  EXPECT_EQ(units(model::Resource::neuroncore), 64U) << "what the kubelet asks now is in the ids of the last list";
  allocations.adopt_numbering();
  EXPECT_EQ(units(model::Resource::neuroncore), 128U);
}

TEST_F(AllocationsNode, AChangeThatIsTakenBackLeavesNothingBehind) {
  scan_with_lnc(2);
  ASSERT_TRUE(allocations.allocate(model::Resource::neuron, {"1"}));
  scan_with_lnc(1);
  allocations.adopt_numbering();
  scan_with_lnc(2);
  allocations.adopt_numbering();
  shown({});
  EXPECT_EQ(units(model::Resource::neuroncore), 64U);
}

TEST_F(AllocationsNode, AfterAStartTheNumberingIsThatOfTheHeldIds) {
  scan_with_lnc(1);
  const std::vector<model::Allocation> held = {{"a", "b", "c", kCores, {"4", "5", "6", "7"}}};
  shown(held, {{{{4, 5, 6, 7}, {1}}}, std::nullopt});
  EXPECT_EQ(units(model::Resource::neuroncore), 64U);
  shown(held, {{{{4, 5, 6, 7}, {0}}}, std::nullopt});  // only the first tells of before our time
  EXPECT_EQ(units(model::Resource::neuroncore), 64U);
  EXPECT_THAT(unhealthy(model::Resource::neuron), ElementsAre("1"));
  shown({});
  EXPECT_EQ(units(model::Resource::neuroncore), 128U);
}

// The kubelet offers what was at the position that the held interface had: the container that holds it must not be
// taken for ended, and its device not for free.
TEST_F(AllocationsNode, EfaHoldingsFollowTheirInterfaceWhenALowerAddressAppears) {
  scan(without_efa(snapshot_of("trn1.32xlarge"), 0));
  const std::string held = allocations.node()->id_of(model::Resource::efa, 3);
  ASSERT_TRUE(allocations.allocate(model::Resource::neuron, {"0"}));
  ASSERT_TRUE(allocations.allocate(model::Resource::efa, {held}));
  ++version;
  clock.advance(std::chrono::seconds(10));
  scan(snapshot_of("trn1.32xlarge"));
  std::vector<std::string> offered = ids(*allocations.node(), model::Resource::efa);
  std::erase(offered, held);
  const auto preferred = allocations.prefer(model::Resource::efa, offered, {}, 7);
  EXPECT_EQ(preferred.size(), 7U);
  EXPECT_THAT(unhealthy(model::Resource::neuroncore), ElementsAre("0", "1")) << "still held";
}

}  // namespace
}  // namespace neuron::plugin
