// How long a question may take, and that what is said of other nodes was tried there.
#include "tools/kubectl-neuron/effort.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "test/unit/kubectl_neuron/questions.h"
#include "test/unit/render/json_schema.h"
#include "tools/kubectl-neuron/plan.h"
#include "tools/kubectl-neuron/why.h"

namespace neuron::fleet::test {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

// A millisecond later each time it is looked at.
class Clock {
 public:
  Effort effort(int seconds) {
    return Effort(std::chrono::seconds(seconds), [this] { return SteadyTime(std::chrono::milliseconds(++asked_)); });
  }
  [[nodiscard]] int asked() const { return asked_; }

 private:
  int asked_ = 0;
};

// No two devices of a node are of different groups of 16: each choice of the first request is tried in vain.
Pod hard_pod(Fleet& fleet) {
  ClaimRequest second = request_of("neuron.aws.com", 2);
  second.name = "s";
  add_template(fleet, "hard", {request_of("neuron.aws.com", 4), second},
               {{{"s"}, "", "resource.aws.com/devicegroup16_id"}});
  return pod_with_claim("p", "hard");
}

Fleet claim_nodes(int nodes) {
  Fleet fleet;
  add_classes(fleet);
  for (int i = 0; i < nodes; ++i) add_node(fleet, "n" + std::to_string(10 + i), "trn1.32xlarge", Mode::claims);
  return fleet;
}

TEST(Effort, TheSearchEndsAndSaysSo) {
  Fleet fleet = claim_nodes(20);
  const Pod pod = hard_pod(fleet);
  Clock clock;
  Effort effort = clock.effort(1);
  const Why answer = why(fleet, pod, &effort);
  EXPECT_TRUE(effort.was_over());
  EXPECT_LT(clock.asked(), 1100) << "what follows is not searched through";
  EXPECT_THAT(answer.notes, Contains("the search ended after 1 s; more or smaller changes may exist"));
  EXPECT_THAT(why_text(answer), Not(HasSubstr("none of these would let it in")));
  EXPECT_THAT(why_text(answer), HasSubstr("cannot tell: too many combinations"));
  EXPECT_EQ(exit_status(answer), 2);
}

TEST(Effort, APlanThatIsCutShortGivesTheLeast) {
  Fleet fleet = claim_nodes(20);
  Manifest manifest;
  manifest.groups = {{hard_pod(fleet), 30}};
  Clock clock;
  Effort effort = clock.effort(1);
  const Plan hard = plan(fleet, manifest, 0, &effort);
  EXPECT_LT(clock.asked(), 1300);
  EXPECT_EQ(exit_status(hard), 2);
  EXPECT_THAT(plan_text(hard), HasSubstr("the search ended after 1 s: the numbers are the least, and more may fit"));
  manifest.groups = {{pod_of("q", {{kNeuron, 1}}), 2}};
  Effort long_enough = clock.effort(100'000);
  EXPECT_TRUE(plan(fleet, manifest, 0, &long_enough).notes.empty());
}

TEST(Effort, ARequestThatCannotBeMetAloneIsNotCombined) {
  Fleet fleet = claim_nodes(1);
  ClaimRequest many = request_of("efa.neuron.aws.com", 9);
  many.name = "e";
  add_template(fleet, "t", {request_of("neuron.aws.com", 8), many});
  Clock clock;
  Effort effort = clock.effort(100);
  const Verdict verdict = fit(fleet, pod_with_claim("p", "t"), node_states(fleet).front(), &effort);
  EXPECT_EQ(kinds_of(verdict), std::vector{Obstacle::Kind::too_few_devices});
  EXPECT_LT(clock.asked(), 300) << "8 of 16 are 12870 combinations";
}

// ---- A limit that has passed: nothing is tried, and nothing is claimed

// It has ended when it is asked first.
Effort spent_effort() {
  return Effort(std::chrono::seconds(1), [asked = 0]() mutable { return SteadyTime(std::chrono::seconds(asked++)); });
}

TEST(Effort, NoNodeIsTriedAfterTheLimit) {
  Fleet fleet = claim_nodes(3);
  add_template(fleet, "t", {request_of("neuron.aws.com", 4)});
  for (const Pod& pod : {pod_with_claim("p", "t"), pod_of("q", {{kNeuron, 99}})}) {
    Effort effort = spent_effort();
    for (const Verdict& verdict : fit_all(fleet, pod, node_states(fleet), &effort)) {
      EXPECT_EQ(verdict.answer, Answer::unknown);
      EXPECT_EQ(kinds_of(verdict), std::vector{Obstacle::Kind::not_tried});
    }
    EXPECT_FALSE(free_by_claim(fleet, pod_with_claim("p", "t"), node_states(fleet).front(), &effort));
  }
}

TEST(Effort, APlanSaysOfNothingThatItWasTriedAfterTheLimit) {
  Fleet fleet = claim_nodes(3);
  fleet.nodes.push_back(node_of("plugin", "trn1.32xlarge"));
  add_template(fleet, "t", {request_of("neuron.aws.com", 4)});
  Manifest manifest;
  manifest.groups = {{pod_with_claim("p", "t"), 2}, {pod_of("q", {{kNeuron, 99}}), 3}, {pod_of("r", {}), 4}};
  manifest.groups.push_back({pod_of("each", {{kNeuron, 1}}), 1, true});
  Effort effort = spent_effort();
  const Plan late = plan(fleet, manifest, 0, &effort);
  EXPECT_EQ(exit_status(late), 2);
  const auto json = nlohmann::json::parse(plan_json(late));
  for (const char* number : {"placed", "more", "stranded"}) EXPECT_TRUE(json[number].is_null()) << number;
  for (const auto& group : json["groups"]) {
    EXPECT_TRUE(group["placed"].is_null()) << group;
    EXPECT_TRUE(group["obstacles"].empty()) << group;
    EXPECT_GT(group["asked"], 0) << group;
  }
  EXPECT_TRUE(json["groups"][0]["empty_fleet"].is_null());
  EXPECT_FALSE(json["types"].empty());
  for (const auto& type : json["types"]) EXPECT_TRUE(type["pods"].is_null()) << type;
  EXPECT_EQ(neuron::test::schema_file_violation("kubectl-neuron-plan-1", plan_json(late)), "");
  const std::string text = plan_text(late);
  EXPECT_TRUE(
      text.starts_with("cannot tell: not tried: the time limit was reached\n\ndefault/p: it is not known how "
                       "many of 2 pods fit now: the time limit was reached; on the same nodes without other "
                       "pods not tried: the time limit was reached\n"))
      << text;
  EXPECT_THAT(text, HasSubstr("free, and of no use to the next pod\n  not tried"));
  EXPECT_THAT(text, HasSubstr("  not tried: the time limit was reached: inf1.xlarge"));
  EXPECT_THAT(text, Not(HasSubstr(" 0")));
  EXPECT_THAT(text, Not(HasSubstr("none:")));
}

TEST(Effort, WhyClaimsNothingAfterTheLimit) {
  Fleet fleet = claim_nodes(3);
  add_template(fleet, "t", {request_of("neuron.aws.com", 4)});
  Effort effort = spent_effort();
  const Why late = why(fleet, pod_with_claim("p", "t"), &effort);
  EXPECT_EQ(exit_status(late), 2);
  EXPECT_TRUE(late.changes.empty());
  EXPECT_THAT(why_text(late), HasSubstr("not tried: the time limit was reached before"));
  EXPECT_EQ(neuron::test::schema_file_violation("kubectl-neuron-why-1", why_json(late)), "");
}

// Each alternative of each request would be tried with each of the others: none takes a step of a device.
TEST(Effort, AlternativesAreStepsOfTheSearch) {
  Fleet fleet = claim_nodes(1);
  std::vector<ClaimRequest> requests;
  for (int i = 0; i < 12; ++i) {
    ClaimRequest request;
    request.name = "r" + std::to_string(i);
    for (int k = 0; k < 8; ++k) {
      ClaimRequest one = request_of("neuron.aws.com");
      one.name = "a" + std::to_string(k);
      one.all = true;
      const int device = i == 11 ? 0 : i;
      one.selectors = {{"device.attributes['neuron.aws.com'].deviceId == " + std::to_string(device)}};
      request.first_available.push_back(one);
    }
    requests.push_back(request);
  }
  add_template(fleet, "t", requests);
  const Verdict verdict = fit(fleet, pod_with_claim("p", "t"), node_states(fleet).front());
  EXPECT_EQ(verdict.answer, Answer::unknown);
  Clock clock;
  Effort effort = clock.effort(10);
  EXPECT_EQ(fit(fleet, pod_with_claim("p", "t"), node_states(fleet).front(), &effort).answer, Answer::unknown);
  EXPECT_LE(clock.asked(), 10'001);
}

// Expressions of a claim are many before anything is chosen.
TEST(Effort, ExpressionsAreNotEvaluatedAfterTheLimit) {
  Fleet fleet = claim_nodes(1);
  ClaimRequest many = request_of("neuron.aws.com", 4);
  many.selectors.assign(1000, {"device.driver == 'neuron.aws.com'"});
  add_template(fleet, "t", {many});
  Clock clock;
  Effort effort = clock.effort(1);
  const Verdict verdict = fit(fleet, pod_with_claim("p", "t"), node_states(fleet).front(), &effort);
  EXPECT_EQ(kinds_of(verdict), std::vector{Obstacle::Kind::search});
  EXPECT_EQ(clock.asked(), 1001);
}

TEST(Effort, OtherNodesAreCountedWhereItWasProved) {
  Fleet fleet;
  for (const char* name : {"a", "b", "c", "d"}) add_node(fleet, name, "trn2.48xlarge");
  for (const std::size_t unknown : {0U, 2U}) fleet.nodes[unknown].instance_type.clear();  // its LNC cannot be changed
  const Pod pod = pod_of("p", {{kNeuronCore, 128}});
  const std::vector<NodeState> states = node_states(fleet);
  const std::vector<Verdict> verdicts = fit_all(fleet, pod, states);
  ASSERT_EQ(grouped(states, verdicts).size(), 1U) << "they are alike now";
  std::vector<std::string> sentences;
  for (const Change& one : changes_for(fleet, pod, states, verdicts).found) sentences.push_back(words_of(one));
  EXPECT_THAT(sentences, Contains("LNC 1 on b or 1 more like it: it then fits there"));
  EXPECT_THAT(sentences, Contains(HasSubstr("at most 64 aws.amazon.com/neuroncore: it then fits on a or on one of 3")));
}

}  // namespace
}  // namespace neuron::fleet::test
