#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/core/make_host.h"

namespace neuron::test {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

TEST(ChooseDevices, EmptyNodeGivesTheFirstAlignedGroup) {
  for (const allocator::NodeTopology* topology : {&trn1(), &trn2()}) {
    for (const int size : {1, 4, 8, 16}) {
      EXPECT_THAT(allocator::choose_devices(*topology, ask(range_of(0, 16), size)).ids,
                  ElementsAreArray(range_of(0, size)));
    }
  }
}

TEST(ChooseDevices, SaysWhy) {
  EXPECT_EQ(allocator::choose_devices(trn1(), ask(range_of(0, 16), 4)).why,
            "aligned group of 4, 8 hops, 1 NUMA crossing, leaves 3 groups of 4 whole");
  EXPECT_EQ(allocator::choose_devices(trn2(), ask(range_of(0, 16), 4)).why,
            "aligned group of 4, 8 hops, 0 NUMA crossings, leaves 3 groups of 4 whole");
  EXPECT_EQ(allocator::choose_devices(inf2(), ask(range_of(0, 12), 3)).why, "run of 3, 4 hops, 0 NUMA crossings");
}

TEST(ChooseDevices, SkipsGroupsThatAreBroken) {
  EXPECT_THAT(allocator::choose_devices(trn1(), ask(without(range_of(0, 16), {1, 6, 8}), 4)).ids,
              ElementsAre(12, 13, 14, 15));
  EXPECT_THAT(allocator::choose_devices(trn1(), ask(without(range_of(0, 16), {5}), 8)).ids,
              ElementsAreArray(range_of(8, 8)));
}

TEST(ChooseDevices, SmallRequestsBreakWhatIsBrokenAlready) {
  EXPECT_THAT(allocator::choose_devices(trn2(), ask(without(range_of(0, 16), {6}), 1)).ids, ElementsAre(5))
      << "the other device of the switch";
  EXPECT_THAT(allocator::choose_devices(trn2(), ask(without(range_of(0, 16), {4, 5, 6, 7}), 4)).ids,
              ElementsAre(0, 1, 2, 3))
      << "keeps the eight above whole";
}

TEST(ChooseDevices, PairsShareASwitchOrAnEfa) {
  EXPECT_THAT(allocator::choose_devices(trn2(), ask(range_of(0, 16), 2)).ids, ElementsAre(1, 2));
  EXPECT_THAT(allocator::choose_devices(trn2(), ask(without(range_of(0, 16), {1}), 2)).ids, ElementsAre(0, 3));
  EXPECT_THAT(allocator::choose_devices(trn2(), ask({0, 3, 4, 12}, 2)).ids, ElementsAre(0, 3));
  EXPECT_THAT(allocator::choose_devices(trn1(), ask(range_of(0, 16), 2)).ids, ElementsAre(0, 1));
  EXPECT_THAT(allocator::choose_devices(trn1(), ask(without(range_of(0, 16), {0}), 2)).ids, ElementsAre(2, 3));
}

TEST(ChooseDevices, OtherSizesAreConnectedAndTight) {
  EXPECT_THAT(allocator::choose_devices(trn2(), ask(range_of(0, 16), 3)).why, HasSubstr("set of 3, 4 hops"));
  EXPECT_THAT(allocator::choose_devices(trn2(), ask(range_of(0, 16), 6)).why, HasSubstr("set of 6, 25 hops"));
  // Three rows left over, each with one device gone: no aligned group of 8, still one piece.
  const allocator::Choice eight = allocator::choose_devices(trn2(), ask(without(range_of(0, 16), {0, 5, 10, 15}), 8));
  EXPECT_EQ(eight.ids.size(), 8U);
  EXPECT_THAT(eight.why, ::testing::Not(HasSubstr("not connected")));
}

TEST(ChooseDevices, SaysWhenNothingConnectedIsLeft) {
  EXPECT_THAT(allocator::choose_devices(trn1(), ask({0, 2, 5, 7}, 2)).why, HasSubstr("not connected"));
}

TEST(ChooseDevices, RingGivesRunsAndWrapsOnlyWhenItMust) {
  EXPECT_THAT(allocator::choose_devices(inf2(), ask(range_of(0, 12), 4)).ids, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(allocator::choose_devices(inf2(), ask({0, 1, 4, 5, 10, 11}, 4)).ids, ElementsAre(0, 1, 10, 11));
  EXPECT_THAT(allocator::choose_devices(inf2(), ask({0, 1, 2, 3, 5, 6, 11}, 2)).ids, ElementsAre(5, 6))
      << "leaves the long run, which passes the end, whole";
}

TEST(ChooseDevices, LineDoesNotWrap) {
  const allocator::NodeTopology line = topology_of("inf2.24xlarge");
  EXPECT_THAT(allocator::choose_devices(line, ask({0, 1, 3, 4, 5}, 3)).ids, ElementsAre(3, 4, 5));
  EXPECT_THAT(allocator::choose_devices(line, ask({0, 1, 3, 5}, 2)).ids, ElementsAre(0, 1));
  EXPECT_THAT(allocator::choose_devices(topology_of("inf1.24xlarge"), ask({0, 2, 4, 5, 6}, 3)).ids,
              ElementsAre(4, 5, 6));
}

TEST(ChooseDevices, HonoursMustInclude) {
  allocator::ChooseRequest request = ask(range_of(0, 16), 4);
  request.must_include = {9};
  EXPECT_THAT(allocator::choose_devices(trn1(), request).ids, ElementsAre(8, 9, 10, 11));
  request.must_include = {3, 15};
  const allocator::Choice choice = allocator::choose_devices(trn1(), request);
  EXPECT_THAT(choice.ids, ::testing::IsSupersetOf({3, 15}));
  EXPECT_EQ(choice.ids.size(), 4U);
  allocator::ChooseRequest ring = ask(range_of(0, 12), 3);
  ring.must_include = {11};
  EXPECT_THAT(allocator::choose_devices(inf2(), ring).ids, ElementsAre(9, 10, 11));
}

TEST(ChooseDevices, GoesToTheEfasOfTheSameContainer) {
  allocator::ChooseRequest request = ask(range_of(0, 16), 4);
  request.prefer_efas = trn1().devices[8].near_efas;
  EXPECT_THAT(allocator::choose_devices(trn1(), request).ids, ElementsAre(8, 9, 10, 11));
  request.size = 1;
  request.prefer_efas = trn2().devices[6].near_efas;
  EXPECT_THAT(allocator::choose_devices(trn2(), request).ids, ElementsAre(6));
}

TEST(ChooseDevices, TakesSharedDevicesLast) {
  allocator::ChooseRequest request = ask(range_of(0, 16), 1);
  request.avoid_devices = {0, 1};
  EXPECT_THAT(allocator::choose_devices(trn1(), request).ids, ElementsAre(2));
  request = ask({0, 1, 2}, 2);
  request.avoid_devices = {0, 1};
  EXPECT_THAT(allocator::choose_devices(trn1(), request).ids, ElementsAre(1, 2));
  request = ask(range_of(0, 16), 8);
  request.avoid_devices = {2};
  EXPECT_THAT(allocator::choose_devices(trn1(), request).ids, ElementsAreArray(range_of(8, 8)));
}

TEST(ChooseDevices, SwitchedFabricKeepsGroupsTogether) {
  const allocator::NodeTopology four = topology_of("trn3e.24xlarge");
  EXPECT_THAT(allocator::choose_devices(four, ask(range_of(0, 4), 2)).ids, ElementsAre(0, 1));
  const allocator::NodeTopology sixteen = topology_of("trn3.48xlarge");
  EXPECT_THAT(allocator::choose_devices(sixteen, ask(without(range_of(0, 16), {0}), 4)).ids, ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(allocator::choose_devices(sixteen, ask(without(range_of(0, 16), {0}), 3)).ids, ElementsAre(1, 2, 3));
}

TEST(ChooseDevices, AMissingDeviceIsNoObstacle) {
  model::HostScan scan = silent_scan("trn1.32xlarge");
  scan.devices.erase(scan.devices.begin() + 3);
  const allocator::NodeTopology topology = allocator::make_topology(core::complete(scan));
  EXPECT_THAT(allocator::choose_devices(topology, ask(without(range_of(0, 16), {3}), 4)).ids, ElementsAre(4, 5, 6, 7));
}

TEST(ChooseDevices, WhereTheNearestEfasAreStillFree) {
  const allocator::NodeTopology trn1 = topology_of("trn1.32xlarge");
  const int of_0 = trn1.devices[0].near_efas[0];
  allocator::ChooseRequest request = ask({0, 1, 6, 7, 8, 9, 10, 11}, 2);
  EXPECT_THAT(allocator::choose_devices(trn1, request).ids, ElementsAre(0, 1));
  request.free_efas = without(range_of(0, 8), {of_0});
  EXPECT_THAT(allocator::choose_devices(trn1, request).ids, ElementsAre(6, 7));
  // Two devices that share one EFA, though others would leave the pairs whole.
  request.available = {1, 2, 4, 5, 6, 7};
  EXPECT_THAT(allocator::choose_devices(trn1, request).ids, ElementsAre(4, 5));
  request.free_efas.clear();
  EXPECT_THAT(allocator::choose_devices(trn1, request).ids, ElementsAre(1, 2));
}

TEST(ChooseDevices, GivenEfasComeBeforeHops) {
  const allocator::NodeTopology trn2 = topology_of("trn2.48xlarge");
  allocator::ChooseRequest request = ask({0, 1, 4, 5, 6, 10, 11}, 3);
  for (const int device : {6, 10, 11})
    request.prefer_efas.push_back(trn2.devices[static_cast<std::size_t>(device)].near_efas[0]);
  const allocator::Choice choice = allocator::choose_devices(trn2, request);
  EXPECT_THAT(choice.ids, ElementsAre(6, 10, 11));
  EXPECT_EQ(choice.reason.nearest, 3);
  EXPECT_THAT(choice.why, ::testing::HasSubstr(", 3 EFAs nearest"));
}

TEST(ChooseDevices, ReluctantOnesOnlyForAShape) {
  const allocator::NodeTopology trn2 = topology_of("trn2.48xlarge");
  allocator::ChooseRequest request = ask(range_of(0, 16), 1);
  request.reluctant_devices = {0, 1, 2};
  EXPECT_THAT(allocator::choose_devices(trn2, request).ids, ElementsAre(3));
  request.size = 4;
  EXPECT_THAT(allocator::choose_devices(trn2, request).ids, ElementsAre(4, 5, 6, 7));
  request.reluctant_devices = {0, 4, 5, 8, 12, 13};
  EXPECT_THAT(allocator::choose_devices(trn2, request).ids, ElementsAre(0, 1, 2, 3))
      << "a group with one, before none without";
  request.size = 3;
  for (const int id : allocator::choose_devices(trn2, request).ids)
    EXPECT_FALSE(std::count(request.reluctant_devices.begin(), request.reluctant_devices.end(), id));
  request.reluctant_devices = range_of(-3, 40);
  EXPECT_EQ(allocator::choose_devices(trn2, request).ids.size(), 3U);
}

}  // namespace
}  // namespace neuron::test
