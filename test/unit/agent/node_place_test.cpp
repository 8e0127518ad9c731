#include "agent/kube/api_client.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "agent/status/node_object.h"
#include "plugin/daemon/metrics_sources.h"
#include "test/fakes/fake_api.h"

namespace neuron::plugin {
namespace {

constexpr const char* kNode = "/api/v1/nodes/n1";
constexpr const char* kZone = "topology.kubernetes.io/zone";
constexpr const char* kRegion = "topology.kubernetes.io/region";

class NodePlaceTest : public ::testing::Test {
 protected:
  void put(const std::string& path, const nlohmann::json& labels) {
    api_.put(path, {{"metadata", {{"uid", "u"}, {"labels", labels}}}});
  }
  [[nodiscard]] std::string place() const { return placed_.place().zone + " " + placed_.place().region; }

  fakes::FakeApi api_;
  kube::ObservedApi placed_{api_, "n1"};
};

TEST_F(NodePlaceTest, WhoeverReadsTheNodeTellsWhereItIs) {
  put(kNode, {{kZone, "us-east-1a"}, {kRegion, "us-east-1"}});
  EXPECT_EQ(place(), " ");
  ASSERT_TRUE(status::read_node(placed_, "n1"));
  EXPECT_EQ(place(), "us-east-1a us-east-1");
  const metrics::Instance instance = instance_of({}, "n1", placed_.place());
  EXPECT_EQ(instance.availability_zone, "us-east-1a");
  EXPECT_EQ(instance.region, "us-east-1");
  EXPECT_EQ(api_.calls().size(), 1U) << "nothing is asked for it alone";
}

TEST_F(NodePlaceTest, AnotherNodeIsElsewhere) {
  put("/api/v1/nodes/n2", {{kZone, "us-east-1b"}, {kRegion, "us-east-1"}});
  ASSERT_TRUE(status::read_node(placed_, "n2"));
  EXPECT_EQ(place(), " ");
}

TEST_F(NodePlaceTest, WhatTheNodeDoesNotHaveIsNotKnown) {
  put(kNode, {{kRegion, "us-east-1"}});
  ASSERT_TRUE(status::read_node(placed_, "n1"));
  EXPECT_EQ(place(), " us-east-1");
  put(kNode, {{kZone, std::string(64, 'x')}, {kRegion, 7}});
  ASSERT_TRUE(status::read_node(placed_, "n1"));
  EXPECT_EQ(place(), " ");
}

TEST_F(NodePlaceTest, AnAnswerThatIsNoneChangesNothing) {
  put(kNode, {{kZone, "us-east-1a"}, {kRegion, "us-east-1"}});
  ASSERT_TRUE(status::read_node(placed_, "n1"));
  api_.fail_next(1, 503);
  EXPECT_FALSE(status::read_node(placed_, "n1"));
  EXPECT_EQ(place(), "us-east-1a us-east-1");
}

}  // namespace
}  // namespace neuron::plugin
