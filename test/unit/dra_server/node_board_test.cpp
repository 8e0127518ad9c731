#include "plugin/dra/node_board.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/grant/nodes.h"

namespace neuron::plugin::dra {
namespace {

struct HealthSink final : ListSink<HealthList> {
  void offer(HealthListPtr list) override {
    newest = std::move(list);
    ++offers;
  }
  void stop() override {}
  HealthListPtr newest;
  int offers = 0;
};

struct NodeBoardTest : testing::Test {
  std::vector<std::string> held;
  std::vector<Pool> pools;
  HealthHub health;
  std::shared_ptr<HealthSink> sink = std::make_shared<HealthSink>();
  NodeBoard board{{{}, "pool-1"},
                  {[this] { return held; }, [this](Pool pool) { pools.push_back(std::move(pool)); }, health}};
  NodeBoardTest() { health.add(sink); }
};

TEST_F(NodeBoardTest, ANodeIsPublishedAndItsHealthTold) {
  EXPECT_EQ(board.node(), nullptr);
  board.held_changed();
  EXPECT_TRUE(pools.empty()) << "nothing before the first scan: it would take everything away";
  board.set_node(node_of("trn1.2xlarge"));
  ASSERT_EQ(pools.size(), 1U);
  ASSERT_TRUE(sink->newest);
  EXPECT_EQ(sink->newest->pool, "pool-1");
  EXPECT_EQ(sink->newest->devices.size(), pools[0].devices.size());
  EXPECT_FALSE(board.is_empty());
}

TEST_F(NodeBoardTest, HealthThatStaysIsToldOnce) {
  board.set_node(node_of("trn1.2xlarge"));
  board.set_node(node_of("trn1.2xlarge"));
  EXPECT_EQ(sink->offers, 1);
  auto ill = snapshot_of("trn1.2xlarge");
  ill->host.devices.at(0).health = {model::HealthState::unhealthy, "hw_error", "it failed", ""};
  board.set_node(std::make_shared<const grant::NodeUnits>(ill));
  EXPECT_EQ(sink->offers, 2);
}

TEST_F(NodeBoardTest, WhatIsHeldIsPublishedAnewOnlyWhenItChanges) {
  board.set_node(node_of("trn1.2xlarge"));
  board.held_changed();
  EXPECT_EQ(pools.size(), 1U);
  held = {"neuron-device-0"};
  board.held_changed();
  ASSERT_EQ(pools.size(), 2U);
  EXPECT_NE(pools[0], pools[1]);
}

TEST_F(NodeBoardTest, ANodeWithoutHardwareIsEmptyOnceItWasRead) {
  EXPECT_FALSE(board.is_empty()) << "nobody has looked";
  board.set_node(std::make_shared<const grant::NodeUnits>(std::make_shared<model::Snapshot>()));
  EXPECT_TRUE(board.is_empty());
  EXPECT_EQ(pools.size(), 1U);
}

}  // namespace
}  // namespace neuron::plugin::dra
