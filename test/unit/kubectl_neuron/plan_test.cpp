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
