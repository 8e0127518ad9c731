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

TEST(Advice, WhatFollowsTheReasonsIsNoPartOfThem) {
  // As schedulers of Kubernetes 1.33 to 1.37 write it.
  constexpr const char* kPreemption =
      "preemption: 0/3 nodes are available: 1 Preemption is not helpful for scheduling, 2 No preemption victims found "
      "for incoming pod.";
  for (const std::string& tail :
       {std::string(), std::string(" "), std::string(" still not schedulable"), std::string(" ") + kPreemption,
        std::string(" still not schedulable, ") + kPreemption,
        std::string(" no new claims to deallocate, ") + kPreemption,
        std::string(" deallocation of ResourceClaim completed, preemption: not eligible due to a terminating pod."),
        std::string(" preemption: not eligible due to preemptionPolicy=Never.."),
        std::string(" something new. And more")}) {
    const auto parts =
        explain_scheduler("0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu." + tail);
    ASSERT_EQ(parts.size(), 2U) << tail;
    EXPECT_EQ(parts[0].said, "node(s) had untolerated taint(s)");
    EXPECT_EQ(parts[1].said, "Insufficient cpu") << tail;
    EXPECT_EQ(parts[1].nodes, 2);
  }
  EXPECT_EQ(only("Insufficient acme.example/card. still not schedulable").said, "Insufficient acme.example/card");
  EXPECT_EQ(
      explain_scheduler("0/1 nodes are available: 1 cannot allocate all claims. still not schedulable, preemption: 0/1 "
                        "nodes are available: 1 Preemption is not helpful for scheduling.")
          .at(0)
          .said,
      "cannot allocate all claims");
  EXPECT_EQ(explain_scheduler(
                "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. preemption: 0/1 nodes "
                "are available: 1 Preemption is not helpful for scheduling.")
                .at(0)
                .said,
            "pod has unbound immediate PersistentVolumeClaims");
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
    for (const Change& change : changes_for(fleet, pod, states, fit_all(fleet, pod, states)).found)
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

TEST(Advice, APodThatIsBeingDeletedIsSaidToBe) {
  Fleet fleet;
  add_node(fleet, "a", "trn1.32xlarge");
  add_pod(fleet, "leaving", "a", {{kNeuron, 16}});
  fleet.pods[0].deleting = true;
  add_pod(fleet, "w", "", {{kNeuron, 4}});
  const Why answer = why(fleet, fleet.pods[1]);
  ASSERT_FALSE(answer.changes.empty());
  EXPECT_THAT(words_of(answer.changes[0]), HasSubstr("/leaving (being deleted) ends: it then fits on a"));
}

// ---- Pods that do not wait for hardware

Why why_of(Pod pod, const std::vector<Event>& events = {}) {
  Fleet fleet;
  add_node(fleet, "a", "trn1.32xlarge");
  fleet.events = events;
  fleet.pods = {pod};
  return why(fleet, pod);
}

void expect_no(const Why& answer, const std::string& summary) {
  EXPECT_EQ(exit_status(answer), 1) << answer.summary;
  EXPECT_THAT(answer.summary, HasSubstr(summary));
  EXPECT_THAT(why_text(answer), Not(HasSubstr("it fits now")));
}

TEST(State, APodThatHasEndedOrIsDeletedDoesNotRunAgain) {
  Pod pod = pod_of("p", {{kNeuron, 4}}, "a");
  pod.phase = "Succeeded";
  expect_no(why_of(pod), "it has ended (Succeeded) and does not run again");
  pod.phase = "Failed";
  pod.reason = "Evicted";
  pod.message = "The node was low on resource: memory.";
  expect_no(why_of(pod), "it has ended (Failed, Evicted: The node was low on resource: memory.)");
  pod = pod_of("p", {{kNeuron, 4}}, "a");
  pod.deleting = true;
  expect_no(why_of(pod), "it is being deleted, and still on a");
  pod = pod_of("p", {{kNeuron, 4}});
  pod.deleting = true;
  expect_no(why_of(pod), "it is being deleted, and was never on a node");
}

TEST(State, AGatedPodIsNotSaidToFit) {
  Pod pod = pod_of("p", {{kNeuron, 4}});
  pod.scheduled_reason = "SchedulingGated";
  pod.gates = {"kueue.x-k8s.io/admission"};
  expect_no(why_of(pod), "before its scheduling gate is removed: kueue.x-k8s.io/admission");
  EXPECT_EQ(exit_status(why(Fleet{}, pod)), 1) << "whatever is known of nodes";
  pod.gates.clear();
  expect_no(why_of(pod), "before its scheduling gate is removed");
}

TEST(State, APodThatWaitsForAnImageOrAVolumeIsToldSo) {
  Pod pod = pod_of("p", {{kNeuron, 4}}, "a");
  pod.phase = "Pending";
  pod.waits = {{"main", "ImagePullBackOff", "Back-off pulling image \"x\""}};
  const Event pull{"Pod", "default", "p", "Failed", "Failed to pull image \"x\": not found", "2026-01-31T10:00:00Z", 1};
  const Why image = why_of(pod, {pull});
  expect_no(image, "it is on a and not running yet: an image cannot be pulled");
  ASSERT_EQ(image.messages.size(), 1U) << "one meaning, one message";
  EXPECT_EQ(image.messages[0].said, "container main: ImagePullBackOff: Back-off pulling image \"x\"");
  pod.waits = {{"main", "ContainerCreating", ""}};
  const Event mount{
      "Pod", "default", "p", "FailedMount", "Unable to attach or mount volumes: data", "2026-01-31T10:00:00Z", 1};
  expect_no(why_of(pod, {mount}), "it is on a and not running yet: a volume cannot be attached or mounted");
}

TEST(State, EventsOfAPredecessorOfItsNameAreNotItsOwn) {
  Pod pod = pod_of("p", {{kNeuron, 4}});
  pod.uid = "new";
  Event failed{"Pod", "default", "p", "FailedScheduling", "0/1 nodes are available: 1 Insufficient cpu.", "", 1, "old"};
  EXPECT_TRUE(why_of(pod, {failed}).scheduler.empty());
  for (const char* uid : {"new", ""}) {
    failed.object_uid = uid;
    EXPECT_EQ(why_of(pod, {failed}).scheduler.size(), 1U) << uid;
  }
  pod.node = "a";
  Event mount{"Pod", "default", "p", "FailedMount", "Unable to attach or mount volumes: data", "", 1, "old"};
  EXPECT_TRUE(why_of(pod, {mount}).messages.empty());
  Event pulling{"Pod", "default", "p", "Pulling", "Pulling image", "", 1, "old"};
  EXPECT_EQ(why_of(pod, {pulling}).summary, "it is on a and not running yet: nothing says what it waits for");
  pod.stays = true;
  EXPECT_EQ(why_of(pod, {mount}).messages.size(), 1U) << "of a static pod the kubelet knows another uid";
}

TEST(State, APodThatStartsIsNotSaidToRun) {
  Pod pod = pod_of("p", {{kNeuron, 4}}, "a");
  pod.phase = "Pending";
  pod.waits = {{"main", "ContainerCreating", ""}};
  const Why silent = why_of(pod);
  EXPECT_EQ(exit_status(silent), 2);
  EXPECT_EQ(silent.summary, "it is on a and not running yet: nothing says what it waits for");
  const Event pulling{"Pod", "default", "p", "Pulling", "Pulling image \"x\"", "2026-01-31T10:00:00Z", 1};
  EXPECT_EQ(why_of(pod, {pulling}).summary, "it is on a and not running yet: the node pulls an image");
  EXPECT_EQ(exit_status(why_of(pod, {pulling})), 1);
}

TEST(State, AContainerThatEndsAgainAndAgainDoesNotRun) {
  Pod pod = pod_of("p", {{kNeuron, 4}}, "a");
  pod.waits = {{"main", "CrashLoopBackOff", "back-off 5m0s restarting failed container=main"}};
  expect_no(why_of(pod), "it is on a, and not all of it runs: a container ends again and again");
  pod.waits.clear();
  const Event past{"Pod", "default", "p", "FailedMount", "Unable to attach", "2026-01-31T10:00:00Z", 1};
  const Why runs = why_of(pod, {past});
  EXPECT_EQ(exit_status(runs), 0);
  EXPECT_TRUE(runs.messages.empty()) << "it has ended";
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
