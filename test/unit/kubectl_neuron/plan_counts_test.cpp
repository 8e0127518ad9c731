// `plan`: what is not known is no number, counts that ended early are the least, and numbers are in order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "test/unit/kubectl_neuron/questions.h"
#include "test/unit/render/json_schema.h"

namespace neuron::fleet::test {
namespace {

using testing::HasSubstr;
using testing::Not;

Fleet two_nodes() {
  Fleet fleet;
  for (const char* name : {"a", "b"}) add_node(fleet, name, "trn1.32xlarge");
  return fleet;
}

nlohmann::json json_of(const Plan& plan) {
  EXPECT_EQ(neuron::test::schema_file_violation("kubectl-neuron-plan-1", plan_json(plan)), "");
  return nlohmann::json::parse(plan_json(plan));
}

TEST(Plan, WithoutNodesNoNumberIsKnown) {
  Fleet unread;
  unread.nodes_unread = "nodes are not known: nodes is forbidden";
  for (const std::string& kind : {std::string("Deployment"), std::string("DaemonSet")}) {
    const Plan none = plan(unread, manifest_of(object_of(kind, R"({"replicas":4,"template":{"spec":%s}})")), 0);
    EXPECT_EQ(exit_status(none), 2);
    const std::string text = plan_text(none);
    EXPECT_TRUE(text.starts_with("cannot tell: no node could be read\n")) << text;
    EXPECT_THAT(text, HasSubstr("\nnodes are not known: nodes is forbidden; what those take is not known\n"));
    EXPECT_THAT(text, HasSubstr(kind == "DaemonSet" ? ": it is not known how many pods fit now;"
                                                    : ": it is not known how many of 4 pods fit now;"));
    EXPECT_THAT(text, Not(HasSubstr(" 0")));
    const auto json = json_of(none);
    EXPECT_TRUE(json["placed"].is_null());
    EXPECT_TRUE(json["more"].is_null());
    EXPECT_TRUE(json["stranded"].is_null());
    EXPECT_TRUE(json["groups"][0]["placed"].is_null());
    EXPECT_TRUE(json["groups"][0]["empty_fleet"].is_null());
    EXPECT_EQ(json["asked"], kind == "DaemonSet" ? nlohmann::json() : nlohmann::json(4));
  }
  EXPECT_THAT(plan_text(plan({}, manifest_of(deployment(4)), 0)), HasSubstr("cannot tell: no node is listed\n"));
}

constexpr const char* kCard =
    R"({"containers":[{"resources":{"limits":{"aws.amazon.com/neuron":"1","acme.example/card":"1"}}}]})";

TEST(Plan, OfSomeNodesNumbersAreTheLeast) {
  Fleet fleet = two_nodes();
  fleet.nodes_unread = "nodes after the first 2 are not known: late";
  const Plan nine = plan(fleet, manifest_of(deployment(9)), 0);
  EXPECT_EQ(exit_status(nine), 2);
  EXPECT_TRUE(plan_text(nine).starts_with("cannot tell: at least 8 of 9 pods;")) << plan_text(nine);
  EXPECT_THAT(plan_text(nine), HasSubstr("\ndefault/serve: at least 8 of 9 pods fit now; on the same nodes without "
                                         "other pods at least 8\n"));
  EXPECT_EQ(json_of(nine)["placed_least"], true);
  EXPECT_EQ(json_of(nine)["more"], nullptr);
  const Plan three = plan(fleet, manifest_of(deployment(3)), 0);
  EXPECT_EQ(exit_status(three), 0);
  EXPECT_THAT(plan_text(three), HasSubstr("fits: 3 of 3 pods; at least 5 more of default/serve would fit\n"));
  EXPECT_EQ(json_of(three)["groups"][0]["placed_least"], false);
  const Plan set = plan(fleet, manifest_of(object_of("DaemonSet", R"({"template":{"spec":%s}})")), 0);
  EXPECT_EQ(exit_status(set), 2);
  EXPECT_THAT(plan_text(set), HasSubstr("cannot tell: at least 2 pods\n"));
  EXPECT_THAT(plan_text(plan(fleet, manifest_of(object_of("Pod", kCard)), 0)), Not(HasSubstr("no node has")));
}

TEST(Plan, WhatIsInDoubtIsNoZero) {
  Fleet fleet = two_nodes();
  fleet.pods_partial = true;
  const Plan hidden = plan(fleet, manifest_of(deployment(2)), 0);
  EXPECT_EQ(exit_status(hidden), 2);
  EXPECT_TRUE(plan_text(hidden).starts_with("cannot tell: not known\n\ndefault/serve: it is not known how many of 2"))
      << plan_text(hidden);
  EXPECT_TRUE(json_of(hidden)["placed"].is_null());
  // Two templates: one in doubt, of the other it is known that it does not fit.
  const Plan both = plan(
      fleet,
      manifest_of(deployment(2) + object_of("Pod", R"({"nodeName":"x","nodeSelector":{"a":"b"},"containers":[{}]})")),
      0);
  EXPECT_EQ(exit_status(both), 1);
  EXPECT_THAT(plan_text(both), HasSubstr("does not fit; it is not known how many pods do\n"));
}

// Pods that take nothing of the device they see.
Manifest watchers(Fleet& fleet, int replicas) {
  ClaimRequest request = request_of("neuron.aws.com");
  request.admin_access = true;
  add_template(fleet, "watch", {request});
  Manifest manifest;
  manifest.groups = {{pod_with_claim("w", "watch"), replicas}};
  return manifest;
}

TEST(Plan, AllCountsEndAtTheSameBound) {
  Fleet fleet;
  add_classes(fleet);
  add_node(fleet, "a", "inf2.24xlarge", Mode::claims);
  const Manifest manifest = watchers(fleet, 30);
  const Plan many = plan(fleet, manifest, 0, nullptr, 20);
  EXPECT_EQ(exit_status(many), 0);
  const std::string text = plan_text(many);
  EXPECT_THAT(text, HasSubstr("fits: 30 of 30 pods; at least 20 more of default/w would fit\n"));
  EXPECT_THAT(text, HasSubstr("30 of 30 pods fit now; on the same nodes without other pods at least 50\n"));
  EXPECT_THAT(text, HasSubstr("\n  at least 50: inf1.xlarge"));
  EXPECT_THAT(text, Not(HasSubstr("or more")));
  const auto json = json_of(many);
  EXPECT_EQ(json["placed_least"], false);
  EXPECT_EQ(json["more"], 20);
  EXPECT_EQ(json["more_least"], true);
  EXPECT_EQ(json["groups"][0]["empty_fleet_least"], true);
  EXPECT_EQ(json["types"][0]["pods_least"], true);
  const Plan exact = plan(two_nodes(), manifest_of(deployment(2)), 0, nullptr, 20);
  EXPECT_EQ(json_of(exact)["more_least"], false);
  EXPECT_EQ(json_of(exact)["groups"][0]["empty_fleet_least"], false);
}

// Wherever the time limit cuts: what fits now fits without other pods as well, and no zero is a guess.
TEST(Plan, NumbersAreInOrderHoweverLongItMayTake) {
  Fleet plain = two_nodes();
  add_pod(plain, "q", "a", {{kNeuron, 6}});
  Fleet claims;
  add_classes(claims);
  for (const char* name : {"a", "b"}) add_node(claims, name, "inf2.24xlarge", Mode::claims);
  add_holder(claims, "q", "a", {"neuron-device-0"});
  const Manifest watch = watchers(claims, 3), serve = manifest_of(deployment(5) + deployment(2));
  std::set<bool> cut;
  for (const auto& [fleet, manifest] : {std::pair(&plain, &serve), std::pair(&claims, &watch)}) {
    for (int times = 1; times < 400; times += 1 + times / 8) {
      Effort effort(std::chrono::seconds(1), [asked = 0, times]() mutable {
        return SteadyTime(std::chrono::milliseconds(1000) * asked++ / times);
      });
      const Plan answer = plan(*fleet, *manifest, 0, &effort, 10);
      cut.insert(effort.was_over());
      int now = answer.more.pods.value_or(0);
      for (const GroupPlan& own : answer.groups) {
        now += own.placed.pods.value_or(0);
        EXPECT_GE(own.empty_fleet.pods.value_or(now), now) << times << plan_text(answer);
        EXPECT_TRUE(own.placed.pods || own.placed.least) << times;
        EXPECT_FALSE(own.placed == 0 && effort.was_over() && own.placed.least) << times;
        now = 0;
      }
      EXPECT_EQ(neuron::test::schema_file_violation("kubectl-neuron-plan-1", plan_json(answer)), "");
    }
  }
  EXPECT_EQ(cut, (std::set{false, true}));
}

TEST(PlanCounts, AGatedPodIsPlacedAsIfItsGateWereGone) {
  Fleet fleet;
  add_node(fleet, "a", "trn1.32xlarge");
  const Manifest manifest = manifest_of(
      object_of("Pod", R"({"schedulingGates":[{"name":"acme/quota"}],)"
                       R"("containers":[{"name":"c","resources":{"limits":{"aws.amazon.com/neuron":"4"}}}]})"));
  const Plan answer = plan(fleet, manifest, 0);
  EXPECT_EQ(exit_status(answer), 0);
  EXPECT_THAT(answer.notes,
              testing::ElementsAre("default/o has scheduling gate acme/quota, and is counted as if that were removed"));
}

}  // namespace
}  // namespace neuron::fleet::test
