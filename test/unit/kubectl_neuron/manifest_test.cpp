// Manifests of every kind: their pods, claims and errors.
#include "tools/kubectl-neuron/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/kubectl_neuron/questions.h"

namespace neuron::fleet::test {
namespace {

using testing::HasSubstr;

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
    return manifest_of(object_of("Job", "{" + counts + R"("template":{"spec":%s}})")).groups.front().replicas;
  };
  EXPECT_EQ(pods(R"("parallelism":3,"completions":2,)"), 2);
  EXPECT_EQ(pods(R"("parallelism":2,"completions":8,)"), 2);
  EXPECT_EQ(pods(R"("completions":8,)"), 1);
  EXPECT_EQ(pods(R"("completions":0,)"), 0);
  EXPECT_EQ(pods(R"("parallelism":18446744073709551615,"completions":3,)"), 3);
  EXPECT_EQ(pods(R"("parallelism":100000,)"), 100'000);
}

TEST(Manifest, MoreReplicasThanAreCountedAreAnError) {
  const std::string error = "default/o has more than 100000 replicas, the most that are counted";
  for (const char* many : {R"("replicas":1000000000000,)", R"("replicas":100001,)",
                           R"("parallelism":18446744073709551615,)", R"("replicas":1000,"parallelism":1000,)"}) {
    EXPECT_EQ(error_of(object_of("Deployment", "{" + std::string(many) + R"("template":{"spec":%s}})")), error) << many;
  }
}

TEST(Manifest, AReplicaOfALeaderWorkerSetHasManyPods) {
  const Manifest plain = manifest_of(
      object_of("LeaderWorkerSet", R"({"replicas":2,"leaderWorkerTemplate":{"size":4,"workerTemplate":{"spec":%s}}})"));
  ASSERT_EQ(plain.groups.size(), 1U);
  EXPECT_EQ(plain.groups[0].replicas, 8);
  EXPECT_EQ(plain.groups[0].pod.name, "o-worker");
  const Manifest led = manifest_of(object_of(
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
    return error_of(object_of("Pod", R"({"containers":[{"name":"c","resources":{"limits":)" + amounts + "}}]}"));
  };
  EXPECT_EQ(error(R"({"aws.amazon.com/neuron":4,"cpu":"1.5","memory":1e9,"vpc.amazonaws.com/pod-eni":"1"})"), "");
  EXPECT_EQ(error(R"({"nvidia.com/gpu":"x"})"), "default/o: container c: limits: nvidia.com/gpu: \"x\" is no quantity");
  EXPECT_EQ(error(R"({"aws.amazon.com/neuron":"1.5"})"),
            "default/o: container c: limits: aws.amazon.com/neuron: \"1.5\" is no whole number that can be asked for");
  for (const char* bad : {"1.5", "-4", "\"-4\"", "\"99999999999999999999999\"", "null", "\"\"", "{}"}) {
    EXPECT_THAT(error(R"({"vpc.amazonaws.com/efa":)" + std::string(bad) + "}"), HasSubstr(bad));
  }
  for (const char* name : {"aws.amazon.com/neurons", "vpc.amazonaws.com/efas"}) {
    EXPECT_THAT(error(R"({")" + std::string(name) + R"(":"4"})"), HasSubstr(std::string(name) + ": \"4\": the agent"));
  }
  EXPECT_THAT(
      error_of(object_of("ResourceClaim", R"({"devices":{"requests":[{"name":"r","exactly":{"count":1.5}}]}})")),
      HasSubstr("default/o: request r: count: 1.5"));
}

TEST(Manifest, HugeCountsOfClaimsAreBounded) {
  const std::string requests =
      R"([{"name":"r","exactly":{"deviceClassName":"neuron.aws.com","count":9223372036854775807}},)"
      R"({"name":"s","exactly":{"deviceClassName":"neuron.aws.com","count":18446744073709551615}},)"
      R"({"name":"u","firstAvailable":[{"name":"v","deviceClassName":"neuron.aws.com","count":9223372036854775807}]}])";
  const Manifest manifest = manifest_of(
      object_of("ResourceClaimTemplate", R"({"spec":{"devices":{"requests":)" + requests + "}}}") +
      object_of("Pod",
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

TEST(Manifest, VolumesOfAStatefulSetAreNotCounted) {
  const Manifest set = manifest_of(object_of("StatefulSet", R"({"volumeClaimTemplates":[{}],"template":{"spec":%s}})"));
  EXPECT_THAT(set.groups.front().not_counted, testing::ElementsAre("persistent volumes"));
}

TEST(Manifest, CountsThatAreNoNumbersAreErrors) {
  const auto error = [](const std::string& counts) {
    return error_of(object_of("Deployment", "{" + counts + R"("template":{"spec":%s}})"));
  };
  EXPECT_EQ(error(R"("replicas":"30",)"), "default/o: replicas: \"30\" is no number of pods");
  EXPECT_EQ(error(R"("replicas":-3,)"), "default/o: replicas: -3 is no number of pods");
  EXPECT_EQ(error(R"("replicas":2.5,)"), "default/o: replicas: 2.5 is no number of pods");
  EXPECT_THAT(error(R"("replicas":10000000000000000000000000,)"), HasSubstr("default/o: replicas: 1e+25 is no"));
  EXPECT_THAT(error(R"("parallelism":true,)"), HasSubstr("default/o: parallelism: true is no"));
  EXPECT_THAT(error(R"("completions":"2",)"), HasSubstr("default/o: completions: \"2\" is no"));
  EXPECT_EQ(error(R"("replicas":null,)"), "");
  EXPECT_EQ(error(R"("replicas":0,)"), "");
  EXPECT_THAT(
      error_of(object_of("LeaderWorkerSet", R"({"leaderWorkerTemplate":{"size":"4","workerTemplate":{"spec":%s}}})")),
      HasSubstr("default/o: size: \"4\" is no"));
}

TEST(Manifest, FieldsOfTheSameNameThatAreNoCountsOfPodsAreLeftOut) {
  const Manifest manifest = manifest_of(object_of(
      "Other", R"({"parallelism":{"tensor":8},"autoscaler":{"replicas":"auto"},"replicas":2,"template":{"spec":%s}})"));
  EXPECT_EQ(manifest.groups.front().replicas, 2);
}

TEST(Manifest, AWorkerGroupOfARayClusterHasManyHosts) {
  const Manifest ray = manifest_of(object_of(
      "RayCluster", R"({"headGroupSpec":{"template":{"spec":%s}},)"
                    R"("workerGroupSpecs":[{"groupName":"g","replicas":2,"numOfHosts":3,"template":{"spec":%s}}]})"));
  ASSERT_EQ(ray.groups.size(), 2U);
  EXPECT_EQ(ray.groups[0].pod.name, "o-head");
  EXPECT_EQ(ray.groups[0].replicas, 1);
  EXPECT_EQ(ray.groups[1].pod.name, "o-g");
  EXPECT_EQ(ray.groups[1].replicas, 6);
}

TEST(Manifest, ExclusiveTopologyIsNotCounted) {
  const auto rules = [](const std::string& text) { return manifest_of(text).groups.front().not_counted; };
  const std::string spec =
      R"("spec":{"replicatedJobs":[{"name":"w","template":{%m"spec":{"template":{"spec":)" + kPodSpec + "}}}}]}}";
  const auto job_set = [&](const std::string& outer, const std::string& inner) {
    std::string text = R"({"kind":"JobSet","metadata":{"name":"s")" + outer + "}," + spec;
    return text.replace(text.find("%m"), 2, inner);
  };
  const std::string js = R"("annotations":{"alpha.jobset.sigs.k8s.io/exclusive-topology":"kubernetes.io/hostname"})";
  const std::string lws = R"("annotations":{"leaderworkerset.sigs.k8s.io/exclusive-topology":"zone"})";
  EXPECT_THAT(rules(job_set("", "")), testing::IsEmpty());
  EXPECT_THAT(rules(job_set("," + js, "")), testing::ElementsAre("exclusive topology"));
  EXPECT_THAT(rules(job_set("," + lws, "")), testing::ElementsAre("exclusive topology"));
  EXPECT_THAT(rules(job_set("", R"("metadata":{)" + js + "},")), testing::ElementsAre("exclusive topology"));
  EXPECT_THAT(rules(job_set("," + js, "") + job_set("", "")), testing::ElementsAre("exclusive topology"));
  EXPECT_THAT(manifest_of(job_set("," + js, "") + job_set("", "")).groups[1].not_counted, testing::IsEmpty());
}

TEST(Manifest, TextBesideItsObjectsIsAnError) {
  EXPECT_EQ(error_of(deployment(1) + "\n \r\n\t" + deployment(1) + "\n"), "");
  EXPECT_EQ(error_of(deployment(1) + " garbage"), "text that is no object: garbage");
  EXPECT_THAT(error_of(deployment(1) + ",\n" + deployment(1)), HasSubstr("text that is no object: ,"));
  EXPECT_EQ(error_of(deployment(1) + "}"), "text that is no object: }");
}

}  // namespace
}  // namespace neuron::fleet::test
