// `plan`: how many pods of a manifest fit, and what is left over.
#include "tools/kubectl-neuron/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "test/unit/kubectl_neuron/questions.h"
#include "test/unit/render/json_schema.h"

namespace neuron::fleet::test {
namespace {

using testing::HasSubstr;

Fleet two_nodes() {
  Fleet fleet;
  for (const char* name : {"a", "b"}) add_node(fleet, name, "trn1.32xlarge");
  return fleet;
}

// ---- What pods ask for beside hardware

std::string pod_with(const std::string& limits, const std::string& rest = "") {
  return R"({"containers":[{"name":"main","resources":{"limits":{"aws.amazon.com/neuron":"1")" + limits + "}}}]" +
         rest + "}";
}

Plan plan_of(const Fleet& fleet, const std::string& pod, int replicas = 1) {
  return plan(fleet, manifest_of(object_of("Deployment", R"({"template":{"spec":%s}})", pod)), replicas);
}

// Two nodes of 4 cores and 8 GiB with room for 3 pods each; on a one pod with 1.5 cores.
Fleet small_nodes() {
  Fleet fleet = two_nodes();
  for (Node& node : fleet.nodes) node.general = {{"cpu", 4000}, {"memory", 8000LL << 30U}, {"pods", 3000}};
  add_pod(fleet, "q", "a", {{kNeuron, 1}});
  fleet.pods[0].general = {{"cpu", 1500}};
  return fleet;
}

TEST(Plan, CountsProcessorTimeMemoryAndPods) {
  const Fleet fleet = small_nodes();
  const Plan two = plan_of(fleet, pod_with(R"(,"cpu":"1.5")"), 3);
  EXPECT_EQ(exit_status(two), 0);
  EXPECT_EQ(two.groups[0].nodes[0].pods, 1);
  EXPECT_EQ(two.more, 0);
  EXPECT_EQ(two.groups[0].empty_fleet, 4);
  EXPECT_THAT(plan_text(two), HasSubstr("28 aws.amazon.com/neuron on a and b: asks for 1500m cpu, 1 of 4 is free"));
  EXPECT_THAT(plan_text(two), HasSubstr("takes (its labels and cpu aside)"));
  EXPECT_TRUE(two.not_counted.empty());
  EXPECT_EQ(exit_status(plan_of(fleet, pod_with(R"(,"cpu":1000)"))), 1);
  const Plan large = plan_of(fleet, pod_with(R"(,"memory":"1Ti")"));
  EXPECT_EQ(exit_status(large), 1);
  EXPECT_THAT(plan_text(large), HasSubstr("asks for 1Ti memory, 8Gi of 8Gi are free"));
  const Plan many = plan_of(fleet, pod_with(""), 6);
  EXPECT_EQ(many.placed, 5);
  EXPECT_THAT(plan_text(many), HasSubstr("the node has as many pods as it takes (3)"));
}

TEST(Plan, CountsAResourceOfAnotherDriver) {
  Fleet fleet = small_nodes();
  const Plan none = plan_of(fleet, pod_with(R"(,"nvidia.com/gpu":"1")"));
  EXPECT_EQ(none.answer, Answer::no);
  EXPECT_EQ(exit_status(none), 2);
  EXPECT_THAT(plan_text(none), HasSubstr("does not fit: 0 of 1 pod\n"));
  EXPECT_THAT(plan_text(none), HasSubstr("\nno node has nvidia.com/gpu, which default/o asks for\n"));
  fleet.nodes[1].general["nvidia.com/gpu"] = 2000;
  const Plan two = plan_of(fleet, pod_with(R"(,"nvidia.com/gpu":"1")"), 3);
  EXPECT_EQ(exit_status(two), 1);
  EXPECT_EQ(two.placed, 2);
  EXPECT_THAT(plan_text(two), HasSubstr("the node does not list nvidia.com/gpu"));
  EXPECT_THAT(plan_text(two), HasSubstr("asks for 1 nvidia.com/gpu, 0 of 2 are free"));
}

TEST(Plan, PodsWithoutHardwareTakeWhatTheyAskFor) {
  Fleet fleet = small_nodes();
  const std::string plain = R"({"containers":[{"name":"c","resources":{"requests":{"cpu":"2"}}}]})";
  const auto both = [&](int launchers) {
    return plan(
        fleet,
        manifest_of(object_of("Deployment",
                              R"({"replicas":)" + std::to_string(launchers) + R"(,"template":{"spec":%s}})", plain) +
                    object_of("Pod", pod_with(R"(,"cpu":"2")"))),
        0);
  };
  EXPECT_EQ(exit_status(both(2)), 0);
  EXPECT_EQ(exit_status(both(3)), 1);
  EXPECT_EQ(both(5).groups[0].placed, 3);
  fleet.nodes.push_back({});
  fleet.nodes.back().name = "c";
  fleet.nodes.back().general = {{"cpu", 100'000}, {"pods", 2000}};
  EXPECT_EQ(exit_status(both(3)), 0) << "they go to nodes without hardware first";
}

TEST(Plan, NamesWhatIsNotCounted) {
  const std::string term = R"([{"topologyKey":"kubernetes.io/hostname"}])";
  const std::string rules =
      R"(,"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":)" + term +
      R"(},"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":)" + term +
      R"(}},"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule"}],)"
      R"("volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"c"}}],"runtimeClassName":"x","priorityClassName":"y",)"
      R"("nodeName":"n","initContainers":[{"name":"i","ports":[{"containerPort":80,"hostPort":80}]}],"schedulingGroup":{})";
  const Plan one = plan_of(small_nodes(), pod_with("", rules));
  EXPECT_EQ(exit_status(one), 0);
  EXPECT_THAT(plan_text(one), HasSubstr("\nnot counted: gang scheduling, host ports, nodeName, persistent volumes, pod "
                                        "affinity, pod anti-affinity, priority, runtime class and topology spread\n"));
  EXPECT_EQ(nlohmann::json::parse(plan_json(one))["not_counted"].size(), 9U);
  const std::string soft =
      R"(,"affinity":{"podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":)" + term +
      R"(}},"topologySpreadConstraints":[{"whenUnsatisfiable":"ScheduleAnyway"}],"volumes":[{"name":"v","emptyDir":{}}])";
  EXPECT_TRUE(plan_of(small_nodes(), pod_with("", soft)).not_counted.empty());
  EXPECT_THAT(plan_of(two_nodes(), pod_with(R"(,"cpu":"1000")")).not_counted, testing::ElementsAre("cpu"))
      << "the nodes do not list it";
  Fleet hidden = small_nodes();
  hidden.pods_partial = true;
  EXPECT_THAT(plan_of(hidden, pod_with(R"(,"cpu":"1000")")).not_counted, testing::ElementsAre("cpu"));
}

TEST(Plan, HugeAmountsAreShownAsTheLeast) {
  const Plan huge = plan_of(
      two_nodes(),
      R"({"containers":[{"name":"c","resources":{"limits":{"aws.amazon.com/neuron":"9223372036854775807"}}}]})");
  EXPECT_THAT(plan_text(huge), HasSubstr("asks for 2147483647 or more aws.amazon.com/neuron, 16 of 16 are free"));
}

TEST(Plan, PlacesOneAfterTheOther) {
  Fleet fleet = two_nodes();
  add_pod(fleet, "q", "a", {{kNeuron, 6}});
  const Plan six = plan(fleet, manifest_of(deployment(6)), 0);
  EXPECT_EQ(exit_status(six), 0);
  ASSERT_EQ(six.groups.front().nodes.size(), 2U);
  EXPECT_EQ(six.groups.front().nodes[0].pods, 2);
  EXPECT_EQ(six.groups.front().nodes[1].pods, 4);
  EXPECT_EQ(six.groups.front().empty_fleet, 8);
  const Plan seven = plan(fleet, manifest_of(deployment(1)), 7);
  EXPECT_EQ(exit_status(seven), 1);
  EXPECT_EQ(seven.placed, 6);
  EXPECT_FALSE(seven.groups.front().obstacles.empty());
}

TEST(Plan, SaysHowManyMoreAndWhatIsStranded) {
  Fleet fleet = two_nodes();
  add_pod(fleet, "q", "a", {{kNeuron, 6}});
  const Plan one = plan(fleet, manifest_of(deployment(1)), 0);
  EXPECT_EQ(one.more, 5);
  ASSERT_EQ(one.stranded->size(), 1U);
  EXPECT_EQ(one.stranded->at(0).free, 2);
  EXPECT_THAT(one.stranded->at(0).nodes, testing::ElementsAre("a"));
  EXPECT_THAT(plan_text(one), HasSubstr("2 aws.amazon.com/neuron on a"));
}

TEST(Plan, OtherInstanceTypes) {
  const Plan one = plan(two_nodes(), manifest_of(deployment(1)), 0);
  const auto of = [&](const std::string& type) { return std::ranges::find(one.types, type, &TypeCount::type)->pods; };
  EXPECT_EQ(of("trn1.32xlarge"), 4);
  EXPECT_EQ(of("trn1.2xlarge"), 0);
  EXPECT_EQ(of("inf2.48xlarge"), 3);
}

TEST(Plan, ClaimsOnEmptyNodesUseTheDriversOwnPool) {
  Fleet fleet;
  add_classes(fleet);
  add_node(fleet, "a", "trn1.32xlarge", Mode::claims);
  add_holder(fleet, "q", "a", {"neuron-device-0"});
  Manifest manifest;
  manifest.groups = {{pod_with_claim("p", "t"), 4}};
  manifest.added.claim_templates["default/t"] = {request_of("neuron.aws.com", 4)};
  manifest.added.template_constraints["default/t"] = {{{}, "resource.aws.com/devicegroup4_id", ""}};
  const Plan answer = plan(fleet, manifest, 0);
  EXPECT_EQ(answer.placed, 3);
  EXPECT_EQ(exit_status(answer), 1);
  EXPECT_EQ(answer.groups.front().empty_fleet, 4);
  ASSERT_FALSE(answer.stranded->empty());
  EXPECT_EQ(answer.stranded->at(0).free, 3);
  EXPECT_EQ(std::ranges::find(answer.types, "trn2.48xlarge", &TypeCount::type)->pods, 4);
}

Manifest sharing(int replicas) {
  Manifest manifest;
  Claim claim;
  claim.claim_namespace = "default";
  claim.name = "shared";
  claim.requests = {request_of("neuron.aws.com", 4)};
  manifest.added.claims = {claim};
  Pod pod = pod_of("p", {});
  pod.claims = {{"devices", "shared", ""}};
  manifest.groups = {{pod, replicas}};
  return manifest;
}

TEST(Plan, ReplicasShareAClaimByName) {
  Fleet fleet;
  add_classes(fleet);
  for (const char* name : {"a", "b"}) add_node(fleet, name, "trn1.32xlarge", Mode::claims);
  Manifest manifest = sharing(6);
  manifest.groups.push_back({pod_with_claim("q", "t"), 2});
  manifest.added.claim_templates["default/t"] = {request_of("neuron.aws.com", 12)};
  const Plan answer = plan(fleet, manifest, 0);
  EXPECT_EQ(exit_status(answer), 0);
  ASSERT_EQ(answer.groups[0].nodes.size(), 1U) << "all are on the node of the claim";
  EXPECT_EQ(answer.groups[0].nodes[0].pods, 6);
  EXPECT_EQ(answer.groups[1].placed, 2) << "the claim is allocated once";
  EXPECT_EQ(answer.more, 250);
  EXPECT_EQ(answer.groups[0].empty_fleet, 256);
}

TEST(Plan, NoMorePodsShareAClaimThanTheApiServerAllows) {
  Fleet fleet;
  add_classes(fleet);
  for (const char* name : {"a", "b"}) add_node(fleet, name, "trn1.32xlarge", Mode::claims);
  const Plan answer = plan(fleet, sharing(300), 0);
  EXPECT_EQ(exit_status(answer), 1);
  EXPECT_EQ(answer.placed, 256);
  EXPECT_THAT(plan_text(answer), HasSubstr("256 pods have claim shared, and no claim is shared by more"));
  EXPECT_THAT(plan_text(answer), HasSubstr("claim shared is allocated on a"));
}

TEST(Plan, CannotTellWithoutNodesOrWithOddSelectors) {
  EXPECT_EQ(exit_status(plan({}, manifest_of(deployment(1)), 0)), 2);
  Fleet fleet;
  add_classes(fleet);
  add_node(fleet, "a", "trn1.32xlarge", Mode::claims);
  Manifest manifest;
  manifest.groups = {{pod_with_claim("p", "t"), 1}};
  ClaimRequest odd = request_of("neuron.aws.com");
  odd.selectors = {{"device.attributes['neuron.aws.com'].family.matches('T')"}};
  manifest.added.claim_templates["default/t"] = {odd};
  EXPECT_EQ(exit_status(plan(fleet, manifest, 0)), 2);
}

const std::string kPlainSpec = R"({"containers":[{"name":"main"}]})";

TEST(Plan, IsAboutTheFirstPodsThatAskForHardware) {
  const Manifest job =
      manifest_of(object_of("MPIJob", R"({"mpiReplicaSpecs":{"Launcher":{"replicas":1,"template":{"spec":)" +
                                          kPlainSpec + R"(}},"Worker":{"replicas":3,"template":{"spec":%s}}}})"));
  const Plan three = plan(two_nodes(), job, 0);
  EXPECT_EQ(exit_status(three), 0);
  EXPECT_EQ(three.placed, 4);
  EXPECT_EQ(three.more, 5);
  EXPECT_FALSE(three.types.empty());
  const auto json = nlohmann::json::parse(plan_json(three));
  EXPECT_EQ(neuron::test::schema_file_violation("kubectl-neuron-plan-1", plan_json(three)), "");
  EXPECT_EQ(json["groups"][0]["asks_for_hardware"], false);
  EXPECT_TRUE(json["groups"][0]["nodes"].is_null()) << "it is not counted where";
  EXPECT_TRUE(json["groups"][0]["empty_fleet"].is_null());
  EXPECT_EQ(json["groups"][0]["placed"], 1);
  EXPECT_EQ(json["groups"][1]["asks_for_hardware"], true);
  EXPECT_THAT(json["notes"].dump(), HasSubstr("default/o-launcher asks for no Neuron device and no interface"));
  EXPECT_THAT(plan_text(three), HasSubstr("5 more of default/o-worker would fit"));
  EXPECT_THAT(plan_text(three), HasSubstr("1 of 1 pod fits now\n"));
  const Plan nine = plan(two_nodes(), job, 9);
  EXPECT_EQ(nine.asked, 10);
  EXPECT_EQ(nine.placed, 9);
}

TEST(Plan, CannotTellAboutPodsWithoutHardware) {
  const Plan none = plan(
      two_nodes(), manifest_of(object_of("Deployment", R"({"replicas":3,"template":{"spec":%s}})", kPlainSpec)), 0);
  EXPECT_EQ(exit_status(none), 2);
  EXPECT_EQ(none.asked, 3);
  EXPECT_EQ(plan_text(none), "cannot tell: no pod of the manifest asks for a Neuron device or an interface\n");
  EXPECT_EQ(neuron::test::schema_file_violation("kubectl-neuron-plan-1", plan_json(none)), "");
  const auto json = nlohmann::json::parse(plan_json(none));
  EXPECT_EQ(json["answer"], "unknown");
  for (const char* number : {"placed", "more", "stranded"}) EXPECT_TRUE(json[number].is_null()) << number;
  EXPECT_EQ(json["groups"][0]["asked"], 3);
  EXPECT_TRUE(json["groups"][0]["placed"].is_null());
  EXPECT_EQ(json["notes"], (std::vector<std::string>{"default/o asks for no Neuron device and no interface"}));
}

TEST(Plan, ADaemonSetHasAPodOnEachNodeThatItsRulesAllow) {
  const Manifest set = manifest_of(object_of("DaemonSet", R"({"template":{"spec":%s}})"));
  Fleet fleet = two_nodes();
  fleet.nodes[1].unschedulable = true;
  const Plan both = plan(fleet, set, 0);
  EXPECT_EQ(exit_status(both), 0);
  EXPECT_EQ(both.placed, 2);
  EXPECT_EQ(both.groups[0].empty_fleet, 2);
  EXPECT_EQ(both.more, std::nullopt) << "of a DaemonSet there are no more";
  add_pod(fleet, "q", "a", {{kNeuron, 14}});
  const Plan full = plan(fleet, set, 0);
  EXPECT_EQ(exit_status(full), 1);
  EXPECT_EQ(full.placed, 1);
  ASSERT_EQ(full.groups[0].obstacles.size(), 1U);
  EXPECT_THAT(full.groups[0].obstacles[0].nodes, testing::ElementsAre("a"));
  fleet.nodes[0].taints = {{"reserved", "", "NoSchedule"}};
  const Plan other = plan(fleet, set, 0);
  EXPECT_EQ(exit_status(other), 0);
  EXPECT_EQ(other.asked, 1);
  fleet.nodes[1].taints = fleet.nodes[0].taints;
  EXPECT_EQ(exit_status(plan(fleet, set, 0)), 1);
}

TEST(Plan, JsonHasEverything) {
  const std::string text = plan_json(plan(two_nodes(), manifest_of(deployment(9)), 0));
  EXPECT_EQ(neuron::test::schema_file_violation("kubectl-neuron-plan-1", text), "");
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json["format"], "kubectl-neuron-plan/1");
  EXPECT_EQ(json["placed"], 8);
  EXPECT_EQ(json["groups"][0]["nodes"][0]["node"], "a");
}

}  // namespace
}  // namespace neuron::fleet::test
