#include "plugin/dra/serve/node_board.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/grant/nodes.h"

namespace neuron::plugin::dra {
namespace {

struct HealthSink final : ListSink<HealthList> {
  void publish(HealthListPtr list) override {
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
  HeldNumbering numbering;
  HealthHub health;
  std::shared_ptr<HealthSink> sink = std::make_shared<HealthSink>();
  NodeBoard board{{{}, "pool-1"}, [this](Pool pool) { pools.push_back(std::move(pool)); }, health};
  NodeBoardTest() {
    health.add(sink);
    connect(board);
  }
  void connect(NodeBoard& any) {
    any.set_held({[this] { return held; }, [this] { return numbering; }});
  }
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

grant::NodeUnitsPtr trn2_with_lnc(int lnc) {
  auto snapshot = snapshot_of("trn2.48xlarge");
  snapshot->host.lnc = {lnc, model::Origin::live};
  return std::make_shared<const grant::NodeUnits>(std::move(snapshot));
}

// Of the node as all see it, and of the newest pool.
std::pair<std::size_t, std::int64_t> numbers_of(const NodeBoard& board, const std::vector<Pool>& pools) {
  return {board.node()->units(model::Resource::neuroncore).size(),
          std::get<std::int64_t>(pools.back().devices.at(0).attributes.at("lnc"))};
}

TEST_F(NodeBoardTest, CoresKeepTheirNumbersWhileClaimsHoldDevices) {
  board.set_node(trn2_with_lnc(2));
  held = {"neuron-device-3-core-1"};
  numbering = {true, 2};
  board.held_changed();
  board.set_node(trn2_with_lnc(1));
  EXPECT_EQ(numbers_of(board, pools), std::pair(std::size_t{64}, std::int64_t{2}));
  EXPECT_EQ(board.numbered(trn2_with_lnc(1))->units(model::Resource::neuroncore).size(), 64U);
  held = {"efa-rdmap16s25"};  // whoever holds an interface alone keeps nobody
  numbering = {};
  board.held_changed();
  EXPECT_EQ(numbers_of(board, pools), std::pair(std::size_t{128}, std::int64_t{1}));
}

TEST_F(NodeBoardTest, AnotherScanIsReadWithTheSameNumbers) {
  EXPECT_EQ(board.numbered(model::SnapshotPtr()), nullptr);
  board.set_node(trn2_with_lnc(2));
  auto later = snapshot_of("trn2.48xlarge");
  later->host.lnc = {1, model::Origin::live};
  later->number = 7;
  const model::SnapshotPtr scanned = later;
  held = {"neuron-device-3-core-1"};
  numbering = {true, 2};
  board.held_changed();
  EXPECT_EQ(board.numbered(scanned)->host.lnc->value, 2);
  EXPECT_EQ(board.numbered(scanned)->number, 7U);
  held = {};
  numbering = {};
  board.set_node(trn2_with_lnc(1));
  EXPECT_EQ(board.numbered(scanned), scanned) << "nothing differs";
}

// After a restart the record tells; a claim of an older version does not, and then the node as it is found counts.
TEST_F(NodeBoardTest, AfterARestartTheNumbersAreThoseOfTheRecord) {
  held = {"neuron-device-3"};
  numbering = {true, 2};
  board.set_node(trn2_with_lnc(1));
  EXPECT_EQ(board.node()->units(model::Resource::neuroncore).size(), 64U);
  numbering = {true, {}};
  board.set_node(trn2_with_lnc(1));
  EXPECT_EQ(board.node()->units(model::Resource::neuroncore).size(), 64U) << "as so far";
  NodeBoard another{{{}, "pool-1"}, [](const Pool&) {}, health};
  connect(another);
  another.set_node(trn2_with_lnc(1));
  EXPECT_EQ(another.node()->units(model::Resource::neuroncore).size(), 128U);
}

TEST_F(NodeBoardTest, ANodeWithoutHardwareIsEmptyOnceItWasRead) {
  EXPECT_FALSE(board.is_empty()) << "nobody has looked";
  board.set_node(std::make_shared<const grant::NodeUnits>(std::make_shared<model::Snapshot>()));
  EXPECT_TRUE(board.is_empty());
  EXPECT_EQ(pools.size(), 1U);
}

}  // namespace
}  // namespace neuron::plugin::dra
