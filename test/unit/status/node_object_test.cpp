#include "agent/status/node_object.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "test/fakes/fake_api.h"

namespace neuron::status {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;
using Json = nlohmann::json;

constexpr const char* kNode = "/api/v1/nodes/n1";
constexpr const char* kStatus = "/api/v1/nodes/n1/status";

// What kube-apiserver 1.36 shows of a node that three have written.
constexpr const char* kText =
    R"({"kind":"Node","metadata":{"name":"n1","uid":"u","labels":{"a":"b","neuron-agent/lnc":"1"},
  "managedFields":[
   {"manager":"kubelet","operation":"Update","fieldsV1":{"f:metadata":{"f:labels":{".":{},"f:a":{}}}}},
   {"manager":"neuron-agent","operation":"Apply","fieldsV1":{"f:metadata":{"f:labels":{"f:neuron-agent/lnc":{}}}}},
   {"manager":"neuron-agent","operation":"Apply","subresource":"status","fieldsV1":{"f:status":{"f:conditions":{
     "k:{\"type\":\"NeuronHealth\"}":{".":{},"f:type":{}}}}}},
   {"manager":"eks-node-monitoring-agent","operation":"Update","subresource":"status","fieldsV1":{"f:status":{
     "f:conditions":{"k:{\"type\":\"AcceleratedHardwareReady\"}":{"f:status":{}}}}}}]},
  "status":{"conditions":[{"type":"Ready","status":"True"},{"type":"NeuronHealth","status":"False",
     "reason":"NeuronHasNoError","message":"Neuron has no error","lastTransitionTime":"2026-01-01T00:00:00Z"}]}})";

TEST(SeenNode, TellsWhoOwnsWhat) {
  const auto look = parse_node(kText);
  ASSERT_TRUE(look) << look.error().message;
  EXPECT_EQ(look->uid, "u");
  EXPECT_THAT(look->own_labels, ElementsAre("neuron-agent/lnc"));
  EXPECT_THAT(look->own_conditions, ElementsAre("NeuronHealth"));
  EXPECT_THAT(look->label_owners, ElementsAre(Pair("a", "kubelet")));
  EXPECT_THAT(look->condition_owners, ElementsAre(Pair("AcceleratedHardwareReady", "eks-node-monitoring-agent")));
  EXPECT_EQ(look->conditions.at("NeuronHealth").last_transition, "2026-01-01T00:00:00Z");
  EXPECT_EQ(look->labels.at("neuron-agent/lnc"), "1");
}

TEST(SeenNode, GarbageIsAnErrorOrNothing) {
  for (const char* text : {"", "[]", "{}", "\"x\"", R"({"metadata":[]})", R"({"metadata":{"uid":7}})"}) {
    const auto look = parse_node(text);
    ASSERT_FALSE(look) << text;
    EXPECT_EQ(look.error().code, ErrorCode::data_corrupt) << text;
  }
  for (const char* text :
       {R"({"metadata":{"uid":"u","labels":[1],"managedFields":{"x":1}},"status":{"conditions":{"a":1}}})",
        R"({"metadata":{"uid":"u","labels":{"a":1},"managedFields":[1,{"fieldsV1":[]},{"fieldsV1":{"f:status":[]}}]}})",
        R"({"metadata":{"uid":"u","managedFields":[{"fieldsV1":{"f:status":{"f:conditions":{"k:{":{},"k:[]":{}}}}}]},
            "status":{"conditions":[1,{"type":3}]}})"}) {
    const auto look = parse_node(text);
    ASSERT_TRUE(look) << text;
    EXPECT_THAT(look->labels, IsEmpty());
    EXPECT_THAT(look->conditions, IsEmpty());
    EXPECT_THAT(look->condition_owners, IsEmpty());
  }
}

// The server in memory and ours agree about who owns what; so do it and the real one
// (test/cluster/node_status_test.go).
class NodeApplyTest : public ::testing::Test {
 protected:
  NodeApplyTest() {
    api_.put(kNode, {{"metadata", {{"uid", "u"}, {"labels", {{"a", "b"}}}}},
                     {"status", {{"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}});
  }
  SeenNode seen() { return *read_node(api_, "n1"); }
  TimedCondition health(const std::string& status) {
    return {{"NeuronHealth", status, "R", "m"}, "2026-01-01T00:00:00Z"};
  }

  fakes::FakeApi api_;
  const NodeRef node_{"n1", "u"};
};

TEST_F(NodeApplyTest, WhatIsNotSaidAnyMoreGoes) {
  ASSERT_TRUE(apply_labels(api_, node_, {{"neuron-agent/lnc", "1"}, {"neuron-agent/efas", "8"}}, Force::no));
  ASSERT_TRUE(apply_conditions(api_, node_, {health("True")}, {}, {}));
  ASSERT_TRUE(apply_labels(api_, node_, {{"neuron-agent/lnc", "2"}}, Force::no));
  EXPECT_THAT(seen().labels, ElementsAre(Pair("a", "b"), Pair("neuron-agent/lnc", "2")));
  EXPECT_TRUE(seen().conditions.contains("NeuronHealth"));
  ASSERT_TRUE(apply_conditions(api_, node_, {}, {}, {}));
  EXPECT_FALSE(seen().conditions.contains("NeuronHealth"));
  EXPECT_TRUE(seen().conditions.contains("Ready"));
}

TEST_F(NodeApplyTest, AnotherNodeOfThatNameIsNotTouchedAndNoneIsMade) {
  EXPECT_EQ(apply_labels(api_, {"n1", "v"}, {{"neuron-agent/lnc", "1"}}, Force::yes).error().code,
            ErrorCode::failed_precondition);
  EXPECT_EQ(apply_labels(api_, {"n2", "u"}, {{"neuron-agent/lnc", "1"}}, Force::yes).error().code,
            ErrorCode::failed_precondition);
  EXPECT_THAT(seen().own_labels, IsEmpty());
}

TEST_F(NodeApplyTest, ConflictsAreToldUnlessForced) {
  api_.write_as("kubectl-label", kNode, {{"metadata", {{"labels", {{"neuron-agent/lnc", "7"}}}}}});
  const auto refused = apply_labels(api_, node_, {{"neuron-agent/lnc", "1"}}, Force::no);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("kubectl-label"));
  ASSERT_TRUE(apply_labels(api_, node_, {{"neuron-agent/lnc", "1"}}, Force::yes));
  EXPECT_THAT(seen().label_owners, IsEmpty());
}

// Another who writes the same condition later has it. An entry goes with whoever made it, and all that others have in
// it (seen of kube-apiserver 1.36); so what is ours of it is held.
TEST_F(NodeApplyTest, GivingUpLeavesTheOthers) {
  ASSERT_TRUE(apply_conditions(api_, node_, {health("False")}, {}, {}));
  Json theirs = api_.at(kNode)["status"]["conditions"];
  theirs[1].update({{"status", "True"}, {"reason", "X"}});
  api_.write_as("npd", kStatus, {{"status", {{"conditions", theirs}}}});
  EXPECT_FALSE(apply_conditions(api_, node_, {health("False")}, {}, {}));
  const SeenNode look = seen();
  EXPECT_EQ(look.condition_owners.at("NeuronHealth"), "npd");
  ASSERT_EQ(look.held.size(), 1U);
  EXPECT_THAT(look.held[0].fields,
              UnorderedElementsAre(Pair("lastHeartbeatTime", "1970-01-01T00:00:00Z"),
                                   Pair("lastTransitionTime", "2026-01-01T00:00:00Z"), Pair("message", "m")));
  ASSERT_TRUE(apply_conditions(api_, node_, {}, look.held, {}));
  EXPECT_EQ(api_.at(kNode)["status"]["conditions"], theirs);
  ASSERT_TRUE(withdraw(api_, "n1"));
  EXPECT_EQ(api_.at(kNode)["status"]["conditions"], theirs);
  ASSERT_TRUE(apply_conditions(api_, node_, {}, {}, {}));
  EXPECT_FALSE(seen().conditions.contains("NeuronHealth"));
}

TEST_F(NodeApplyTest, WithdrawsAndDoesNothingWhereThereIsNothing) {
  ASSERT_TRUE(withdraw(api_, "n1"));
  ASSERT_TRUE(withdraw(api_, "n2"));
  EXPECT_THAT(api_.writes(), IsEmpty());
  ASSERT_TRUE(apply_labels(api_, node_, {{"neuron-agent/lnc", "1"}}, Force::no));
  ASSERT_TRUE(apply_conditions(api_, node_, {health("True")}, {}, {}));
  ASSERT_TRUE(withdraw(api_, "n1"));
  EXPECT_THAT(seen().labels, ElementsAre(Pair("a", "b")));
  EXPECT_THAT(seen().own_labels, IsEmpty());
  EXPECT_THAT(seen().own_conditions, IsEmpty());
  EXPECT_EQ(seen().conditions.size(), 1U);
  api_.fail_next(1, 403);
  EXPECT_EQ(withdraw(api_, "n1").error().code, ErrorCode::permission_denied);
}

}  // namespace
}  // namespace neuron::status
