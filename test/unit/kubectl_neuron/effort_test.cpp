// How long a question may take, and that what is said of other nodes was tried there.
#include "tools/kubectl-neuron/effort.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/kubectl_neuron/questions.h"
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
  EXPECT_THAT(answer.notes, Contains("the search ended after 1 s; more changes may exist"));
  EXPECT_THAT(why_text(answer), Not(HasSubstr("no single change")));
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
  Effort long_enough = clock.effort(100);
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
  EXPECT_EQ(clock.asked(), 1) << "8 of 16 are 12870 combinations";
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
  EXPECT_THAT(sentences, Contains("LNC 1 on b (or one of 1 more like it)"));
  EXPECT_THAT(sentences, Contains(HasSubstr("at most 64 aws.amazon.com/neuroncore: it then fits on a (or one of 3")));
}

}  // namespace
}  // namespace neuron::fleet::test
