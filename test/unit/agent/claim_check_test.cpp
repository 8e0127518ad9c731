#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <tuple>

#include "plugin/dra/claim/claim_config.h"
#include "test/fakes/paths.h"
#include "test/unit/dra/claim_texts.h"
#include "tools/neuron-agent/reports.h"

namespace neuron::agent::test {
namespace {

using nlohmann::json;
using plugin::dra::claim_json;
using plugin::dra::config_json;
using plugin::dra::neuron_config;
using preflight::Finding;
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

std::string problem_of(const Finding& finding) {
  return finding.sentence.substr(finding.subjects.at(0).size() + 2);
}

// "CODE PATH VALUE" of each finding.
std::vector<std::string> brief(const CheckedClaims& checked) {
  std::vector<std::string> all;
  for (const Finding& one : checked.findings) {
    all.push_back(one.code + " " + one.evidence.at(0).path + " " + one.evidence.at(0).value);
    EXPECT_NE(one.fix, "");
  }
  return all;
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
    const auto claim =
        plugin::dra::parse_resource_claim(claim_json("c", "u", {{"r", "d"}}, json::array({config})).dump(), kDriver);
    ASSERT_TRUE(claim);
    const auto prepared = plugin::dra::config_for(claim->configs, "r");
    EXPECT_EQ(prepared.has_value(), verdict != "refused") << name;
    const std::string message = prepared ? "" : prepared.error().message;
    EXPECT_THAT(message, HasSubstr(row.value("says", ""))) << name;

    for (const char* kind : {"ResourceClaim", "ResourceClaimTemplate", "DeviceClass"}) {
      const CheckedClaims found = checked(object(kind, json::array({entry(row.at("parameters"), driver)})).dump());
      EXPECT_EQ(found.objects, 1U);
      ASSERT_EQ(found.findings.size(), verdict == "accepted" ? 0U : 1U) << name << ", " << kind;
      if (verdict == "accepted") continue;
      const Finding& fault = found.findings[0];
      EXPECT_EQ(fault.code, verdict == "refused" ? "config_refused" : "config_of_other_driver") << name;
      if (prepared || problem_of(fault) == message) continue;  // the one without advice of its own
      EXPECT_EQ(problem_of(fault) + "; " + fault.fix, message);
    }
  }
}

// The same table too; Prepare's message is in claims_shares_test.cpp.
TEST(ClaimCheck, ARequestForNoCoresIsRefused) {
  std::ifstream file(fakes::source_dir() + "/test/fixtures/claims/requests.json");
  const json table = json::parse(std::string(std::istreambuf_iterator<char>(file), {}));
  EXPECT_GT(table.size(), 35U);
  for (const json& row : table) {
    const std::string name = row.at("name"), refused = row.value("refused", ""),
                      unreadable = row.value("unreadable", "");
    json request = row.at("request");
    request["name"] = "r";
    const json devices = {{"requests", {{{"name", "q"}, {"exactly", {{"deviceClassName", kDriver}}}}, request}}};
    for (const auto& [kind, spec, path] :
         {std::tuple("ResourceClaim", json{{"devices", devices}}, "spec.devices.requests[1]."),
          std::tuple("ResourceClaimTemplate", json{{"spec", {{"devices", devices}}}},
                     "spec.spec.devices.requests[1].")}) {
      const CheckedClaims found = checked(json{{"kind", kind}, {"spec", spec}}.dump());
      ASSERT_EQ(found.findings.size(), refused.empty() && unreadable.empty() ? 0U : 1U) << name;
      if (found.findings.empty()) continue;
      const Finding& fault = found.findings[0];
      EXPECT_EQ(fault.evidence[0].path, path + refused + unreadable);
      EXPECT_EQ(fault.code, refused.empty() ? "claim_malformed" : "config_refused");
      EXPECT_EQ(problem_of(fault), refused.empty() ? "the request \"r\" has an amount that is no quantity"
                                                   : "the request \"r\" has no core of its device");
      EXPECT_EQ(fault.fix, refused.empty() ? "a whole number, as in cores: 1" : "request at least one");
    }
  }
}

TEST(ClaimCheck, NoCoresInOtherWords) {
  const json wish = {
      {"name", "r"}, {"deviceClassName", "core.x.example.com"}, {"capacity", {{"requests", {{"cores", 0}}}}}};
  const std::string text = json{{"kind", "ResourceClaim"}, {"spec", {{"devices", {{"requests", {wish}}}}}}}.dump();
  EXPECT_THAT(checked(text).findings, IsEmpty()) << "another driver's";
  const auto found = check_claims(text, "x.example.com");
  EXPECT_THAT(brief(*found), testing::ElementsAre("config_refused spec.devices.requests[0].capacity.requests.cores 0"))
      << "a number, and v1beta1";
}

TEST(ClaimCheck, WhatIsNeverScheduledIsAWarning) {
  const auto asked = [](const std::string& device_class, const json& amounts) {
    const json wish = {{"deviceClassName", device_class}, {"capacity", {{"requests", amounts}}}};
    return brief(checked(
        json{{"kind", "ResourceClaim"}, {"spec", {{"devices", {{"requests", {{{"exactly", wish}}}}}}}}}.dump()));
  };
  const std::string at = "never_scheduled spec.devices.requests[0].exactly.capacity.requests.";
  EXPECT_THAT(asked("efa.neuron.aws.com", {{"cores", 1}}), testing::ElementsAre(at + "cores 1"));
  EXPECT_THAT(asked("core.neuron.aws.com", {{"core", "1"}}), testing::ElementsAre(at + "core \"1\""));
  EXPECT_THAT(asked("group.neuron.aws.com", {{"cores", 8}}), IsEmpty()) << "a group has cores and memory";
  EXPECT_THAT(asked("gpu.example.com", {{"core", 1}}), IsEmpty());
}

TEST(ClaimCheck, ABodyInTheWrongPlaceIsAnError) {
  for (const auto& [text, place] : std::vector<std::pair<std::string, std::string>>{
           {"{kind: ResourceClaim}", "spec null"},
           {"{kind: DeviceClass, spec: 1}", "spec 1"},
           {"{kind: ResourceClaim, spec: {spec: {devices: {}}}}", "spec.spec {\"devices\":{}}"},
           {"{kind: ResourceClaimTemplate, spec: {devices: {}}}", "spec.spec null"},
           {"{kind: ResourceClaim, spec: {devices: []}}", "spec.devices []"},
           {"{kind: ResourceClaim, spec: {devices: {requests: {}}}}", "spec.devices.requests {}"},
           {"{kind: ResourceClaim, spec: {devices: {config: {}}}}", "spec.devices.config {}"}}) {
    EXPECT_THAT(brief(checked(text)), testing::ElementsAre("claim_malformed " + place)) << text;
  }
}

TEST(ClaimCheck, AKindOfAnotherGroupIsNamedAndSkipped) {
  const CheckedClaims found = checked(
      "apiVersion: example.com/v1\nkind: ResourceClaim\n---\n"
      "apiVersion: v1\nkind: List\nitems: [{apiVersion: resource.k8s.io/v1beta1, kind: ResourceClaim, spec: {}}]\n");
  EXPECT_EQ(found.objects, 1U);
  EXPECT_THAT(brief(found), testing::ElementsAre("not_checked apiVersion \"example.com/v1\""));
  EXPECT_EQ(found.findings[0].severity, preflight::Severity::info);
}

TEST(ClaimCheck, YamlIsReadAsKubectlReadsIt) {
  const CheckedClaims found = checked(R"(# two claims
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: a}
spec:
  devices:
    requests:
    - name: none
      exactly:
        deviceClassName: core.neuron.aws.com
        capacity:
          requests:
            cores: 0x0
    - name: admin
      exactly:
        deviceClassName: core.neuron.aws.com
        adminAccess: yes
        capacity: {requests: {cores: 0}}
---
{"kind": "DeviceClass", "metadata": {"name": "b"}, "spec": {}}
)");
  EXPECT_EQ(found.objects, 2U);
  EXPECT_THAT(brief(found),
              testing::ElementsAre("config_refused spec.devices.requests[0].exactly.capacity.requests.cores 0"));
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
  ASSERT_EQ(found.findings.size(), 3U);
  EXPECT_EQ(found.findings[0].subjects[0], "ResourceClaimTemplate ml/c");
  EXPECT_EQ(found.findings[0].evidence[0].path, "spec.spec.devices.config[1].opaque.parameters");
  EXPECT_EQ(found.findings[0].evidence[0].value,
            R"({"apiVersion":"neuron.aws.com/v1","kind":"NeuronConfig","logicalNeuronCore":3})");
  EXPECT_EQ(problem_of(found.findings[0]), "error applying config: logicalNeuronCore is 3");
  EXPECT_EQ(found.findings[0].fix, "NeuronConfig takes logicalNeuronCore: 1 or 2");
  EXPECT_EQ(found.findings[1].evidence[0].path, "spec.config[0].opaque.parameters");
  EXPECT_EQ(found.findings[2].evidence[0].path, "spec.devices.config[2].opaque.parameters");
}

TEST(ClaimCheck, AnotherDriverIsNamed) {
  json nameless =
      object("ResourceClaim", {entry(neuron_config(1), "neuron.amazonaws.com"), entry(neuron_config(1), "")});
  nameless["metadata"] = {{"generateName", "x-"}};
  const CheckedClaims found = checked(nameless.dump());
  EXPECT_EQ(found.configs, 0U);
  ASSERT_EQ(found.findings.size(), 2U);
  EXPECT_EQ(found.findings[0].subjects[0], "ResourceClaim x-*");
  EXPECT_EQ(found.findings[0].evidence[0].path, "spec.devices.config[0].opaque.driver");
  EXPECT_EQ(found.findings[0].evidence[0].value, "\"neuron.amazonaws.com\"");
}

// As the API server lists them: items without a kind.
TEST(ClaimCheck, ItemsOfATypedList) {
  json one = object("ResourceClaim", json::array({entry(neuron_config(3))}));
  one.erase("kind");
  EXPECT_EQ(checked(json{{"kind", "ResourceClaimList"}, {"items", json::array({one})}}.dump()).findings.size(), 1U);
}

TEST(ClaimCheck, OddObjectsHaveNoConfiguration) {
  for (const char* text :
       {"", " \n", "{}", R"({"kind":"ResourceClaim","spec":{}})",
        R"({"kind":"DeviceClass","spec":{"config":[1,null,{"opaque":[]}]}})",
        R"({"kind":"ResourceClaim","spec":{"devices":{"requests":[1,null,{"exactly":[]},{"firstAvailable":[2]}]}}})",
        R"({"kind":"List","items":{}})"}) {
    EXPECT_THAT(checked(text).findings, IsEmpty()) << text;
  }
}

TEST(ClaimCheck, WhatIsNoDocumentIsSaid) {
  EXPECT_THAT(error_of("{}\n[{}]"), HasSubstr("document 1, line 2: text after the object: [{}]"));
  EXPECT_THAT(error_of("kind: [\n"), HasSubstr("document 1, line 2: end of sequence flow not found"));
}

// Foreign text is shown, but not all of it and no control characters.
TEST(ClaimCheck, ForeignTextIsPrintable) {
  json hostile = neuron_config(1);
  hostile[std::string(5000, 'x') + "\x1b[31m"] = "; ";
  json named = object("ResourceClaim", json::array({entry(hostile)}));
  named["metadata"]["name"] = "a\nb";
  const CheckedClaims found = checked(named.dump());
  ASSERT_EQ(found.findings.size(), 1U);
  EXPECT_EQ(found.findings[0].subjects[0], "ResourceClaim ml/a\\x0ab");
  EXPECT_LT(problem_of(found.findings[0]).size() + found.findings[0].evidence[0].value.size(), 400U);
  EXPECT_EQ(found.findings[0].fix, "NeuronConfig takes logicalNeuronCore: 1 or 2");
}

}  // namespace
}  // namespace neuron::agent::test
