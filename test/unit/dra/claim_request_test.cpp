#include "plugin/dra/claim/claim_request.h"

#include <gtest/gtest.h>

#include "test/unit/dra/claim_texts.h"

namespace neuron::plugin::dra {
namespace {

constexpr const char* kDriver = "neuron.aws.com";

TEST(ResourceClaim, GivesWhatTheOwnDriverHasToDo) {
  json object =
      claim_json("c", "u-1",
                 {{"chips", "neuron-device-3"}, {"nics/near", "efa-rdmap16s25"}, {"other", "gpu-0", "gpu.example.com"}},
                 {config_json("FromClaim", {"chips"}, neuron_config(1)), config_json("FromClass", {}, neuron_config(2)),
                  config_json("FromClass", {}, json::object(), "gpu.example.com")});
  reserve_for(object, "p", "pod-1");
  object["status"]["reservedFor"].push_back({{"apiGroup", "batch"}, {"resource", "jobs"}, {"name", "j"}});
  const auto claim = parse_resource_claim(object.dump(), kDriver);
  ASSERT_TRUE(claim) << claim.error().message;
  EXPECT_EQ(claim->claim_namespace, "default");
  EXPECT_EQ(claim->uid, "u-1");
  EXPECT_EQ(claim->resource_version, "7");
  EXPECT_TRUE(claim->is_allocated);
  ASSERT_EQ(claim->results.size(), 2U);
  EXPECT_EQ(claim->results[0].device, "neuron-device-3");
  EXPECT_EQ(claim->results[1].request, "nics");
  EXPECT_EQ(claim->results[1].subrequest, "near");
  EXPECT_EQ(claim->results[1].full_request(), "nics/near");
  ASSERT_EQ(claim->configs.size(), 2U);
  EXPECT_TRUE(claim->configs[0].from_class);  // whatever the order of the text
  EXPECT_EQ(claim->pods, (std::vector<PodRef>{{"p", "pod-1"}}));
}

// The allocation is the same in all versions; the request, whose tolerations older servers do not copy, is not.
TEST(ResourceClaim, TolerationsOfTheRequestCountInEveryVersion) {
  const json exists = {{"key", "neuron.aws.com/unhealthy"}, {"operator", "Exists"}};
  const json requests_v1 = {{{"name", "chips"}, {"exactly", {{"tolerations", {exists}}}}}};
  const json requests_v1beta1 = {{{"name", "chips"}, {"tolerations", {exists}}}};
  for (const json& requests : {requests_v1, requests_v1beta1}) {
    json object = claim_json("c", "u", {{"chips", "neuron-device-3"}});
    object["spec"]["devices"]["requests"] = requests;
    const auto claim = parse_resource_claim(object.dump(), kDriver);
    ASSERT_TRUE(claim);
    EXPECT_TRUE(tolerates(claim->results[0].tolerations, "neuron.aws.com/unhealthy", "hw_error", "NoSchedule"));
  }
  json object = claim_json("c", "u", {{"chips/b", "neuron-device-3"}});
  object["spec"]["devices"]["requests"] = {
      {{"name", "chips"}, {"firstAvailable", {{{"name", "a"}}, {{"name", "b"}, {"tolerations", {exists}}}}}}};
  EXPECT_EQ(parse_resource_claim(object.dump(), kDriver)->results[0].tolerations.size(), 1U);
}

TEST(ResourceClaim, ATolerationHasToAgreeInAllItSays) {
  EXPECT_FALSE(tolerates({}, "k", "v", "NoSchedule"));
  EXPECT_TRUE(tolerates({{"", true, "", ""}}, "k", "v", "NoSchedule"));
  EXPECT_TRUE(tolerates({{"k", false, "v", ""}}, "k", "v", "NoExecute"));
  EXPECT_FALSE(tolerates({{"k", false, "w", ""}}, "k", "v", "NoSchedule"));
  EXPECT_FALSE(tolerates({{"k", true, "", "NoExecute"}}, "k", "v", "NoSchedule"));
  EXPECT_FALSE(tolerates({{"other", true, "", ""}}, "k", "v", "NoSchedule"));
}

TEST(ResourceClaim, ConsumersThatAreNoPodsAreKeptByName) {
  json text = claim_json("c", "u", {{"r", "neuron-device-0"}});
  reserve_for(text, "p", "pod-uid");
  reserve_for_group(text, "train");
  const auto claim = parse_resource_claim(text.dump(), kDriver);
  ASSERT_TRUE(claim);
  EXPECT_EQ(claim->pods, (std::vector<PodRef>{{"p", "pod-uid"}}));
  EXPECT_EQ(claim->other_consumers, (std::vector<std::string>{"podgroups/train"}));
}

TEST(ResourceClaim, WhatIsNoClaimIsAnErrorAndOddFieldsAreNot) {
  EXPECT_FALSE(parse_resource_claim("", kDriver));
  EXPECT_FALSE(parse_resource_claim("[]", kDriver));
  EXPECT_FALSE(parse_resource_claim(R"({"metadata":{"name":"c"}})", kDriver));
  const auto odd = parse_resource_claim(
      R"({"metadata":{"name":"c","uid":"u"},"status":{"allocation":7,"reservedFor":{}}})", kDriver);
  ASSERT_TRUE(odd);
  EXPECT_FALSE(odd->is_allocated);
  json endless = claim_json("c", "u", std::vector<ResultText>(129, ResultText{"r", "neuron-device-0"}));
  EXPECT_FALSE(parse_resource_claim(endless.dump(), kDriver));
}

TEST(ResourceClaim, AdminAccessAndShareIdsAreRead) {
  const json object =
      claim_json("c", "u", {{"r", "neuron-device-0", kDriver, "n1", {{"adminAccess", true}, {"shareID", "s-1"}}}});
  const auto claim = parse_resource_claim(object.dump(), kDriver);
  ASSERT_TRUE(claim);
  EXPECT_TRUE(claim->results[0].admin_access);
  EXPECT_EQ(claim->results[0].share_id, "s-1");
}

}  // namespace
}  // namespace neuron::plugin::dra
