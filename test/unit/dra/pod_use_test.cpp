#include "plugin/dra/claim/claim_request.h"

#include <gtest/gtest.h>

#include "test/unit/dra/claim_texts.h"

namespace neuron::plugin::dra {
namespace {

using Uses = std::map<std::string, UsedRequests>;

TEST(PodUse, SaysWhichRequestsEachContainerUses) {
  const json pod = pod_json(
      "p", "pod-1",
      {{"prepare", {{"a", "chips"}}, true}, {"train", {{"a", "chips"}, {"a", "nics"}, {"b", ""}}}, {"log", {}}});
  const auto use = parse_pod_use(pod.dump());
  ASSERT_TRUE(use) << use.error().message;
  EXPECT_EQ(use->uid, "pod-1");
  EXPECT_FALSE(use->has_ended);
  ASSERT_EQ(use->containers.size(), 2U);
  EXPECT_EQ(use->containers[0].name, "prepare");
  EXPECT_EQ(use->containers[0].claims, (Uses{{"a", {"chips"}}}));
  EXPECT_EQ(use->containers[1].claims, (Uses{{"a", {"chips", "nics"}}, {"b", {}}}));
}

TEST(PodUse, ThePartsOfAClaimThatIsUsedAsAWholeDoNotNarrowIt) {
  for (const auto& uses : {std::vector<std::pair<std::string, std::string>>{{"a", ""}, {"a", "chips"}},
                           std::vector<std::pair<std::string, std::string>>{{"a", "chips"}, {"a", ""}}}) {
    const auto use = parse_pod_use(pod_json("p", "u", {{"c", uses}}).dump());
    EXPECT_EQ(use->containers.at(0).claims, (Uses{{"a", {}}}));
  }
}

TEST(PodUse, ClaimsOfTemplatesHaveTheNameInTheStatus) {
  json pod = pod_json("p", "u", {{"c", {{"mine", "chips"}, {"later", ""}}}});
  pod["spec"]["resourceClaims"] = {{{"name", "mine"}, {"resourceClaimTemplateName", "t"}},
                                   {{"name", "later"}, {"resourceClaimTemplateName", "t"}}};
  pod["status"]["resourceClaimStatuses"] = {{{"name", "mine"}, {"resourceClaimName", "p-mine-x7k2p"}}};
  const auto use = parse_pod_use(pod.dump());
  EXPECT_EQ(use->containers.at(0).claims, (Uses{{"p-mine-x7k2p", {"chips"}}}));
}

TEST(PodUse, ExtendedResourcesAreUsesOfTheSchedulersClaim) {
  json pod = pod_json("p", "u", {{"init", {}, true}, {"c", {{"a", ""}}}});
  pod["status"]["extendedResourceClaimStatus"] = {
      {"resourceClaimName", "p-extended-resources-x"},
      {"requestMappings",
       {{{"containerName", "c"}, {"resourceName", "aws.amazon.com/neuron"}, {"requestName", "container-0-request-0"}},
        {{"containerName", "init"},
         {"resourceName", "aws.amazon.com/neuron"},
         {"requestName", "container-0-request-0"}},
        {{"containerName", "gone"}, {"requestName", "x"}}}}};
  const auto use = parse_pod_use(pod.dump());
  ASSERT_EQ(use->containers.size(), 2U);
  EXPECT_EQ(use->containers[0].claims, (Uses{{"p-extended-resources-x", {"container-0-request-0"}}}));
  EXPECT_EQ(use->containers[1].claims, (Uses{{"a", {}}, {"p-extended-resources-x", {"container-0-request-0"}}}));
}

TEST(PodUse, AnEndedPodUsesNothing) {
  json pod = pod_json("p", "u", {});
  for (const char* phase : {"Succeeded", "Failed"}) {
    pod["status"]["phase"] = phase;
    EXPECT_TRUE(parse_pod_use(pod.dump())->has_ended);
  }
}

TEST(PodUse, TheLongerGracePeriodCounts) {
  using std::chrono::seconds;
  json pod = pod_json("p", "u", {});
  EXPECT_EQ(parse_pod_use(pod.dump())->grace, seconds(30));
  pod["spec"]["terminationGracePeriodSeconds"] = 600;
  EXPECT_EQ(parse_pod_use(pod.dump())->grace, seconds(600));
  pod["metadata"]["deletionGracePeriodSeconds"] = 5;
  EXPECT_EQ(parse_pod_use(pod.dump())->grace, seconds(600));
  pod["metadata"]["deletionGracePeriodSeconds"] = 900;
  EXPECT_EQ(parse_pod_use(pod.dump())->grace, seconds(900));
  pod["spec"]["terminationGracePeriodSeconds"] = std::int64_t{1} << 60;
  EXPECT_EQ(parse_pod_use(pod.dump())->grace, kMaxGrace);
}

TEST(PodUse, WhatIsNoPodOrTooLargeIsAnError) {
  EXPECT_FALSE(parse_pod_use("{}"));
  EXPECT_FALSE(parse_pod_use(R"({"metadata":{"uid":"u"}})"));
  EXPECT_TRUE(parse_pod_use(R"({"metadata":{"uid":"u"},"spec":{"containers":[7,null,{"resources":[]}]}})"));
  EXPECT_FALSE(parse_pod_use(pod_json("p", "u", std::vector<ContainerText>(1025, ContainerText{"c", {}})).dump()));
}

}  // namespace
}  // namespace neuron::plugin::dra
