#include "plugin/device/plugin_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/fakes/fake_clock.h"

namespace neuron::plugin {
namespace {

// The endpoint has another name at each attempt; what is logged once is told by its text.
TEST(PluginServer, ADirectoryWithoutRoomFailsInTheSameWordsEachTime) {
  fakes::FakeClock clock;
  const auto version = [] { return holdings::CheckpointVersion{1}; };
  Allocations allocations(grant::GrantOptions{}, version, clock);
  AdmissionGate admissions(clock, version, [] {});
  PreStartGate pre_start(
      allocations, [](int, int) { return std::nullopt; }, [](const PreStartGate::Job&) {},
      [](SteadyTime, const PreStartGate::Job&) {}, clock);
  const auto events = EventQueue::open();
  ASSERT_TRUE(events);
  const DevicePluginService::Parts parts{allocations, admissions, pre_start, **events};
  const auto first = PluginServer::start(model::Resource::neuron, "/nowhere", "a-1.sock", parts);
  const auto second = PluginServer::start(model::Resource::neuron, "/nowhere", "a-2.sock", parts);
  ASSERT_FALSE(first);
  ASSERT_FALSE(second);
  EXPECT_EQ(first.error().message, second.error().message);
  EXPECT_THAT(first.error().message, ::testing::StartsWith("/nowhere: "));
}

}  // namespace
}  // namespace neuron::plugin
