#include "plugin/daemon/metrics_sources.h"

#include <gtest/gtest.h>

#include "test/fakes/fake_clock.h"

namespace neuron::plugin {
namespace {

using std::chrono::seconds;

// The monitor is not started, as if its first scan hung: nothing is ever scanned or sampled.
class MetricsSourcesTest : public ::testing::Test {
 protected:
  fakes::FakeClock clock_;
  monitor::SnapshotStore store_;
  plugin::CallFigures figures_{{{"Allocate"}, {"held"}, {"aws.amazon.com/neuron"}}};
  ScanTimer timer_;
  Workers workers_;
  monitor::Monitor monitor_{store_, workers_, [] { return monitor::WatchedScan::Scan(); }, {}, {}};
  MetricsSources sources_{
      nullptr,
      {"n1", seconds(5), clock_, store_, figures_, timer_, workers_, monitor_},
      {[] { return std::vector<holdings::Holding>(); }, [](model::SnapshotPtr scanned) { return scanned; }}};
};

// Else an alert on the age would never fire where the first sample hangs.
TEST_F(MetricsSourcesTest, WithoutASampleTheAgeIsSinceTheFirstScrape) {
  clock_.advance(seconds(100));
  EXPECT_EQ(sources_.gather().usage_age, seconds(0));
  clock_.advance(seconds(91));
  const metrics::MetricsInput input = sources_.gather();
  EXPECT_EQ(input.now, nullptr);
  EXPECT_EQ(input.usage_age, seconds(91));
}

TEST_F(MetricsSourcesTest, NamesAreThereBeforeTheFirstScan) {
  const metrics::AgentFigures agent = sources_.gather().agent;
  EXPECT_EQ(agent.refusals, (std::map<std::string, std::uint64_t>{{"held", 0}}));
  EXPECT_EQ(agent.calls_failed, (std::map<std::string, std::uint64_t>{{"Allocate", 0}}));
  EXPECT_EQ(agent.calls.at("Allocate").counts.size(), agent.calls.at("Allocate").bounds.size() + 1);
  ASSERT_TRUE(agent.start_time_seconds);
  EXPECT_GT(*agent.start_time_seconds, 1.7e9) << "Unix time";
}

}  // namespace
}  // namespace neuron::plugin
