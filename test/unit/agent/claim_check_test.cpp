#include "plugin/dra/claim/claim_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <tuple>

#include "test/fakes/paths.h"
#include "test/unit/dra/claim_texts.h"

namespace neuron::plugin::dra {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kDriver = "neuron.aws.com";

json entry(const json& parameters, const std::string& driver = kDriver) {
  return {{"requests", {"chips"}}, {"opaque", {{"driver", driver}, {"parameters", parameters}}}};
}

json object(const std::string& kind, const json& configs) {
  const json devices = {{"devices", {{"config", configs}}}};
  const json spec = kind == "DeviceClass"             ? json{{"config", configs}}
                    : kind == "ResourceClaimTemplate" ? json{{"spec", devices}}
                                                      : devices;
  return {{"kind", kind}, {"metadata", {{"namespace", "ml"}, {"name", "c"}}}, {"spec", spec}};
}

CheckedClaims checked(const std::string& text) {
  const auto result = check_claims(text, kDriver);
  EXPECT_TRUE(result) << result.error().message;
  return result.value_or(CheckedClaims());
}

std::string error_of(const std::string& text) {
  const auto result = check_claims(text, kDriver);
  return result ? "" : result.error().message;
}

// The same table is what the admission policy is held to (test/manifests, TestClaimPolicy of test/cluster).
TEST(ClaimCheck, TheTableIsWhatPrepareRefuses) {
  std::ifstream file(fakes::source_dir() + "/test/fixtures/claims/configs.json");
  const json table = json::parse(std::string(std::istreambuf_iterator<char>(file), {}));
  EXPECT_GT(table.size(), 30U);
  for (const json& row : table) {
    const std::string name = row.at("name");
    const std::string verdict = row.at("verdict");
    const std::string driver = row.value("driver", kDriver);
    const json config = config_json("FromClaim", {"r"}, row.at("parameters"), driver);
    const auto claim = parse_resource_claim(claim_json("c", "u", {{"r", "d"}}, json::array({config})).dump(), kDriver);
    ASSERT_TRUE(claim);
    const auto prepared = config_for(claim->configs, "r");
    EXPECT_EQ(prepared.has_value(), verdict != "refused") << name;
    const std::string message = prepared ? "" : prepared.error().message;
    EXPECT_THAT(message, HasSubstr(row.value("says", ""))) << name;

    for (const char* kind : {"ResourceClaim", "ResourceClaimTemplate", "DeviceClass"}) {
      const CheckedClaims found = checked(object(kind, json::array({entry(row.at("parameters"), driver)})).dump());
      EXPECT_EQ(found.objects, 1U);
      ASSERT_EQ(found.faults.size(), verdict == "accepted" ? 0U : 1U) << name << ", " << kind;
      if (verdict == "accepted") continue;
      const ConfigFault& fault = found.faults[0];
      EXPECT_EQ(fault.kind == ConfigFault::Kind::refused, verdict == "refused") << name;
      if (prepared || fault.problem == message) continue;  // the one without advice of its own
      EXPECT_EQ(fault.problem + "; " + fault.fix, message);
    }
  }
}

// The same table too; Prepare's message is in claims_shares_test.cpp.
TEST(ClaimCheck, ARequestForNoCoresIsRefused) {
  std::ifstream file(fakes::source_dir() + "/test/fixtures/claims/requests.json");
  const json table = json::parse(std::string(std::istreambuf_iterator<char>(file), {}));
  EXPECT_GT(table.size(), 10U);
  for (const json& row : table) {
    const std::string name = row.at("name"), refused = row.value("refused", "");
    json request = row.at("request");
    request["name"] = "r";
    const json devices = {{"requests", {{{"name", "q"}, {"exactly", {{"deviceClassName", kDriver}}}}, request}}};
    for (const auto& [kind, spec, path] :
         {std::tuple("ResourceClaim", json{{"devices", devices}}, "spec.devices.requests[1]."),
          std::tuple("ResourceClaimTemplate", json{{"spec", {{"devices", devices}}}},
                     "spec.spec.devices.requests[1].")}) {
      const CheckedClaims found = checked(json{{"kind", kind}, {"spec", spec}}.dump());
      ASSERT_EQ(found.faults.size(), refused.empty() ? 0U : 1U) << name;
      if (refused.empty()) continue;
      EXPECT_EQ(found.faults[0].kind, ConfigFault::Kind::refused);
      EXPECT_EQ(found.faults[0].path, path + refused);
      EXPECT_EQ(found.faults[0].problem, "the request \"r\" has no core of its device");
      EXPECT_EQ(found.faults[0].fix, "request at least one");
    }
  }
}

TEST(ClaimCheck, NoCoresInOtherWords) {
  const json wish = {
      {"name", "r"}, {"deviceClassName", "core.x.example.com"}, {"capacity", {{"requests", {{"cores", 0}}}}}};
  const std::string text = json{{"kind", "ResourceClaim"}, {"spec", {{"devices", {{"requests", {wish}}}}}}}.dump();
  EXPECT_THAT(checked(text).faults, IsEmpty()) << "another driver's";
  const auto found = check_claims(text, "x.example.com");
  ASSERT_EQ(found->faults.size(), 1U) << "a number, and v1beta1";
  EXPECT_EQ(found->faults[0].path, "spec.devices.requests[0].capacity.requests.cores");
  EXPECT_EQ(found->faults[0].value, "0");
}

TEST(ClaimCheck, APlaceIsNamed) {
  const json good = entry(neuron_config(1));
  const json bad = entry(neuron_config(3));
  const json list = {{"kind", "List"},
                     {"items",
                      {object("ResourceClaimTemplate", {good, bad}),
                       object("DeviceClass", json::array({bad})),
                       {{"kind", "Pod"}, {"spec", {{"config", json::array({bad})}}}}}}};
  const CheckedClaims found = checked(list.dump() + "\n" + object("ResourceClaim", {good, good, bad}).dump(2));
  EXPECT_EQ(found.objects, 3U);
  EXPECT_EQ(found.configs, 6U);
  ASSERT_EQ(found.faults.size(), 3U);
  EXPECT_EQ(found.faults[0].object, "ResourceClaimTemplate ml/c");
  EXPECT_EQ(found.faults[0].path, "spec.spec.devices.config[1].opaque.parameters");
  EXPECT_EQ(found.faults[0].value, R"({"apiVersion":"neuron.aws.com/v1","kind":"NeuronConfig","logicalNeuronCore":3})");
  EXPECT_EQ(found.faults[0].problem, "error applying config: logicalNeuronCore is 3");
  EXPECT_EQ(found.faults[0].fix, "NeuronConfig takes logicalNeuronCore: 1 or 2");
  EXPECT_EQ(found.faults[1].path, "spec.config[0].opaque.parameters");
  EXPECT_EQ(found.faults[2].path, "spec.devices.config[2].opaque.parameters");
}

TEST(ClaimCheck, AnotherDriverIsNamed) {
  json nameless =
      object("ResourceClaim", {entry(neuron_config(1), "neuron.amazonaws.com"), entry(neuron_config(1), "")});
  nameless["metadata"] = {{"generateName", "x-"}};
  const CheckedClaims found = checked(nameless.dump());
  EXPECT_EQ(found.configs, 0U);
  ASSERT_EQ(found.faults.size(), 2U);
  EXPECT_EQ(found.faults[0].object, "ResourceClaim x-*");
  EXPECT_EQ(found.faults[0].path, "spec.devices.config[0].opaque.driver");
  EXPECT_EQ(found.faults[0].value, "\"neuron.amazonaws.com\"");
}

// As the API server lists them: items without a kind.
TEST(ClaimCheck, ItemsOfATypedList) {
  json one = object("ResourceClaim", json::array({entry(neuron_config(3))}));
  one.erase("kind");
  EXPECT_EQ(checked(json{{"kind", "ResourceClaimList"}, {"items", json::array({one})}}.dump()).faults.size(), 1U);
}

TEST(ClaimCheck, OddObjectsHaveNoConfiguration) {
  for (const char* text :
       {"", " \n", "{}", R"({"kind":"ResourceClaim"})", R"({"kind":"ResourceClaim","spec":{"devices":{"config":{}}}})",
        R"({"kind":"DeviceClass","spec":{"config":[1,null,{"opaque":[]}]}})",
        R"({"kind":"ResourceClaim","spec":{"devices":{"requests":[1,null,{"exactly":[]},{"firstAvailable":[2]}]}}})",
        R"({"kind":"ResourceClaim","spec":{"devices":{"requests":{"exactly":1}}}})", R"({"kind":"List","items":{}})"}) {
    EXPECT_THAT(checked(text).faults, IsEmpty()) << text;
  }
}

TEST(ClaimCheck, WhatIsNoJsonIsSaid) {
  for (const char* text : {"kind: ResourceClaim\n", "{\"kind\": \"List\"} ---", "{\"a\": ", "{\"a\": \"}", "]"}) {
    EXPECT_THAT(error_of(text), HasSubstr("not JSON; convert it with kubectl create --dry-run=client -o json")) << text;
  }
  EXPECT_EQ(error_of("{} {a}"), "document 2 is not a JSON object");
  EXPECT_EQ(error_of("[{}]"), "document 1 is not a JSON object");
  const std::string deep = std::string(100, '[') + std::string(100, ']');
  EXPECT_EQ(error_of("{\"a\": " + deep + "}"), "document 1 is not a JSON object");
}

// Foreign text is shown, but not all of it and no control characters.
TEST(ClaimCheck, ForeignTextIsPrintable) {
  json hostile = neuron_config(1);
  hostile[std::string(5000, 'x') + "\x1b[31m"] = "; ";
  json named = object("ResourceClaim", json::array({entry(hostile)}));
  named["metadata"]["name"] = "a\nb";
  const CheckedClaims found = checked(named.dump());
  ASSERT_EQ(found.faults.size(), 1U);
  EXPECT_EQ(found.faults[0].object, "ResourceClaim ml/a\\x0ab");
  EXPECT_LT(found.faults[0].problem.size() + found.faults[0].value.size(), 400U);
  EXPECT_EQ(found.faults[0].fix, "NeuronConfig takes logicalNeuronCore: 1 or 2");
}

}  // namespace
}  // namespace neuron::plugin::dra
