#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "plugin/dra/serve/node_board.h"
#include "test/unit/grant/nodes.h"

namespace neuron::plugin::dra {
namespace {

using State = DeviceHealth::State;
using testing::HasSubstr;

PoolDevice named(const std::string& name, std::vector<int> devices = {}, DeviceKind kind = DeviceKind::device) {
  PoolDevice device;
  device.name = name;
  device.kind = kind;
  device.devices = std::move(devices);
  return device;
}

DeviceHealth health_of(const Pool& pool, const model::SnapshotPtr& snapshot, const std::string& name) {
  const HealthList list = make_health_list(pool, grant::NodeUnits(snapshot), "node-1");
  const auto found =
      std::find_if(list.devices.begin(), list.devices.end(), [&](const auto& one) { return one.device == name; });
  return found == list.devices.end() ? DeviceHealth{"absent", State::unknown, ""} : *found;
}

struct HealthListTest : testing::Test {
  std::shared_ptr<model::Snapshot> snapshot = snapshot_of("trn1.32xlarge");
  Pool pool{{},
            Shares::off,
            {named("neuron-device-3", {3}), named("neuron-device-3-core-1", {3}, DeviceKind::core),
             named("neuron-device-3-core-0", {3}, DeviceKind::core),
             named("neuron-group-0-3", {0, 1, 2, 3}, DeviceKind::group),
             named("neuron-group-4-7", {4, 5, 6, 7}, DeviceKind::group),
             named("neuron-node", grant::NodeUnits(snapshot).units(model::Resource::neuron), DeviceKind::node),
             named("efa-" + snapshot->host.efas.at(0).name, {}, DeviceKind::efa), named("neuron-device-99", {99}),
             named("what")}};
  void set(model::HealthState state) {
    snapshot->host.devices.at(3).health = {state, "some_reason", "3 errors were seen", "replace the instance"};
  }
};

TEST_F(HealthListTest, HoldsEveryDeviceOfThePoolInItsOrder) {
  const HealthList list = make_health_list(pool, grant::NodeUnits(snapshot), "node-1");
  EXPECT_EQ(list.pool, "node-1");
  ASSERT_EQ(list.devices.size(), pool.devices.size());
  for (std::size_t i = 0; i < pool.devices.size(); ++i) EXPECT_EQ(list.devices[i].device, pool.devices[i].name);
  EXPECT_EQ(list.devices[0], (DeviceHealth{"neuron-device-3", State::healthy, ""}));
}

TEST_F(HealthListTest, AGroupAndTheNodeAreAsIllAsTheirWorstDevice) {
  set(model::HealthState::unhealthy);
  for (const char* name : {"neuron-device-3", "neuron-group-0-3", "neuron-node"}) {
    EXPECT_EQ(health_of(pool, snapshot, name),
              (DeviceHealth{name, State::unhealthy, "3 errors were seen; replace the instance"}));
  }
  EXPECT_EQ(health_of(pool, snapshot, "neuron-group-4-7").state, State::healthy);
}

TEST_F(HealthListTest, AGroupThatWrapsHasTheHealthOfItsMembers) {
  set(model::HealthState::unhealthy);
  pool.devices = {named("neuron-group-15-0", {15, 0}, DeviceKind::group),
                  named("neuron-group-2-5", {2, 3, 4, 5}, DeviceKind::group)};
  EXPECT_EQ(health_of(pool, snapshot, "neuron-group-15-0").state, State::healthy);
  EXPECT_EQ(health_of(pool, snapshot, "neuron-group-2-5").state, State::unhealthy);
}

TEST_F(HealthListTest, OneCoreIsIllAndItsSiblingIsNot) {
  snapshot->host.devices.at(3).core_health = {{model::HealthState::unhealthy, "hw_error", "core 0 failed", ""},
                                              {model::HealthState::healthy, "", "", ""}};
  EXPECT_EQ(health_of(pool, snapshot, "neuron-device-3-core-0").state, State::unhealthy);
  EXPECT_EQ(health_of(pool, snapshot, "neuron-device-3-core-0").message, "core 0 failed");
  EXPECT_EQ(health_of(pool, snapshot, "neuron-device-3-core-1").state, State::healthy);
}

TEST_F(HealthListTest, DegradedIsHealthyWithWordsAndUnknownIsUnknown) {
  set(model::HealthState::degraded);
  EXPECT_EQ(health_of(pool, snapshot, "neuron-device-3").state, State::healthy);
  EXPECT_THAT(health_of(pool, snapshot, "neuron-device-3").message, HasSubstr("3 errors"));
  set(model::HealthState::unknown);
  EXPECT_EQ(health_of(pool, snapshot, "neuron-device-3").state, State::unknown);
}

TEST_F(HealthListTest, WhatIsOnAListThatWasNeverReadIsUnknown) {
  snapshot->host.devices.clear();
  EXPECT_EQ(health_of(pool, snapshot, "neuron-device-3").state, State::unhealthy);
  snapshot->host.unread_lists = {{model::ScanPart::Kind::devices}};
  for (const char* name : {"neuron-device-3", "neuron-device-3-core-1", "neuron-group-0-3"}) {
    EXPECT_EQ(health_of(pool, snapshot, name).state, State::unknown) << name;
    EXPECT_THAT(health_of(pool, snapshot, name).message, HasSubstr("cannot be read")) << name;
  }
}

TEST_F(HealthListTest, WhatIsNotThereAnyMoreIsUnhealthy) {
  EXPECT_EQ(health_of(pool, snapshot, "neuron-device-99").state, State::unhealthy);
  EXPECT_THAT(health_of(pool, snapshot, "neuron-device-99").message, HasSubstr("no longer on this node"));
  EXPECT_EQ(health_of(pool, snapshot, "what").state, State::unhealthy);
}

TEST_F(HealthListTest, MessagesAreBounded) {
  snapshot->host.devices.at(3).health = {model::HealthState::unhealthy, "r", std::string(5000, 'x'), "act"};
  EXPECT_EQ(health_of(pool, snapshot, "neuron-device-3").message.size(), kMostMessage);
}

}  // namespace
}  // namespace neuron::plugin::dra
