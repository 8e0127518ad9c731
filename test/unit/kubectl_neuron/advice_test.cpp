// What `why` makes of reasons and taints that are not about Neuron hardware.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/kubectl_neuron/questions.h"
#include "tools/kubectl-neuron/counts.h"
#include "tools/kubectl-neuron/plan.h"
#include "tools/kubectl-neuron/why.h"

namespace neuron::fleet::test {
namespace {

using testing::HasSubstr;
using testing::Not;

Explanation only(const std::string& reason) {
  const auto parts = explain_scheduler("0/1 nodes are available: 1 " + reason + ".");
  EXPECT_EQ(parts.size(), 1U) << reason;
  return parts.empty() ? Explanation{} : parts.front();
}

TEST(Advice, ReasonsOfOthersAreNotTakenForOurs) {
  EXPECT_FALSE(only("node(s) had volume node affinity conflict").of_hardware);
  EXPECT_TRUE(only("node(s) didn't match Pod's node affinity/selector").of_hardware);
  for (const char* other : {"aws.amazon.com/neurons", "aws.amazon.com/neuroncores", "vpc.amazonaws.com/efas"})
    EXPECT_FALSE(only(std::string("Insufficient ") + other).of_hardware) << other;
  for (const char* own : {kNeuron, kNeuronDevice, kNeuronCore, kEfa})
    EXPECT_TRUE(only(std::string("Insufficient ") + own).of_hardware) << own;
  EXPECT_TRUE(only(std::string("Insufficient ") + kNeuron + ". still not schedulable, preemption: 0/1").of_hardware);
}

TEST(Advice, TaintsOfNodesThatAreUnwellOrLeaveAreNotToBeTolerated) {
  for (const char* key :
       {"node.kubernetes.io/disk-pressure", "ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted"}) {
    EXPECT_THAT(only(std::string("node(s) had untolerated taint {") + key + ": }").advice,
                Not(HasSubstr("tolerate it")));
    Fleet fleet;
    add_node(fleet, "a", "trn1.32xlarge");
    fleet.nodes[0].taints = {{key, "", "NoSchedule"}};
    const std::vector<NodeState> states = node_states(fleet);
    const Pod pod = pod_of("p", {{kNeuron, 4}});
    for (const Change& change : changes_for(fleet, pod, states, fit_all(fleet, pod, states)))
      EXPECT_NE(change.kind, Change::Kind::tolerate) << key;
  }
  EXPECT_EQ(only("node(s) had untolerated taint {team: red}").advice, "tolerate it");
}

TEST(Advice, WhatPodsHoldByTheOtherNameIsNotUnhealthy) {
  Fleet fleet;
  add_node(fleet, "a", "trn1.32xlarge");
  add_pod(fleet, "q", "a", {{kNeuron, 4}});
  fleet.nodes[0].allocatable[kNeuronCore] = 24;
  NodeCounts counts = count_node(fleet.nodes[0], asked_by_node(fleet));
  EXPECT_EQ(*counts.cores, (Units{32, 8, 0}));
  EXPECT_EQ(*counts.devices, (Units{16, 4, 0}));
  fleet.nodes[0].allocatable[kNeuronCore] = 22;
  fleet.nodes[0].allocatable[kNeuron] = 15;
  counts = count_node(fleet.nodes[0], asked_by_node(fleet));
  EXPECT_EQ(*counts.cores, (Units{32, 8, 2}));
  EXPECT_EQ(*counts.devices, (Units{16, 4, 1}));
}

// ---- Pods and claims that could not be read

TEST(Hidden, WithoutAllPodsItIsNotKnownWhetherItFits) {
  Fleet fleet;
  add_node(fleet, "a", "trn1.32xlarge");
  const Pod pod = pod_of("p", {{kNeuron, 4}});
  EXPECT_EQ(exit_status(why(fleet, pod)), 0);
  fleet.pods_partial = true;
  const Why answer = why(fleet, pod);
  EXPECT_EQ(exit_status(answer), 2);
  EXPECT_THAT(why_text(answer), HasSubstr("cannot tell: not all pods could be read"));
  EXPECT_EQ(fit_on(fleet, pod_of("p", {{kNeuron, 20}}), "a").answer, Answer::no) << "whatever others hold";
  Manifest manifest;
  manifest.groups = {{pod, 1}};
  const Plan result = plan(fleet, manifest, 0);
  EXPECT_EQ(exit_status(result), 2);
  EXPECT_EQ(result.groups.at(0).empty_fleet, 4) << "of an empty fleet it is known";
  const NodeCounts counts = count_node(fleet.nodes[0], asked_by_node(fleet));
  EXPECT_FALSE(counts.devices || counts.cores || counts.efas);
}

TEST(Hidden, TheAgentSaysWhatPodsHoldThatAreNotListed) {
  Fleet fleet;
  add_node(fleet, "a", "trn1.32xlarge");
  fleet.pods_partial = true;
  report::NodeReport report;
  for (int i = 0; i < 16; ++i) report.core_ids.push_back({2 * i, 2 * i + 1});
  report::PodUse use{"secret", "q", "main", {}, {}, {}};
  for (int i = 0; i < 14; ++i) {
    use.devices.insert(i);
    use.cores.insert({2 * i, 2 * i + 1});
  }
  report.pods = {use};
  fleet.nodes[0].report = report;
  EXPECT_EQ(fit_on(fleet, pod_of("p", {{kNeuron, 4}}), "a").answer, Answer::no);
  EXPECT_EQ(fit_on(fleet, pod_of("p", {{kNeuron, 2}}), "a").answer, Answer::yes);
  add_pod(fleet, "r", "a", {{kNeuron, 2}});
  fleet.nodes[0].report->pods->push_back({"default", "r", "main", {14, 15}, {28, 29, 30, 31}, {}});
  EXPECT_EQ(fit_on(fleet, pod_of("p", {{kNeuron, 1}}), "a").answer, Answer::no);
}

TEST(Hidden, WithoutAllClaimsItIsNotKnownEither) {
  Fleet fleet;
  add_classes(fleet);
  add_node(fleet, "a", "trn1.32xlarge", Mode::claims);
  add_template(fleet, "t", {request_of("neuron.aws.com", 4)});
  EXPECT_EQ(fit_on(fleet, pod_with_claim("p", "t"), "a").answer, Answer::yes);
  fleet.claims_partial = true;
  EXPECT_EQ(fit_on(fleet, pod_with_claim("p", "t"), "a").answer, Answer::unknown);
  EXPECT_FALSE(count_node(fleet.nodes[0], asked_by_node(fleet)).devices);
}

}  // namespace
}  // namespace neuron::fleet::test
