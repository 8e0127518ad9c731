#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/core/make_host.h"

namespace neuron::test {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

TEST(ChooseCores, OneCoreOfAnEmptyNode) {
  EXPECT_THAT(allocator::choose_cores(trn1(), ask(range_of(0, 32), 1)).ids, ElementsAre(0));
}

TEST(ChooseCores, FillsPartlyUsedDevicesFirst) {
  EXPECT_THAT(allocator::choose_cores(trn1(), ask(without(range_of(0, 32), {10}), 1)).ids, ElementsAre(11));
  EXPECT_THAT(allocator::choose_cores(trn2(), ask(without(range_of(0, 64), {20, 41, 42}), 2)).ids, ElementsAre(21, 22))
      << "device 10 has two left too, but not in a row";
  EXPECT_THAT(allocator::choose_cores(trn2(), ask(without(range_of(0, 64), {20, 40, 41}), 2)).ids, ElementsAre(42, 43))
      << "exactly two are left there";
}

TEST(ChooseCores, LeavesLongRunsBehind) {
  EXPECT_THAT(allocator::choose_cores(trn2(), ask(without(range_of(0, 64), {0}), 1)).ids, ElementsAre(1));
  EXPECT_THAT(allocator::choose_cores(trn2(), ask(range_of(0, 64), 3)).ids, ElementsAre(0, 1, 2));
}

TEST(ChooseCores, WholeDevicesAreChosenLikeDevices) {
  EXPECT_THAT(allocator::choose_cores(trn1(), ask(range_of(0, 32), 8)).ids, ElementsAreArray(range_of(0, 8)));
  EXPECT_THAT(allocator::choose_cores(trn1(), ask(without(range_of(0, 32), {3}), 8)).ids,
              ElementsAreArray(range_of(8, 8)));
  EXPECT_THAT(allocator::choose_cores(trn2(), ask(range_of(0, 64), 8)).ids, ElementsAreArray(range_of(4, 8)))
      << "devices 1 and 2 share a switch";
}

TEST(ChooseCores, TheRestGoesToTheHeadOfTheLastOrTheTailOfTheFirst) {
  const allocator::Choice three = allocator::choose_cores(trn1(), ask(range_of(0, 32), 3));
  EXPECT_THAT(three.ids, ElementsAre(0, 1, 2));
  EXPECT_THAT(allocator::choose_cores(trn1(), ask(without(range_of(0, 32), {2}), 3)).ids, ElementsAre(3, 4, 5))
      << "tail of device 1, then device 2";
  EXPECT_THAT(allocator::choose_cores(trn1(), ask(without(range_of(0, 32), {5}), 3)).ids, ElementsAre(2, 3, 4))
      << "device 1, then the head of device 2";
}

TEST(ChooseCores, TwoPartialEndsWhenNothingElseIsLeft) {
  EXPECT_THAT(allocator::choose_cores(trn1(), ask({0, 3, 4, 9}, 2)).ids, ElementsAre(3, 4));
  EXPECT_THAT(allocator::choose_cores(trn1(), ask({1, 2, 3, 4, 9}, 4)).why, HasSubstr("one range"));
}

TEST(ChooseCores, SaysWhenNoRangeIsLeft) {
  const allocator::Choice choice = allocator::choose_cores(trn1(), ask({0, 2, 4, 6}, 2));
  EXPECT_EQ(choice.ids.size(), 2U);
  EXPECT_THAT(choice.why, HasSubstr("scattered"));
}

TEST(ChooseCores, HonoursMustInclude) {
  allocator::ChooseRequest request = ask(range_of(0, 64), 2);
  request.must_include = {30};
  const allocator::Choice two = allocator::choose_cores(trn2(), request);
  EXPECT_THAT(two.ids, ElementsAre(30, 31)) << "28 and 29 stay a pair";
  request.size = 8;
  const allocator::Choice eight = allocator::choose_cores(trn2(), request);
  EXPECT_THAT(eight.ids, ::testing::IsSupersetOf({28, 29, 30, 31}));
  request.must_include = {0, 63};
  request.size = 4;
  EXPECT_THAT(allocator::choose_cores(trn2(), request).ids, ::testing::IsSupersetOf({0, 63}));
}

TEST(ChooseCores, FollowsTheContainersOtherResources) {
  allocator::ChooseRequest request = ask(range_of(0, 32), 4);
  request.prefer_devices = {6, 7};
  EXPECT_THAT(allocator::choose_cores(trn1(), request).ids, ElementsAre(12, 13, 14, 15));
  request.prefer_devices.clear();
  request.prefer_efas = trn1().devices[9].near_efas;
  EXPECT_THAT(allocator::choose_cores(trn1(), request).ids, ElementsAre(16, 17, 18, 19));
}

TEST(ChooseCores, TakesDevicesOfOthersLast) {
  allocator::ChooseRequest request = ask(range_of(0, 32), 2);
  request.avoid_devices = {0, 1};
  EXPECT_THAT(allocator::choose_cores(trn1(), request).ids, ElementsAre(4, 5));
  request.available = {0, 1, 5};
  EXPECT_EQ(allocator::choose_cores(trn1(), request).ids.size(), 2U);
}

TEST(ChooseCores, UnknownNumberingGivesThePlainAnswer) {
  allocator::NodeTopology topology = trn1();
  for (const int stride : {0, -3, 1000}) {
    topology.cores_per_device = stride;
    EXPECT_THAT(allocator::choose_cores(topology, ask(range_of(0, 32), 3)).ids, ElementsAre(0, 1, 2));
  }
}

// What the runtime in the container accepts: one range, counted over the devices it sees.
bool is_one_range(const std::vector<int>& ids, int per_device) {
  std::vector<int> local;
  int device = -1;
  int seen = -1;
  for (const int id : ids) {
    if (id / per_device != device) ++seen;
    device = id / per_device;
    local.push_back(seen * per_device + id % per_device);
  }
  return local.back() - local.front() + 1 == static_cast<int>(local.size());
}

TEST(ChooseCores, EverySizeOfAnEmptyNodeIsOneRange) {
  for (const allocator::NodeTopology* topology : {&trn1(), &trn2()}) {
    const int all = 16 * topology->cores_per_device;
    for (int size = 1; size <= all; ++size) {
      const allocator::Choice choice = allocator::choose_cores(*topology, ask(range_of(0, all), size));
      ASSERT_EQ(choice.ids.size(), static_cast<std::size_t>(size));
      EXPECT_TRUE(is_one_range(choice.ids, topology->cores_per_device)) << size << ": " << choice.why;
    }
  }
}

TEST(ChooseCores, SuccessiveRequestsStayRangesUntilTheNodeIsFull) {
  for (const int size : {1, 2, 3, 4, 5, 7}) {
    std::vector<int> available = range_of(0, 64);
    while (static_cast<int>(available.size()) > size) {
      const allocator::Choice choice = allocator::choose_cores(trn2(), ask(available, size));
      ASSERT_EQ(choice.ids.size(), static_cast<std::size_t>(size));
      EXPECT_TRUE(is_one_range(choice.ids, 4) || choice.why.find("scattered") != std::string::npos) << choice.why;
      available = without(available, choice.ids);
    }
  }
}

TEST(ChooseCores, ReluctantOnlyWhileWhole) {
  const allocator::NodeTopology topology = topology_of("trn2.48xlarge");
  allocator::ChooseRequest request = ask(without(range_of(0, 64), {0}), 1);
  request.reluctant_devices = {0, 1};  // device 0 is partly used: as a whole nobody can have it in any case
  EXPECT_THAT(allocator::choose_cores(topology, request).ids, ElementsAre(1));
  request.size = 4;
  EXPECT_THAT(allocator::choose_cores(topology, request).ids, ElementsAre(12, 13, 14, 15))
      << "device 3, which shares the switch of 0";
  request.reluctant_devices.push_back(3);
  EXPECT_THAT(allocator::choose_cores(topology, request).ids, ElementsAre(8, 9, 10, 11)) << "device 2";
}

}  // namespace
}  // namespace neuron::test
