#include "plugin/daemon/metrics_sources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/report/node_report.h"
#include "test/fakes/fake_clock.h"
#include "test/unit/grant/nodes.h"

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
  std::vector<holdings::Holding> held_;
  monitor::Monitor monitor_{store_, workers_, [] { return monitor::WatchedScan::Scan(); }, {}, {}};
  MetricsSources sources_{nullptr,
                          {"n1", seconds(5), clock_, store_, figures_, timer_, workers_, monitor_},
                          {[this] { return held_; }, [](model::SnapshotPtr scanned) { return scanned; }}};
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

TEST_F(MetricsSourcesTest, TheNodesDocumentIsThatOfTheSnapshotAndTheHoldings) {
  EXPECT_FALSE(sources_.node_document()) << "before the first scan";
  store_.publish(snapshot_of("trn1.2xlarge"));
  const auto pods = [this] { return report::parse_node_report(sources_.node_document().value_or("")).value().pods; };
  sources_.set_registered({{"aws.amazon.com/neuron", false}});
  EXPECT_FALSE(pods()) << "the kubelet has not been asked";
  sources_.set_registered({{"aws.amazon.com/neuron", true}});
  EXPECT_EQ(pods()->size(), 0U);
  holdings::Holding& holding = held_.emplace_back();
  holding.resource = model::Resource::neuroncore;
  holding.units = holding.cores = {1};
  holding.devices = {0};
  holding.shown_as = "default/train/main";
  const report::PodUse train{"default", "train", "main", {0}, {1}, {}, ""};
  EXPECT_THAT(pods().value(), testing::ElementsAre(train));
  sources_.set_registered({{"aws.amazon.com/neuron", false}});
  EXPECT_THAT(pods().value(), testing::ElementsAre(train)) << "while it is registered again";
}

TEST_F(MetricsSourcesTest, ANodeWithoutHardwareHasNoHolders) {
  auto empty = std::make_shared<model::Snapshot>();
  empty->number = 1;
  store_.publish(empty);
  EXPECT_EQ(report::parse_node_report(sources_.node_document().value_or("")).value().pods->size(), 0U);
}

}  // namespace
}  // namespace neuron::plugin
