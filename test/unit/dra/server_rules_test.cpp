#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugin/dra/slices/pool.h"
#include "plugin/dra/slices/publisher.h"

namespace neuron::plugin::dra {
namespace {

using testing::HasSubstr;

TEST(ServerRules, Pain16NoCountersForSchedulersThatPanicOnThem) {
  const auto shape = [](int minor, int patch) { return shape_for({1, minor, patch}); };
  EXPECT_FALSE(shape(33, 9));
  EXPECT_EQ(*shape(34, 0), SliceShape::combined);
  EXPECT_EQ(*shape(34, 9), SliceShape::combined);
  EXPECT_EQ(*shape(35, 0), SliceShape::plain);
  EXPECT_EQ(*shape(35, 5), SliceShape::plain);
  EXPECT_EQ(*shape(35, 6), SliceShape::split);
  EXPECT_EQ(*shape(36, 1), SliceShape::plain);
  EXPECT_EQ(*shape(36, 2), SliceShape::split);
  EXPECT_EQ(*shape(37, 0), SliceShape::split);
  EXPECT_EQ(*shape_for({2, 0, 0}), SliceShape::split);
}

TEST(ServerRules, AServerIsNamedByVersionAndGates) {
  const auto layout = [](const char* server) {
    const auto options = layout_for(server);
    EXPECT_TRUE(options) << server;
    return options ? std::pair(options->shape, options->taints) : std::pair(SliceShape::plain, false);
  };
  EXPECT_EQ(layout("1.36.3"), std::pair(SliceShape::split, true));
  EXPECT_EQ(layout("v1.36.2-eks-113cf36"), std::pair(SliceShape::split, true));
  EXPECT_EQ(layout("1.36.1"), std::pair(SliceShape::plain, true));
  EXPECT_EQ(layout("1.35.6"), std::pair(SliceShape::plain, false)) << "gates are closed before 1.36";
  EXPECT_EQ(layout("1.35.6,DRAPartitionableDevices=true"), std::pair(SliceShape::split, false));
  EXPECT_EQ(layout("1.35.5,DRAPartitionableDevices=true"), std::pair(SliceShape::plain, false));
  EXPECT_EQ(layout("1.34.2,DRAPartitionableDevices=true"), std::pair(SliceShape::combined, false));
  EXPECT_EQ(layout("1.36.3,DRAPartitionableDevices=false,DRADeviceTaints=false"), std::pair(SliceShape::plain, false));
  for (const char* wrong : {"", "1.36", "new", "1.36.3,", "1.36.3,DRAPartitionableDevices", "1.36.3,DRADeviceTaints=no",
                            "1.36.3,DynamicResourceAllocation=true"}) {
    const auto options = layout_for(wrong);
    ASSERT_FALSE(options) << wrong;
    EXPECT_EQ(options.error().code, ErrorCode::invalid_argument) << wrong;
  }
  EXPECT_TRUE(layout_for("1.37.2")->all_waits);
  EXPECT_FALSE(layout_for("1.36.3")->all_waits) << "claims for all devices get the free ones";
  EXPECT_TRUE(layout_for("1.36.3")->shares);
  EXPECT_FALSE(layout_for("1.35.6")->shares);
  EXPECT_EQ(layout_for("1.33.4").error().code, ErrorCode::failed_precondition);
}

TEST(ServerRules, Pain10AKubeletThatLosesDriversIsRefused) {
  EXPECT_FALSE(check_kubelet({1, 33, 4}));
  EXPECT_FALSE(check_kubelet({1, 34, 0}));
  const auto refused = check_kubelet({1, 34, 1});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::failed_precondition);
  EXPECT_THAT(refused.error().message, HasSubstr("1.34.2"));
  EXPECT_TRUE(check_kubelet({1, 34, 2}));
  EXPECT_TRUE(check_kubelet({1, 36, 0}));
}

// Answers of servers that need not agree, each so many minutes after the first; the value after the last one.
SliceShape after(const std::vector<std::pair<int, SliceShape>>& answers) {
  SteadyAnswer<SliceShape> steady(SliceShape::plain);
  for (const auto& [minute, shape] : answers) steady.take(shape, SteadyTime() + std::chrono::minutes(1000 + minute));
  return steady.value().value();
}

TEST(SteadyAnswer, LowersAtOnceAndRaisesAfterThreeEqualAnswers) {
  constexpr auto plain = SliceShape::plain, combined = SliceShape::combined, split = SliceShape::split;
  EXPECT_EQ(after({{0, split}}), split) << "the first counts";
  EXPECT_EQ(after({{0, split}, {1, plain}}), plain);
  EXPECT_EQ(after({{0, plain}, {5, split}, {10, split}}), plain);
  EXPECT_EQ(after({{0, plain}, {5, split}, {10, split}, {15, split}}), split);
  EXPECT_EQ(after({{0, plain}, {5, split}, {9, split}, {13, split}}), plain) << "within less than ten minutes";
  EXPECT_EQ(after({{0, plain}, {5, split}, {9, split}, {13, split}, {17, split}}), split);
  EXPECT_EQ(after({{0, plain}, {5, split}, {6, split}, {7, split}, {8, split}, {15, split}}), plain) << "of one moment";
  EXPECT_EQ(after({{0, plain}, {5, split}, {10, split}, {15, plain}, {20, split}, {25, split}}), plain);
  EXPECT_EQ(after({{0, combined}, {5, split}}), plain) << "no server takes both";
  EXPECT_EQ(after({{0, combined}, {5, split}, {10, combined}, {15, split}, {20, combined}, {25, split}}), plain);
  EXPECT_EQ(after({{0, combined}, {5, split}, {10, split}, {15, split}}), split);
}

TEST(SteadyAnswer, NothingIsKnownBeforeTheFirst) {
  SteadyAnswer<bool> steady(false);
  EXPECT_EQ(steady.value(), std::nullopt);
  EXPECT_FALSE(steady.is_rising());
  steady.take(false, SteadyTime());
  steady.take(true, SteadyTime() + std::chrono::hours(1));
  EXPECT_TRUE(steady.is_rising());
  EXPECT_EQ(steady.value(), false);
}

}  // namespace
}  // namespace neuron::plugin::dra
