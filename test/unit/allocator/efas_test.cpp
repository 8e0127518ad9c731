#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "test/unit/core/make_host.h"

namespace neuron::test {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAreArray;
using Ids = std::vector<int>;

std::vector<std::string> names(const allocator::NodeTopology& topology, const std::vector<int>& ids) {
  std::vector<std::string> found;
  for (const int id : ids) found.push_back(topology.efas[static_cast<std::size_t>(id)].name);
  return found;
}

allocator::ChooseRequest beside(const allocator::NodeTopology& topology, std::vector<int> devices, int size) {
  allocator::ChooseRequest request = ask(range_of(0, static_cast<int>(topology.efas.size())), size);
  request.prefer_devices = std::move(devices);
  return request;
}

TEST(ChooseEfas, EachDeviceGetsItsOfficialOne) {
  EXPECT_THAT(names(trn1(), allocator::choose_efas(trn1(), beside(trn1(), {0, 1, 2, 3}, 2)).ids),
              ElementsAre("rdmap16s26", "rdmap160s26"));
  const auto group = names(trn2(), allocator::choose_efas(trn2(), beside(trn2(), {0, 1, 2, 3}, 4)).ids);
  EXPECT_THAT(group, UnorderedElementsAreArray({"rdmap201s0", "rdmap180s0", "rdmap179s0", "rdmap202s0"}));
}

TEST(ChooseEfas, NobodyGetsASecondBeforeAllHaveOne) {
  const auto four = allocator::choose_efas(trn1(), beside(trn1(), {0, 1, 2, 3}, 4));
  EXPECT_THAT(names(trn1(), four.ids), ElementsAre("rdmap16s25", "rdmap16s26", "rdmap160s25", "rdmap160s26"));
  const auto two = allocator::choose_efas(trn2(), beside(trn2(), {0, 5}, 2));
  EXPECT_THAT(names(trn2(), two.ids), UnorderedElementsAreArray({"rdmap201s0", "rdmap87s0"}));
}

TEST(ChooseEfas, ASharedNearestServesAllItsDevices) {
  allocator::ChooseRequest request = beside(trn1(), {0, 1, 2}, 2);
  request.available = without(request.available, trn1().devices[2].near_efas);
  EXPECT_THAT(names(trn1(), allocator::choose_efas(trn1(), request).ids), ElementsAre("rdmap16s26", "rdmap160s25"));
}

TEST(ChooseEfas, TheOtherOfTheSwitchWhenTheNearestIsTaken) {
  allocator::ChooseRequest request = beside(trn2(), {0}, 1);
  request.available = without(request.available, trn2().devices[0].near_efas);
  EXPECT_THAT(names(trn2(), allocator::choose_efas(trn2(), request).ids), ElementsAre("rdmap202s0"));
}

TEST(ChooseEfas, FirstComeTakesThoseOfAGroupThatIsFree) {
  allocator::ChooseRequest request = ask(range_of(0, 16), 4);
  request.free_devices = without(range_of(0, 16), {0});
  const auto group = names(trn2(), allocator::choose_efas(trn2(), request).ids);
  EXPECT_THAT(group, UnorderedElementsAreArray({"rdmap108s0", "rdmap87s0", "rdmap86s0", "rdmap109s0"}))
      << "devices 4 to 7";
  allocator::ChooseRequest on_trn1 = ask(range_of(0, 8), 2);
  on_trn1.free_devices = range_of(4, 12);
  EXPECT_THAT(names(trn1(), allocator::choose_efas(trn1(), on_trn1).ids), ElementsAre("rdmap32s25", "rdmap144s25"));
}

TEST(ChooseEfas, LikelySizesLieInsideEachOther) {
  // On trn1 one EFA goes with two devices: the pair of a group that is broken already.
  allocator::ChooseRequest request = ask(range_of(0, 8), 1);
  request.free_devices = without(range_of(0, 16), {4, 5});
  EXPECT_EQ(allocator::choose_efas(trn1(), request).ids, trn1().devices[6].near_efas);
  EXPECT_EQ(allocator::choose_efas(trn1(), request).why, "nearest to free devices 6-7, 0 NUMA crossings, 1 switch");
  // Where containers with one EFA are known to take four devices, a group must be there for them.
  request.likely_sizes = {4};
  const Ids of_group = allocator::choose_efas(trn1(), request).ids;
  EXPECT_EQ(of_group, trn1().devices[0].near_efas);
  request.likely_sizes = {2, 4};
  EXPECT_EQ(allocator::choose_efas(trn1(), request).ids, of_group) << "good for both";
  request.free_devices = {0, 2, 3, 6, 7};
  EXPECT_EQ(allocator::choose_efas(trn1(), request).ids, trn1().devices[2].near_efas)
      << "no group: the four in one piece";
  request.likely_sizes = {-1, 0, 2, 2, 1'000'000, 4};
  EXPECT_EQ(allocator::choose_efas(trn1(), request).ids.size(), 1U);
}

TEST(ChooseEfas, FirstComeCountsOnlyEfasThatAreThere) {
  allocator::ChooseRequest request = ask(range_of(0, 16), 4);
  request.free_devices = range_of(0, 8);
  EXPECT_EQ(allocator::choose_efas(trn2(), request).reason.beside, (Ids{0, 1, 2, 3}));
  request.available = without(request.available, trn2().devices[1].near_efas);
  const allocator::Choice choice = allocator::choose_efas(trn2(), request);
  EXPECT_EQ(choice.reason.beside, (Ids{4, 5, 6, 7})) << "the other group lacks one";
  EXPECT_EQ(choice.reason.nearest, 4);
}

// Whatever resource the kubelet asks for first, the container ends with matching halves.
TEST(ChooseEfas, EitherOrderOfQuestionsEndsAligned) {
  for (const allocator::NodeTopology* topology : {&trn1(), &trn2()}) {
    const auto efa_count = static_cast<int>(topology->efas.size());
    const int per_efa = 16 / efa_count;
    for (const int size : {1, 4, 8}) {
      if (size < per_efa) continue;
      allocator::ChooseRequest efas_first = ask(range_of(0, efa_count), size / per_efa);
      efas_first.free_devices = without(range_of(0, 16), {0, 9});
      const allocator::Choice efas = allocator::choose_efas(*topology, efas_first);
      allocator::ChooseRequest devices_second = ask(efas_first.free_devices, size);
      devices_second.prefer_efas = efas.ids;
      const allocator::Choice devices = allocator::choose_devices(*topology, devices_second);
      const allocator::Choice efas_for_them =
          allocator::choose_efas(*topology, beside(*topology, devices.ids, size / per_efa));
      EXPECT_EQ(efas.ids, efas_for_them.ids) << size;
    }
  }
}

TEST(ChooseEfas, GpuNodesArePackedOnFewNumaNodesAndSwitches) {
  const allocator::NodeTopology p5 = topology_of("p5.48xlarge");
  EXPECT_THAT(allocator::choose_efas(p5, ask(range_of(0, 32), 4)).ids, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(allocator::choose_efas(p5, ask(range_of(0, 32), 4)).why, "packed, 0 NUMA crossings, 1 switch");
  EXPECT_THAT(allocator::choose_efas(p5, ask(without(range_of(0, 32), {1}), 4)).ids, ElementsAre(4, 5, 6, 7))
      << "a whole switch, on the NUMA node that is broken into already";
  EXPECT_THAT(allocator::choose_efas(p5, ask(without(range_of(0, 32), {17}), 1)).ids, ElementsAre(16))
      << "the broken switch";
  std::set<int> nodes;
  for (const int id : allocator::choose_efas(p5, ask(without(range_of(0, 32), {0, 1, 2, 3}), 16)).ids) {
    nodes.insert(p5.efas[static_cast<std::size_t>(id)].numa_node);
  }
  EXPECT_EQ(nodes, std::set<int>{1});
}

TEST(ChooseEfas, HonoursMustInclude) {
  for (const bool hinted : {false, true}) {
    allocator::ChooseRequest request = ask(range_of(0, 16), 3);
    request.must_include = {15};
    request.free_devices = range_of(0, 16);
    if (hinted) request.prefer_devices = {0, 1};
    const allocator::Choice choice = allocator::choose_efas(trn2(), request);
    EXPECT_EQ(choice.ids.size(), 3U);
    EXPECT_THAT(choice.ids, ::testing::Contains(15));
  }
}

}  // namespace
}  // namespace neuron::test
