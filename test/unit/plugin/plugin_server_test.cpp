#include "plugin/device/plugin_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/fakes/fake_clock.h"

namespace neuron::plugin {
namespace {

// The endpoint has another name at each attempt; what is logged once is told by its text.
TEST(PluginServer, ADirectoryWithoutRoomFailsInTheSameWordsEachTime) {
  fakes::FakeClock clock;
  AllocationDesk desk(
      ResponseOptions{}, [] { return holdings::AdmissionMark{1}; }, clock);
  DevicePluginService::Hooks hooks;  // those that the end of a server calls
  hooks.cancel_pre_start = hooks.release_allocate = [](model::Resource) {};
  const auto first = PluginServer::start(model::Resource::neuron, "/nowhere", "a-1.sock", desk, hooks);
  const auto second = PluginServer::start(model::Resource::neuron, "/nowhere", "a-2.sock", desk, hooks);
  ASSERT_FALSE(first);
  ASSERT_FALSE(second);
  EXPECT_EQ(first.error().message, second.error().message);
  EXPECT_THAT(first.error().message, ::testing::StartsWith("/nowhere: "));
}

}  // namespace
}  // namespace neuron::plugin
