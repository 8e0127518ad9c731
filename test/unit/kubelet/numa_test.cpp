#include "tools/neuron-sim/kubelet/allocation.h"

#include <gtest/gtest.h>

namespace neuron::sim {
namespace {

const PluginDevices kDevices = {{"a", {true, {0}}}, {"b", {true, {1}}}, {"c", {true, {0, 1}}}, {"d", {true, {}}}};
const IdSet kAll = {"a", "b", "c", "d"};

TEST(NumaTest, SplitsByAffinity) {
  const NumaSplit split = split_by_numa(kAll, kDevices, std::set<int>{1});
  EXPECT_EQ(split.aligned, (IdSet{"b", "c"}));
  EXPECT_EQ(split.unaligned, IdSet{"a"});
  EXPECT_EQ(split.no_affinity, IdSet{"d"});
}

TEST(NumaTest, WithoutAffinityOrTopologyNothingIsAligned) {
  EXPECT_EQ(split_by_numa(kAll, kDevices, std::nullopt).no_affinity, kAll);
  EXPECT_EQ(split_by_numa({"d"}, {{"d", {true, {}}}}, std::set<int>{0}).no_affinity, IdSet{"d"});
}

TEST(NumaTest, FindsTheSmallestSetForAllDemands) {
  const NumaDemand one{1, kDevices, {"a", "b"}};
  EXPECT_EQ(smallest_numa_set({one}), std::set<int>{0});
  const NumaDemand only_node_one{1, kDevices, {"b"}};
  EXPECT_EQ(smallest_numa_set({one, only_node_one}), std::set<int>{1});
  const NumaDemand two{2, kDevices, {"a", "b"}};
  EXPECT_EQ(smallest_numa_set({two}), (std::set<int>{0, 1}));
}

TEST(NumaTest, HasNoAnswerWithoutTopologyOrWithTooFewDevices) {
  EXPECT_EQ(smallest_numa_set({{1, {{"d", {true, {}}}}, {"d"}}}), std::nullopt);
  EXPECT_EQ(smallest_numa_set({{3, kDevices, {"a", "b"}}}), std::nullopt);
  EXPECT_EQ(smallest_numa_set({}), std::nullopt);
}

}  // namespace
}  // namespace neuron::sim
