#include "plugin/kubelet/call_figures.h"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>
#include <vector>

namespace neuron::plugin {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;

TEST(CallFigures, CountsCallsIntoBuckets) {
  CallFigures figures;
  figures.called("Allocate", microseconds(100), CallFigures::Outcome::answered);  // a bound belongs to its bucket
  figures.called("Allocate", microseconds(101), CallFigures::Outcome::answered);
  figures.called("Allocate", seconds(31), CallFigures::Outcome::failed);
  figures.called("PreStartContainer", seconds(2), CallFigures::Outcome::answered);
  const auto counts = figures.counts();
  const auto& allocate = counts.calls.find("Allocate")->second;
  EXPECT_EQ(allocate.counts[0], 1U);
  EXPECT_EQ(allocate.counts[1], 1U);
  EXPECT_EQ(allocate.counts.back(), 1U) << "longer than all bounds";
  EXPECT_EQ(allocate.failed, 1U);
  EXPECT_NEAR(allocate.sum_seconds, 31.000201, 1e-9);
  EXPECT_EQ(counts.calls.size(), 2U);
}

TEST(CallFigures, CountsByName) {
  CallFigures figures;
  figures.gave("aws.amazon.com/neuron");
  figures.gave("aws.amazon.com/neuron");
  figures.gave("vpc.amazonaws.com/efa");
  figures.refused("held");
  figures.registered("aws.amazon.com/neuron");
  const auto counts = figures.counts();
  EXPECT_EQ(counts.allocations, (CallFigures::ByName{{"aws.amazon.com/neuron", 2}, {"vpc.amazonaws.com/efa", 1}}));
  EXPECT_EQ(counts.refusals, (CallFigures::ByName{{"held", 1}}));
  EXPECT_EQ(counts.registrations, (CallFigures::ByName{{"aws.amazon.com/neuron", 1}}));
}

// A counter that begins with its first event has no increase in Prometheus.
TEST(CallFigures, NamesAreThereFromTheStart) {
  const CallFigures figures({{"Allocate"}, {"held", "unhealthy"}, {"aws.amazon.com/neuron"}});
  const auto counts = figures.counts();
  EXPECT_EQ(counts.refusals, (CallFigures::ByName{{"held", 0}, {"unhealthy", 0}}));
  EXPECT_EQ(counts.allocations, (CallFigures::ByName{{"aws.amazon.com/neuron", 0}}));
  EXPECT_EQ(counts.registrations, (CallFigures::ByName{{"aws.amazon.com/neuron", 0}}));
  ASSERT_EQ(counts.calls.size(), 1U);
  const auto& [method, calls] = *counts.calls.begin();
  EXPECT_EQ(method, "Allocate");
  EXPECT_EQ(std::accumulate(calls.counts.begin(), calls.counts.end(), std::uint64_t{0}) + calls.failed, 0U);
}

TEST(CallFigures, ManyThreadsLoseNothing) {
  CallFigures figures;
  constexpr int kThreads = 4;
  constexpr std::uint64_t kEach = 1000;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        for (std::uint64_t n = 0; n < kEach; ++n) {
          figures.called("Allocate", microseconds(n), CallFigures::Outcome::answered);
          figures.gave("aws.amazon.com/neuron");
          if (n % 100 == 0) static_cast<void>(figures.counts());
        }
      });
    }
  }
  const auto counts = figures.counts();
  const auto& buckets = counts.calls.find("Allocate")->second.counts;
  EXPECT_EQ(std::accumulate(buckets.begin(), buckets.end(), std::uint64_t{0}), kThreads * kEach);
  EXPECT_EQ(counts.allocations.at("aws.amazon.com/neuron"), kThreads * kEach);
}

}  // namespace
}  // namespace neuron::plugin
