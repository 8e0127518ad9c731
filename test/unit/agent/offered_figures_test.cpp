#include "plugin/device/serving_state.h"

#include <gtest/gtest.h>

#include "test/fakes/fake_clock.h"
#include "test/unit/grant/nodes.h"

namespace neuron::plugin {
namespace {

using model::Resource;

class OfferedFiguresTest : public ::testing::Test {
 protected:
  [[nodiscard]] metrics::Offered of(Resource resource) {
    for (const metrics::Offered& one : figures_.all(allocations_.all_holdings())) {
      if (one.resource == resource) return one;
    }
    return {};
  }
  fakes::FakeClock clock_;
  holdings::CheckpointVersion version_ = 0;
  plugin::Allocations allocations_{{}, [this] { return ++version_; }, clock_};
  OfferedFigures figures_{allocations_, {}};
};

TEST_F(OfferedFiguresTest, NothingBeforeTheFirstScan) {
  EXPECT_TRUE(figures_.all({}).empty());
}

TEST_F(OfferedFiguresTest, AnEmptyNodeCouldGiveAllOfIt) {
  allocations_.set_node(node_of("trn2.48xlarge"));
  const auto all = figures_.all({});
  ASSERT_EQ(all.size(), 4U);
  for (const metrics::Offered& one : all) {
    EXPECT_EQ(one.healthy, one.units);
    EXPECT_EQ(one.held, 0);
    EXPECT_EQ(one.free, one.units);
    EXPECT_EQ(one.largest_request, one.units);
  }
  EXPECT_EQ(of(Resource::neuron).units, 16);
  EXPECT_EQ(of(Resource::neuroncore).units, 64);
  EXPECT_EQ(of(Resource::efa).units, 16);
}

TEST_F(OfferedFiguresTest, OneHeldDeviceHalvesWhatFits) {
  allocations_.set_node(node_of("trn2.48xlarge"));
  ASSERT_TRUE(allocations_.allocate(Resource::neuron, {"5"}));
  const metrics::Offered devices = of(Resource::neuron);
  EXPECT_EQ(devices.units, 16);
  EXPECT_EQ(devices.healthy, 16) << "what a container holds through this name stays Healthy";
  EXPECT_EQ(devices.held, 1);
  EXPECT_EQ(devices.free, 15);
  EXPECT_EQ(devices.largest_request, 8);
  const metrics::Offered cores = of(Resource::neuroncore);
  EXPECT_EQ(cores.held, 0) << "through this name";
  EXPECT_EQ(cores.healthy, 60);
  EXPECT_EQ(cores.free, 60);
  EXPECT_EQ(cores.largest_request, 60) << "the container numbers over the gap";
  EXPECT_EQ(of(Resource::efa).largest_request, 16);
}

TEST_F(OfferedFiguresTest, AnUnhealthyDeviceCannotBeHad) {
  auto snapshot = snapshot_of("trn2.48xlarge");
  snapshot->host.devices[15].health.state = model::HealthState::unhealthy;
  allocations_.set_node(std::make_shared<const grant::NodeUnits>(snapshot));
  const metrics::Offered devices = of(Resource::neuron);
  EXPECT_EQ(devices.units, 16);
  EXPECT_EQ(devices.healthy, 15);
  EXPECT_EQ(devices.free, 15);
  EXPECT_EQ(devices.largest_request, 8);
}

// Healthy minus held would be 14.
TEST_F(OfferedFiguresTest, AnUnhealthyDeviceThatIsHeldTakesNothingFromWhatIsFree) {
  allocations_.set_node(node_of("trn2.48xlarge"));
  ASSERT_TRUE(allocations_.allocate(Resource::neuron, {"15"}));
  auto snapshot = snapshot_of("trn2.48xlarge");
  snapshot->host.devices[15].health.state = model::HealthState::unhealthy;
  allocations_.set_node(std::make_shared<const grant::NodeUnits>(snapshot));
  const metrics::Offered devices = of(Resource::neuron);
  EXPECT_EQ(devices.healthy, 15);
  EXPECT_EQ(devices.held, 1);
  EXPECT_EQ(devices.free, 15);
}

}  // namespace
}  // namespace neuron::plugin
