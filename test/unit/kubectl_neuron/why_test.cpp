// `why`: each row of docs/troubleshooting.md about pods that wait or are refused, and each change carried out.
#include "tools/kubectl-neuron/why.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>

#include "test/fakes/paths.h"
#include "test/unit/kubectl_neuron/questions.h"
#include "test/unit/render/json_schema.h"

namespace neuron::fleet::test {
namespace {

using testing::HasSubstr;

struct Question {
  Fleet fleet;
  Pod pod;
};

struct Row {
  std::string head;  // what the row begins with, in **
  std::function<Question()> ask;
  std::string says;  // in the text of the answer
};

Fleet one_node() {
  Fleet fleet;
  add_node(fleet, "a", "trn1.32xlarge");
  return fleet;
}

Question waiting(Fleet fleet, const Amounts& requests) {
  Pod pod = pod_of("p", requests);
  pod.scheduled_reason = "Unschedulable";
  pod.scheduled_message = "0/1 nodes are available: 1 Insufficient aws.amazon.com/neuron.";
  return {std::move(fleet), std::move(pod)};
}

Question refused(const std::string& message) {
  Question question{one_node(), pod_of("p", {{kNeuron, 2}}, "a")};
  question.pod.phase = "Failed";
  question.pod.reason = "UnexpectedAdmissionError";
  question.pod.message = "Pod was rejected: Allocate failed due to " + message + ", which is unexpected";
  return question;
}

Question by_event(const std::string& reason, const std::string& message) {
  Question question{one_node(), pod_of("p", {{kNeuron, 2}}, "a")};
  question.pod.phase = "Pending";
  question.fleet.events = {{"Pod", "default", "p", reason, message, "2026-01-31T10:00:00Z", 1}};
  return question;
}

std::vector<Row> rows_of_waiting() {
  return {
      {"allocatable is below the request on every node",
       [] {
         return waiting(one_node(), {{kNeuron, 20}});
       },
       "no node has 20 aws.amazon.com/neuron, even when empty: the most is 16"},
      {"pods hold it",
       [] {
         Fleet fleet = one_node();
         add_pod(fleet, "q", "a", {{kNeuron, 16}});
         return waiting(fleet, {{kNeuron, 4}});
       },
       "held by default/q (16)"},
      {"no pod seems to hold it",
       [] {
         Fleet fleet = one_node();
         add_pod(fleet, "q", "a", {{kNeuronCore, 32}});
         fleet.nodes[0].allocatable[kNeuron] = 0;
         return waiting(fleet, {{kNeuron, 4}});
       },
       "withheld, since pods hold the hardware by aws.amazon.com/neuroncore; held by default/q (32)"},
      {"the node does not list the name",
       [] {
         return waiting(one_node(), {{kNeuronDevice, 1}});
       },
       "--neurondevice"},
      {"`untolerated taint`",
       [] {
         Fleet fleet = one_node();
         fleet.nodes[0].taints = {{"aws.amazon.com/neuron", "true", "NoSchedule"}};
         return waiting(fleet, {{kNeuron, 4}});
       },
       "a toleration of aws.amazon.com/neuron=true:NoSchedule: it then fits on a"},
      {"no events",
       [] {
         Question question{one_node(), pod_of("p", {{kNeuron, 4}})};
         question.pod.scheduler = "my-scheduler";
         return question;
       },
       "its schedulerName (my-scheduler) is not installed"},
  };
}

std::vector<Row> rows_of_refused() {
  return {
      {"Both names in one container",
       [] {
         return refused(
             "rpc error: code = FailedPrecondition desc = aws.amazon.com/neuroncore: the container was just allocated "
             "2 cores through aws.amazon.com/neuron, which are the same hardware; request all cores");
       },
       "ask for all cores of as many devices through both resources"},
      {"Held under the other name",
       [] {
         return refused(
             "rpc error: code = FailedPrecondition desc = aws.amazon.com/neuroncore: core 5 is held by "
             "default/train/worker "
             "through aws.amazon.com/neuron until that container ends");
       },
       "a container holds the hardware under the other resource name"},
      {"No plugin for the resource",
       [] { return refused("no healthy devices present; cannot allocate unhealthy devices aws.amazon.com/neuron"); },
       "no plugin served the resource"},
      {"`requested number of devices unavailable",
       [] {
         return refused(
             "requested number of devices unavailable for aws.amazon.com/neuron. Requested: 2, Available: 1");
       },
       "the list of the node shrank"},
      {"`previously allocated devices are no longer healthy",
       [] {
         return refused(
             "previously allocated devices are no longer healthy; cannot allocate unhealthy devices "
             "aws.amazon.com/neuron");
       },
       "the kubelet restarted, and a device of the pod had failed"},
      {"`cannot allocate unregistered device",
       [] { return refused("cannot allocate unregistered device aws.amazon.com/neuron"); },
       "no plugin served the resource"},
  };
}

// Beginnings of the rows of a section: "- **head" and "**head".
std::vector<std::string> heads_in(const std::string& section) {
  std::ifstream file(fakes::source_dir() + "/docs/troubleshooting.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  const std::size_t begin = page.find("\n## " + section);
  EXPECT_NE(begin, std::string::npos) << section;
  std::istringstream lines(page.substr(begin + 1, page.find("\n## ", begin + 1) - begin));
  std::vector<std::string> heads;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("- ")) line.erase(0, 2);
    if (line.starts_with("**")) heads.push_back(line.substr(2));
  }
  return heads;
}

void check_rows(const std::string& section, const std::vector<Row>& rows) {
  const std::vector<std::string> heads = heads_in(section);
  EXPECT_EQ(heads.size(), rows.size()) << section;
  for (std::size_t i = 0; i < heads.size() && i < rows.size(); ++i) {
    EXPECT_TRUE(heads[i].starts_with(rows[i].head)) << heads[i] << " is not " << rows[i].head;
    const Question question = rows[i].ask();
    const Why answer = why(question.fleet, question.pod);
    EXPECT_THAT(why_text(answer), HasSubstr(rows[i].says)) << rows[i].head;
    EXPECT_EQ(neuron::test::schema_file_violation("kubectl-neuron-why-1", why_json(answer)), "");
  }
}

TEST(Why, ExplainsEachRowAboutPendingPods) {
  check_rows("A pod stays Pending", rows_of_waiting());
}

TEST(Why, ExplainsEachRowAboutRefusedPods) {
  check_rows("A pod is refused: UnexpectedAdmissionError", rows_of_refused());
}

TEST(Why, ExplainsContainersThatAreNotStarted) {
  const std::vector<Row> rows = {
      {"No device node",
       [] {
         return by_event("Failed",
                         "Error: failed to generate container: lstat /dev/neuron0: no such file or directory");
       },
       "restart udev or load the driver"},
      {"Memory left on the cores",
       [] {
         return by_event("Failed",
                         "core 3 (neuron1/neuron_core1) still has 4096 bytes of device memory in use by pid 7");
       },
       "another process still has memory on the cores"}};
  check_rows("A container is not started", rows);
}

TEST(Why, ExplainsTheRestOfTheMessages) {
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"\"3\" is offered under another resource name now", "which devices the node offers as cores has changed"},
      {"\"3\" is held by default/p/c through claim chips until that container ends", "the node served claims before"},
      {"the container was just allocated 2 cores through aws.amazon.com/neuron, and this node offers no device under "
       "both names",
       "ask for one of the two resources"},
      {"Resources cannot be allocated with Topology locality", "Topology Manager"},
      {"DRA driver neuron.aws.com is not registered", "no driver for the claim runs on the node"},
      {"unresolvable CDI devices k8s.neuron.aws.com/claim=1", "CDI"},
      {"Failed to prepare dynamic resources: prepare dynamic resources: x", "the claim could not be prepared"}};
  for (const auto& [message, meaning] : rows) {
    const auto one = explain_message(message);
    ASSERT_TRUE(one) << message;
    EXPECT_THAT(one->meaning + one->advice, HasSubstr(meaning)) << message;
  }
  EXPECT_FALSE(explain_message("Started container main"));
}

TEST(Why, TranslatesTheScheduler) {
  const auto parts = explain_scheduler(
      "0/6 nodes are available: 1 Insufficient aws.amazon.com/neuron, 2 node(s) had untolerated taint {a: b, c}, 1 "
      "cannot allocate all claims, 2 Insufficient cpu. no new claims to deallocate, preemption: 0/6 nodes are "
      "available: 6 No preemption victims found.");
  ASSERT_EQ(parts.size(), 4U);
  EXPECT_EQ(parts[0].nodes, 1);
  EXPECT_THAT(parts[0].meaning, HasSubstr("fewer are free"));
  EXPECT_THAT(parts[1].said, HasSubstr("{a: b, c}"));
  EXPECT_THAT(parts[2].meaning, HasSubstr("do not satisfy the claims"));
  EXPECT_FALSE(parts[3].of_hardware);
  EXPECT_EQ(parts[3].said, "Insufficient cpu");
  EXPECT_TRUE(explain_scheduler("").empty());
}

TEST(Why, ReasonsThatAreNotLookedAtMakeItUnknown) {
  Question question = waiting(one_node(), {{kNeuron, 4}});
  EXPECT_EQ(exit_status(why(question.fleet, question.pod)), 0) << "it could run now";
  question.pod.scheduled_message = "0/1 nodes are available: 1 Insufficient cpu.";
  EXPECT_EQ(exit_status(why(question.fleet, question.pod)), 2);
}

// ---- Changes

// Each change is carried out, and the pod then fits where the change says.
std::vector<Change> proved_changes(const Fleet& fleet, const Pod& pod) {
  const std::vector<NodeState> states = node_states(fleet);
  const std::vector<Change> changes = changes_for(fleet, pod, states, fit_all(fleet, pod, states)).found;
  for (const Change& change : changes) {
    Fleet rules = rules_for(fleet, pod);
    Pod changed = pod;
    std::vector<NodeState> copies = states;
    EXPECT_TRUE(apply(change, rules, changed, copies)) << words_of(change);
    const auto at = std::ranges::find(copies, change.node, [](const NodeState& state) { return state.node.name; });
    if (at != copies.end()) {
      EXPECT_EQ(fit(rules, changed, *at).answer, Answer::yes) << words_of(change);
    }
    EXPECT_NE(at, copies.end());
  }
  return changes;
}

std::vector<std::string> sentences(const std::vector<Change>& changes) {
  std::vector<std::string> all;
  for (const Change& change : changes) all.push_back(words_of(change));
  return all;
}

TEST(WhyChanges, TheSmallestPodThatEndsOrMoves) {
  Fleet fleet = one_node();
  add_node(fleet, "b", "trn1.32xlarge");
  add_pod(fleet, "big", "a", {{kNeuron, 10}});
  add_pod(fleet, "small", "a", {{kNeuron, 4}});
  add_pod(fleet, "other", "b", {{kNeuron, 12}});
  const auto all = sentences(proved_changes(fleet, pod_of("p", {{kNeuron, 6}})));
  EXPECT_THAT(all, testing::Contains("default/small moves from a to b: it then fits on a"));
  EXPECT_THAT(all, testing::Contains("default/small ends: it then fits on a"));
  EXPECT_THAT(all, testing::Not(testing::Contains("default/big ends: it then fits on a"))) << "a smaller one is enough";
  EXPECT_THAT(all, testing::Contains(HasSubstr("at most 4 aws.amazon.com/neuron")));
}

TEST(WhyChanges, TwoPodsWhereOneIsNotEnough) {
  Fleet fleet = one_node();
  for (const char* name : {"q", "r"}) add_pod(fleet, name, "a", {{kNeuron, 8}});
  EXPECT_THAT(sentences(proved_changes(fleet, pod_of("p", {{kNeuron, 16}}))),
              testing::Contains("default/q and default/r end: it then fits on a"));
}

TEST(WhyChanges, ChangesToNodeAndPod) {
  Fleet fleet = one_node();
  fleet.nodes[0].unschedulable = true;
  EXPECT_THAT(sentences(proved_changes(fleet, pod_of("p", {{kNeuron, 4}}))), testing::Contains("kubectl uncordon a"));
  fleet = one_node();
  Pod pod = pod_of("p", {{kNeuron, 4}});
  pod.gates = {"queue"};
  EXPECT_THAT(sentences(proved_changes(fleet, pod)), testing::Contains(HasSubstr("scheduling gates removed")));
  pod.gates.clear();
  pod.scheduler = "my-scheduler";
  EXPECT_THAT(sentences(proved_changes(fleet, pod)), testing::Contains(HasSubstr("without schedulerName")));
}

TEST(WhyChanges, AnotherLnc) {
  Fleet fleet;
  add_node(fleet, "a", "trn2.48xlarge");
  const Pod pod = pod_of("p", {{kNeuronCore, 128}});
  EXPECT_THAT(sentences(proved_changes(fleet, pod)), testing::Contains("LNC 1 on a: it then fits there"));
  add_pod(fleet, "q", "a", {{kNeuron, 1}});
  EXPECT_THAT(sentences(proved_changes(fleet, pod)), testing::Not(testing::Contains(HasSubstr("LNC"))))
      << "it takes effect once nothing is held";
}

TEST(WhyChanges, TheOtherWayToAsk) {
  Fleet fleet;
  add_node(fleet, "a", "trn1.32xlarge", Mode::claims);
  add_classes(fleet);
  for (DeviceClass& one : fleet.classes) one.extended_resource.clear();
  EXPECT_THAT(sentences(proved_changes(fleet, pod_of("p", {{kNeuron, 4}, {kEfa, 2}}))),
              testing::Contains("a claim instead of a count: it then fits on a"));
  Fleet plugin = one_node();
  add_classes(plugin);
  add_template(plugin, "t", {request_of("neuron.aws.com", 4)});
  EXPECT_THAT(sentences(proved_changes(plugin, pod_with_claim("p", "t"))),
              testing::Contains("a count in its limits instead of the claim: it then fits on a"));
}

TEST(WhyChanges, ClaimsThatEndOrMove) {
  Fleet fleet;
  add_classes(fleet);
  for (const char* node : {"a", "b"}) add_node(fleet, node, "trn1.32xlarge", Mode::claims);
  std::vector<std::string> half;
  for (int i = 0; i < 8; ++i) half.push_back("neuron-device-" + std::to_string(i));
  add_holder(fleet, "q", "a", half);
  add_holder(fleet, "r", "b", half);
  add_template(fleet, "t", {request_of("neuron.aws.com", 10)});
  const auto all = sentences(proved_changes(fleet, pod_with_claim("p", "t")));
  EXPECT_THAT(all, testing::Contains("default/q moves from a to b: it then fits on a"));
  EXPECT_THAT(all, testing::Contains("default/q ends: it then fits on a"));
  EXPECT_THAT(all, testing::Contains(HasSubstr("at most 8 devices in its claim")));
}

// ---- Running pods and JSON

model::HostScan host() {
  model::HostScan scan;
  scan.instance_type = "trn1.32xlarge";
  for (int i = 0; i < 16; ++i) {
    model::NeuronDevice device;
    device.index = i;
    device.family = model::Family::trainium1;
    device.health.state = model::HealthState::healthy;
    const int row = i / 4, column = i % 4;
    device.neighbours = model::Sourced<std::vector<int>>{{row * 4 + (column + 1) % 4, row * 4 + (column + 3) % 4,
                                                          (row + 1) % 4 * 4 + column, (row + 3) % 4 * 4 + column},
                                                         model::Origin::live};
    scan.devices.push_back(device);
  }
  return scan;
}

Question placed(const std::set<int>& devices) {
  Question question{one_node(), pod_of("p", {{kNeuron, static_cast<std::int64_t>(devices.size())}}, "a")};
  report::NodeReport report;
  report.host = host();
  for (int i = 0; i < 16; ++i) report.core_ids.push_back({2 * i, 2 * i + 1});
  report::PodUse use{"default", "p", "main", devices, {}, {}};
  for (const int device : devices) use.cores.insert({2 * device, 2 * device + 1});
  report.pods = {use};
  question.fleet.nodes[0].report = report;
  return question;
}

TEST(Why, SaysWhereAPodRunsBadly) {
  const Question far = placed({0, 10});
  const Why answer = why(far.fleet, far.pod);
  EXPECT_EQ(exit_status(answer), 0);
  ASSERT_TRUE(answer.placements);
  EXPECT_FALSE(answer.placements->front().is_good());
  EXPECT_EQ(answer.placements->front().best_hops, 1);
  EXPECT_EQ(answer.placements->front().better.size(), 2U);
  EXPECT_THAT(why_text(answer), HasSubstr("not on the best devices"));
  const Question near = placed({0, 1, 2, 3});
  EXPECT_TRUE(why(near.fleet, near.pod).placements->front().is_good());
  EXPECT_EQ(neuron::test::schema_file_violation("kubectl-neuron-why-1", why_json(why(near.fleet, near.pod))), "");
  Question sick = placed({0, 1, 2, 3});
  sick.fleet.nodes[0].report->host.devices[2].health = {model::HealthState::unhealthy, "x", "2 errors", "replace it"};
  EXPECT_THAT(why_text(why(sick.fleet, sick.pod)), HasSubstr("neuron2 is unhealthy: 2 errors; what to do: replace it"));
}

TEST(Why, WithoutTheAgentsAnswerItSaysSo) {
  Fleet fleet = one_node();
  fleet.nodes[0].report_missing = "the agent does not answer";
  EXPECT_THAT(why_text(why(fleet, pod_of("p", {{kNeuron, 2}}, "a"))), HasSubstr("the agent does not answer"));
}

TEST(Why, JsonHasEverything) {
  Fleet fleet = one_node();
  add_pod(fleet, "q", "a", {{kNeuron, 16}});
  const Question question = waiting(fleet, {{kNeuron, 4}});
  const auto json = nlohmann::json::parse(why_json(why(question.fleet, question.pod)));
  EXPECT_EQ(json["state"], "waiting");
  EXPECT_EQ(json["answer"], "does_not_fit");
  EXPECT_EQ(json["nodes"][0]["obstacles"][0]["kind"], "too_few");
  EXPECT_EQ(json["changes"][0]["kind"], "pods_ended");
}

}  // namespace
}  // namespace neuron::fleet::test
