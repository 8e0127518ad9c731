// More devices than any node has: bounded time, connected where possible, and close to the best where that is known.
#include <gtest/gtest.h>

#include <bit>
#include <random>

#include "agent/allocator/graph.h"
#include "test/unit/core/make_host.h"

namespace neuron::test {
namespace {

using allocator::bit;
using allocator::DeviceGraph;
using allocator::Mask;
using allocator::Rater;

allocator::NodeTopology torus(int rows, int columns) {
  allocator::NodeTopology topology;
  topology.groups_of_torus = true;
  topology.cores_per_device = 8;
  for (int i = 0; i < rows * columns; ++i) {
    const int row = i / columns;
    const int column = i % columns;
    const auto at = [&](int r, int c) { return (r + rows) % rows * columns + (c + columns) % columns; };
    topology.devices.push_back(
        {i, row / 2, i / 2, {at(row - 1, column), at(row + 1, column), at(row, column - 1), at(row, column + 1)}, {}});
  }
  return topology;
}

std::vector<int> random_pool(std::mt19937& random, int devices, unsigned percent) {
  std::vector<int> pool;
  for (int i = 0; i < devices; ++i) {
    if (random() % 100 < percent) pool.push_back(i);
  }
  return pool;
}

TEST(AllocatorLarge, AlignedGroupsWhereTheyAreFree) {
  for (const allocator::NodeTopology& topology : {torus(8, 4), torus(16, 4)}) {
    const auto count = static_cast<int>(topology.devices.size());
    for (const int size : {1, 4, 8, 16}) {
      EXPECT_EQ(allocator::choose_devices(topology, ask(range_of(0, count), size)).ids, range_of(0, size));
      EXPECT_EQ(allocator::choose_devices(topology, ask(without(range_of(0, count), {1}), size)).ids.front() % size, 0);
    }
  }
}

// A connected answer wherever a piece of the pool is large enough, whatever the holes.
TEST(AllocatorLarge, ValidRepeatableAndConnectedWherePossible) {
  std::mt19937 random(31);
  for (const allocator::NodeTopology& topology : {torus(8, 4), torus(8, 8)}) {
    const DeviceGraph graph(topology);
    for (int round = 0; round < 60; ++round) {
      allocator::ChooseRequest request = ask(random_pool(random, graph.size(), 45 + static_cast<unsigned>(round)), 0);
      if (request.available.size() < 2) continue;
      request.size = 1 + static_cast<int>(random() % (request.available.size() - 1));
      const allocator::Choice choice = allocator::choose_devices(topology, request);
      ASSERT_EQ(choice.ids.size(), static_cast<std::size_t>(request.size));
      ASSERT_TRUE(
          std::includes(request.available.begin(), request.available.end(), choice.ids.begin(), choice.ids.end()));
      EXPECT_EQ(choice.ids, allocator::choose_devices(topology, request).ids);
      Mask largest = 0;
      for (Mask left = graph.mask_of(request.available); left != 0;) {
        Mask piece = left & (~left + 1);
        for (Mask before = 0; before != piece;) {
          before = piece;
          for (Mask m = before; m != 0; m &= m - 1) piece |= graph.neighbours(std::countr_zero(m)) & left;
        }
        if (std::popcount(piece) > std::popcount(largest)) largest = piece;
        left &= ~piece;
      }
      if (std::popcount(largest) >= request.size) {
        EXPECT_TRUE(graph.connected(graph.mask_of(choice.ids))) << round << ": " << choice.why;
      }
    }
  }
}

TEST(AllocatorLarge, MustIncludeIsJoined) {
  const allocator::NodeTopology topology = torus(8, 8);
  allocator::ChooseRequest request = ask(range_of(0, 64), 6);
  request.must_include = {0, 18};
  EXPECT_EQ(allocator::choose_devices(topology, request).reason.kind, allocator::Reason::Kind::connected);
  request.size = 3;
  EXPECT_EQ(allocator::choose_devices(topology, request).reason.kind, allocator::Reason::Kind::scattered);
}

// Where the exact answer is known, the way for large pools is asked the same.
TEST(AllocatorLarge, CloseToTheBestWhereThatIsKnown) {
  std::mt19937 random(32);
  const allocator::NodeTopology topology = torus(4, 4);
  const DeviceGraph graph(topology);
  int questions = 0;
  int equal = 0;
  double worst = 1;
  for (int round = 0; round < 400; ++round) {
    const Mask pool = graph.mask_of(random_pool(random, 16, 80));
    const int size = 2 + static_cast<int>(random() % 10);
    if (std::popcount(pool) <= size) continue;
    const Rater rater(graph, pool, {});
    const Mask exact = allocator::best_subset(graph, rater, pool, 0, size);
    const Mask grown = allocator::grown_subset(graph, rater, pool, 0, size);
    ASSERT_EQ(std::popcount(grown), size);
    ASSERT_EQ(grown & ~pool, 0U);
    ++questions;
    equal += graph.hop_sum(exact) == graph.hop_sum(grown) ? 1 : 0;
    worst = std::max(worst, static_cast<double>(graph.hop_sum(grown)) / graph.hop_sum(exact));
  }
  std::printf("%d questions, %d with the least hop sum, worst ratio %.3f\n", questions, equal, worst);
  EXPECT_GE(equal * 100, questions * 95);
  EXPECT_LE(worst, 1.2);
}

TEST(AllocatorLarge, ReasonsInWords) {
  allocator::Reason reason;
  EXPECT_EQ(allocator::phrase(reason), "nothing to choose");
  reason.kind = allocator::Reason::Kind::aligned_group;
  reason.units = 4;
  reason.hops = 8;
  reason.numa_nodes = 1;
  reason.groups_left = allocator::Reason::GroupsLeft{0, 1, 3, 6, 12};
  EXPECT_EQ(allocator::phrase(reason), "aligned group of 4, 8 hops, 0 NUMA crossings, leaves 3 groups of 4 whole");
  reason.groups_left = allocator::Reason::GroupsLeft{0, 0, 0, 2, 5};
  EXPECT_EQ(allocator::phrase(reason), "aligned group of 4, 8 hops, 0 NUMA crossings, leaves no group of 4, 2 pairs");
  reason = {};
  reason.kind = allocator::Reason::Kind::core_range;
  reason.devices = 1;
  reason.first_device = 7;
  EXPECT_EQ(allocator::phrase(reason), "one range on device 7");
  for (int kind = 0; kind <= static_cast<int>(allocator::Reason::Kind::unrated); ++kind) {
    reason.kind = static_cast<allocator::Reason::Kind>(kind);
    EXPECT_FALSE(allocator::phrase(reason).empty());
  }
}

}  // namespace
}  // namespace neuron::test
