#include "agent/allocator/allocator.h"

#include <gtest/gtest.h>

#include "test/unit/core/make_host.h"

namespace neuron::test {
namespace {

using allocator::largest_of_cores;
using allocator::largest_of_devices;

TEST(Largest, OfATorusIsAnAlignedGroup) {
  for (const allocator::NodeTopology* topology : {&trn1(), &trn2()}) {
    EXPECT_EQ(largest_of_devices(*topology, range_of(0, 16)), 16);
    EXPECT_EQ(largest_of_devices(*topology, without(range_of(0, 16), {5})), 8);
    EXPECT_EQ(largest_of_devices(*topology, without(range_of(0, 16), {5, 10})), 4);
    EXPECT_EQ(largest_of_devices(*topology, {3}), 1);
    EXPECT_EQ(largest_of_devices(*topology, {}), 0);
  }
  EXPECT_EQ(largest_of_devices(trn2(), without(range_of(0, 16), {0, 5, 10, 15})), 1)
      << "twelve are free, of which no four are a group";
}

TEST(Largest, OfARingIsARun) {
  EXPECT_EQ(largest_of_devices(inf2(), range_of(0, 12)), 12);
  EXPECT_EQ(largest_of_devices(inf2(), without(range_of(0, 12), {3})), 11) << "round the end";
  EXPECT_EQ(largest_of_devices(inf2(), without(range_of(0, 12), {3, 9})), 5);
}

TEST(Largest, OfCoresIsARangeAsTheContainerCounts) {
  const int all = 16 * trn1().cores_per_device;
  EXPECT_EQ(largest_of_cores(trn1(), range_of(0, all)), all);
  EXPECT_EQ(largest_of_cores(trn1(), without(range_of(0, all), {0})), all - 1) << "the tail of the first device";
  EXPECT_EQ(largest_of_cores(trn1(), {1, 2, 3, 4}), 4);
  EXPECT_EQ(largest_of_cores(trn1(), {0, 2, 5, 8}), 2) << "at most a tail and a head";
  EXPECT_EQ(largest_of_cores(trn1(), {7}), 1);
  EXPECT_EQ(largest_of_cores(trn1(), {}), 0);
}

TEST(Largest, OfAFabricThatNobodyKnowsIsAllThereIs) {
  allocator::NodeTopology unknown;
  for (int i = 0; i < 3; ++i) unknown.devices.emplace_back().index = i;
  EXPECT_EQ(largest_of_devices(unknown, {0, 1, 2}), 3);
  EXPECT_EQ(largest_of_cores(unknown, {0, 1, 2}), 1) << "nobody knows which device has them";
}

// Every size below fits too, which the search by halves goes by.
TEST(Largest, IsTheLargestOfAllSizesThatFit) {
  std::uint32_t random = 1;
  for (int i = 0; i < 200; ++i) {
    random = random * 1664525U + 1013904223U;
    std::vector<int> free;
    for (int core = 0; core < 32; ++core) {
      if ((random >> static_cast<unsigned>(core) & 1U) != 0 || i % 3 == 0) free.push_back(core);
    }
    int most = 0;
    for (int size = 1; size <= static_cast<int>(free.size()); ++size) {
      const auto choice = allocator::choose_cores(trn1(), ask(free, size));
      const auto reason = allocator::explain_cores(trn1(), ask(free, size), choice.ids);
      if (reason.kind == allocator::Reason::Kind::core_range) most = size;
    }
    EXPECT_EQ(largest_of_cores(trn1(), free), most);
  }
}

}  // namespace
}  // namespace neuron::test
