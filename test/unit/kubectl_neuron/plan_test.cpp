// `plan`: manifests of every kind, how many fit, and what is left over.
#include "tools/kubectl-neuron/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "test/unit/kubectl_neuron/questions.h"
#include "test/unit/render/json_schema.h"

namespace neuron::fleet::test {
namespace {

using testing::HasSubstr;

const std::string kPodSpec = R"({"containers":[{"name":"main","resources":{"limits":{"aws.amazon.com/neuron":"4"}}}]})";

Manifest manifest_of(const std::string& text) {
  const auto manifest = parse_manifest(text, "default", {});
  EXPECT_TRUE(manifest) << manifest.error().message;
  return manifest.value_or(Manifest{});
}

std::string deployment(int replicas) {
  return R"({"kind":"Deployment","metadata":{"name":"serve"},"spec":{"replicas":)" + std::to_string(replicas) +
         R"(,"template":{"spec":)" + kPodSpec + "}}}";
}

TEST(Manifest, ReadsEveryKindThatHasAPodTemplate) {
  const Manifest pod = manifest_of(R"({"kind":"Pod","metadata":{"name":"p","namespace":"x"},"spec":)" + kPodSpec + "}");
  EXPECT_EQ(full_name(pod.groups.front().pod), "x/p");
  EXPECT_EQ(manifest_of(deployment(3)).groups.front().replicas, 3);
  const Manifest job = manifest_of(
      R"({"kind":"Job","metadata":{"name":"j"},"spec":{"parallelism":5,"template":{"spec":)" + kPodSpec + "}}}");
  EXPECT_EQ(job.groups.front().replicas, 5);
  const Manifest set = manifest_of(
      R"({"kind":"JobSet","metadata":{"name":"s"},"spec":{"replicatedJobs":[{"name":"w","replicas":2,"template":{"spec":{"parallelism":4,"template":{"spec":)" +
      kPodSpec + "}}}}]}}");
  EXPECT_EQ(set.groups.front().replicas, 8);
  EXPECT_EQ(set.groups.front().pod.name, "s-w");
  const Manifest torch = manifest_of(
      R"({"kind":"PyTorchJob","metadata":{"name":"t"},"spec":{"pytorchReplicaSpecs":{"Master":{"replicas":1,"template":{"spec":)" +
      kPodSpec + R"(}},"Worker":{"replicas":3,"template":{"spec":)" + kPodSpec + "}}}}}");
  ASSERT_EQ(torch.groups.size(), 2U);
  EXPECT_EQ(torch.groups[1].replicas, 3);
}

TEST(Manifest, ReadsObjectsThatFollowEachOtherAndTheirClaims) {
  const Manifest two = manifest_of(
      R"({"kind":"ResourceClaimTemplate","metadata":{"name":"t"},"spec":{"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"neuron.aws.com","count":2,"tolerations":[{"key":"k","operator":"Exists"}]}}]}}}})"
      "\n" +
      deployment(1));
  EXPECT_EQ(two.groups.size(), 1U);
  ASSERT_TRUE(two.added.claim_templates.contains("default/t"));
  EXPECT_EQ(two.added.claim_templates.at("default/t").front().count, 2);
  EXPECT_EQ(two.added.claim_templates.at("default/t").front().tolerations.size(), 1U);
}

TEST(Manifest, BadInputIsAnError) {
  for (const char* text : {"", "kind: Pod", "{", R"({"kind":"Service"})", R"({"spec":{"containers":5}})"}) {
    EXPECT_FALSE(parse_manifest(text, "default", {})) << text;
  }
}

// An object of this kind with this spec; %s stands for a pod's spec.
std::string object(const std::string& kind, std::string spec, const std::string& pod = kPodSpec) {
  for (std::size_t at = 0; (at = spec.find("%s", at)) != std::string::npos; at += pod.size()) spec.replace(at, 2, pod);
  return R"({"kind":")" + kind + R"(","metadata":{"name":"o"},"spec":)" + spec + "}";
}

std::string error_of(const std::string& text) {
  const auto manifest = parse_manifest(text, "default", {});
  return manifest ? "" : manifest.error().message;
}

TEST(Manifest, CountsTheObjectsOfAListOnce) {
  const Manifest list = manifest_of(R"({"kind":"List","items":[)" + deployment(3) + "]}");
  ASSERT_EQ(list.groups.size(), 1U);
  EXPECT_EQ(list.groups[0].replicas, 3);
}

TEST(Manifest, AJobRunsNoMorePodsThanItCompletes) {
  const auto pods = [](const std::string& counts) {
    return manifest_of(object("Job", "{" + counts + R"("template":{"spec":%s}})")).groups.front().replicas;
  };
  EXPECT_EQ(pods(R"("parallelism":3,"completions":2,)"), 2);
  EXPECT_EQ(pods(R"("parallelism":2,"completions":8,)"), 2);
  EXPECT_EQ(pods(R"("completions":8,)"), 1);
  EXPECT_EQ(pods(R"("completions":0,)"), 0);
  EXPECT_EQ(pods(R"("parallelism":18446744073709551615,)"), 100'000);
}

TEST(Manifest, AReplicaOfALeaderWorkerSetHasManyPods) {
  const Manifest plain = manifest_of(
      object("LeaderWorkerSet", R"({"replicas":2,"leaderWorkerTemplate":{"size":4,"workerTemplate":{"spec":%s}}})"));
  ASSERT_EQ(plain.groups.size(), 1U);
  EXPECT_EQ(plain.groups[0].replicas, 8);
  EXPECT_EQ(plain.groups[0].pod.name, "o-worker");
  const Manifest led = manifest_of(object(
      "LeaderWorkerSet",
      R"({"replicas":2,"leaderWorkerTemplate":{"size":4,"leaderTemplate":{"spec":%s},"workerTemplate":{"spec":%s}}})"));
  ASSERT_EQ(led.groups.size(), 2U);
  EXPECT_EQ(led.groups[0].pod.name, "o-leader");
  EXPECT_EQ(led.groups[0].replicas, 2);
  EXPECT_EQ(led.groups[1].replicas, 6);
}

TEST(Manifest, TooManyPodsAreAnError) {
  std::string text;
  for (int i = 0; i < 256; ++i) text += deployment(1);
  EXPECT_EQ(error_of(text), "");
  EXPECT_THAT(error_of(text + deployment(1)), HasSubstr("more than 256 pods"));
}

TEST(Manifest, RequestsThatCannotBeReadAreErrors) {
  const auto error = [](const std::string& amounts) {
    return error_of(object("Pod", R"({"containers":[{"name":"c","resources":{"limits":)" + amounts + "}}]}"));
  };
  EXPECT_EQ(error(R"({"aws.amazon.com/neuron":4,"cpu":"1.5","vpc.amazonaws.com/pod-eni":"1","nvidia.com/gpu":"x"})"),
            "");
  EXPECT_EQ(error(R"({"aws.amazon.com/neuron":"1.5"})"),
            "default/o: container c: limits: aws.amazon.com/neuron: \"1.5\" is no whole number that can be asked for");
  for (const char* bad : {"1.5", "-4", "\"-4\"", "\"99999999999999999999999\"", "null", "\"\"", "{}"}) {
    EXPECT_THAT(error(R"({"vpc.amazonaws.com/efa":)" + std::string(bad) + "}"), HasSubstr(bad));
  }
  for (const char* name : {"aws.amazon.com/neurons", "vpc.amazonaws.com/efas"}) {
    EXPECT_THAT(error(R"({")" + std::string(name) + R"(":"4"})"), HasSubstr(std::string(name) + ": \"4\": the agent"));
  }
  EXPECT_THAT(error_of(object("ResourceClaim", R"({"devices":{"requests":[{"name":"r","exactly":{"count":1.5}}]}})")),
              HasSubstr("default/o: request r: count: 1.5"));
}

TEST(Manifest, HugeCountsOfClaimsAreBounded) {
  const std::string requests =
      R"([{"name":"r","exactly":{"deviceClassName":"neuron.aws.com","count":9223372036854775807}},)"
      R"({"name":"s","exactly":{"deviceClassName":"neuron.aws.com","count":18446744073709551615}},)"
      R"({"name":"u","firstAvailable":[{"name":"v","deviceClassName":"neuron.aws.com","count":9223372036854775807}]}])";
  const Manifest manifest = manifest_of(
      object("ResourceClaimTemplate", R"({"spec":{"devices":{"requests":)" + requests + "}}}") +
      object("Pod",
             R"({"containers":[{"name":"c"}],"resourceClaims":[{"name":"x","resourceClaimTemplateName":"o"}]})"));
  for (const ClaimRequest& one : manifest.added.claim_templates.at("default/o")) EXPECT_LE(one.count, 1LL << 31);
  Fleet fleet;
  add_classes(fleet);
  add_node(fleet, "a", "trn1.32xlarge", Mode::claims);
  const Plan answer = plan(fleet, manifest, 0);
  EXPECT_EQ(exit_status(answer), 1);
  ASSERT_FALSE(answer.groups[0].obstacles.empty());
  EXPECT_EQ(answer.groups[0].obstacles[0].obstacles[0].kind, Obstacle::Kind::claim_limit);
}

Fleet two_nodes() {
  Fleet fleet;
  for (const char* name : {"a", "b"}) add_node(fleet, name, "trn1.32xlarge");
  return fleet;
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
  ASSERT_EQ(one.stranded.size(), 1U);
  EXPECT_EQ(one.stranded[0].free, 2);
  EXPECT_THAT(one.stranded[0].nodes, testing::ElementsAre("a"));
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
  ASSERT_FALSE(answer.stranded.empty());
  EXPECT_EQ(answer.stranded[0].free, 3);
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
      manifest_of(object("MPIJob", R"({"mpiReplicaSpecs":{"Launcher":{"replicas":1,"template":{"spec":)" + kPlainSpec +
                                       R"(}},"Worker":{"replicas":3,"template":{"spec":%s}}}})"));
  const Plan three = plan(two_nodes(), job, 0);
  EXPECT_EQ(exit_status(three), 0);
  EXPECT_EQ(three.placed, 4);
  EXPECT_EQ(three.more, 5);
  EXPECT_FALSE(three.types.empty());
  EXPECT_EQ(three.groups[0].empty_fleet, 0);
  EXPECT_TRUE(three.groups[0].nodes.empty());
  EXPECT_THAT(plan_text(three), HasSubstr("5 more of default/o-worker would fit"));
  EXPECT_THAT(plan_text(three), HasSubstr("1 of 1 pod fits now\n"));
  const Plan nine = plan(two_nodes(), job, 9);
  EXPECT_EQ(nine.asked, 10);
  EXPECT_EQ(nine.placed, 9);
}

TEST(Plan, CannotTellAboutPodsWithoutHardware) {
  const Plan none =
      plan(two_nodes(), manifest_of(object("Deployment", R"({"replicas":3,"template":{"spec":%s}})", kPlainSpec)), 0);
  EXPECT_EQ(exit_status(none), 2);
  EXPECT_EQ(none.asked, 3);
  EXPECT_EQ(none.groups[0].empty_fleet, 0);
  EXPECT_EQ(plan_text(none), "cannot tell: no pod of the manifest asks for a Neuron device or an interface\n");
  EXPECT_EQ(neuron::test::schema_file_violation("kubectl-neuron-plan-1", plan_json(none)), "");
}

TEST(Plan, ADaemonSetHasAPodOnEachNodeThatItsRulesAllow) {
  const Manifest set = manifest_of(object("DaemonSet", R"({"template":{"spec":%s}})"));
  Fleet fleet = two_nodes();
  fleet.nodes[1].unschedulable = true;
  const Plan both = plan(fleet, set, 0);
  EXPECT_EQ(exit_status(both), 0);
  EXPECT_EQ(both.placed, 2);
  EXPECT_EQ(both.groups[0].empty_fleet, 2);
  EXPECT_EQ(both.more, 0);
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
