#include "plugin/dra/claim/claim_config.h"

#include <gtest/gtest.h>

#include "test/unit/dra/claim_texts.h"

namespace neuron::plugin::dra {
namespace {

OpaqueConfig config(bool from_class, std::vector<std::string> requests, const json& parameters) {
  return {from_class, std::move(requests), parameters.dump()};
}

json ultraserver(int mode) {
  return {{"apiVersion", "neuron.aws.com/v1"}, {"kind", "UltraServerConfig"}, {"ultraserverMode", mode}};
}

std::string error_of(const json& parameters) {
  const auto found = config_for({config(false, {}, parameters)}, "r");
  return found ? "" : found.error().message;
}

TEST(ClaimConfig, EveryFormOfAwsIsTaken) {
  for (const char* version : {"neuron.aws.com/v1", "neuron.aws.com/v1alphav1", "resource.neuron.aws.com/v1alphav1"}) {
    for (const int lnc : {1, 2}) {
      const auto found = config_for({config(false, {"r"}, neuron_config(lnc, version))}, "r");
      ASSERT_TRUE(found) << found.error().message;
      EXPECT_EQ(found->lnc, lnc);
      EXPECT_EQ(found->ultraserver_mode, std::nullopt);
    }
  }
  const auto both = config_for({config(false, {}, neuron_config(2)), config(false, {}, ultraserver(4))}, "r");
  ASSERT_TRUE(both);
  EXPECT_EQ(*both, (RequestConfig{2, 4}));
}

TEST(ClaimConfig, TheClaimGoesBeforeTheClassAndTheLaterBeforeTheEarlier) {
  EXPECT_EQ(config_for({config(false, {}, neuron_config(1)), config(true, {}, neuron_config(2))}, "r")->lnc, 1);
  EXPECT_EQ(config_for({config(true, {}, neuron_config(1)), config(true, {}, neuron_config(2))}, "r")->lnc, 2);
}

// Two other drivers compare names literally and miss the middle case.
TEST(ClaimConfig, ARequestCoversItsAlternatives) {
  const auto lnc = [](std::vector<std::string> requests, const std::string& request) {
    return config_for({config(false, std::move(requests), neuron_config(1))}, request)->lnc;
  };
  EXPECT_EQ(lnc({}, "r/a"), 1);
  EXPECT_EQ(lnc({"r"}, "r/a"), 1);
  EXPECT_EQ(lnc({"r/a"}, "r/a"), 1);
  EXPECT_EQ(lnc({"r/b"}, "r/a"), std::nullopt);
  EXPECT_EQ(lnc({"r/a"}, "r"), std::nullopt);
  EXPECT_EQ(lnc({"other"}, "r"), std::nullopt);
}

// A configuration that nobody understands says field and accepted values.
TEST(ClaimConfig, Pain37ErrorsSayTheFieldAndWhatItTakes) {
  json misspelt = neuron_config(2);
  misspelt["logicalNeuronCoreCount"] = 2;
  EXPECT_EQ(
      error_of(misspelt),
      "error applying config: strict decoding error: unknown field \"logicalNeuronCoreCount\"; NeuronConfig takes "
      "logicalNeuronCore: 1 or 2");
  EXPECT_EQ(error_of(neuron_config(3)),
            "error applying config: logicalNeuronCore is 3; NeuronConfig takes logicalNeuronCore: 1 or 2");
  EXPECT_EQ(error_of(ultraserver(3)),
            "error applying config: ultraserverMode is 3; UltraServerConfig takes ultraserverMode: 1, 2 or 4");
  EXPECT_EQ(error_of({{"apiVersion", "neuron.aws.com/v1"}, {"kind", "NeuronConfig"}}),
            "error applying config: logicalNeuronCore is missing; NeuronConfig takes logicalNeuronCore: 1 or 2");
  EXPECT_EQ(error_of({{"apiVersion", "neuron.aws.com/v1"}, {"kind", "GpuConfig"}}),
            "error applying config: kind is \"GpuConfig\"; it must be NeuronConfig or UltraServerConfig");
  EXPECT_THAT(error_of(neuron_config(1, "neuron.aws.com/v2")),
              testing::HasSubstr("apiVersion is \"neuron.aws.com/v2\"; it must be \"neuron.aws.com/v1\""));
  EXPECT_THAT(error_of(json("text")), testing::HasSubstr("not an object with apiVersion and kind"));
  json text = neuron_config(1);
  text["logicalNeuronCore"] = "1";
  EXPECT_THAT(error_of(text), testing::HasSubstr("logicalNeuronCore is \"1\""));
  text["logicalNeuronCore"] = 1.5;
  EXPECT_THAT(error_of(text), testing::HasSubstr("logicalNeuronCore is 1.5"));
}

TEST(ClaimConfig, ProblemAndFixOfARefusalAreApart) {
  const auto refusal = [](const json& parameters) { return refusal_of(config(false, {}, parameters)); };
  EXPECT_EQ(refusal(neuron_config(1)), std::nullopt);
  json other = neuron_config(1);
  other["kind"] = "a; b";
  EXPECT_EQ(refusal(other),
            (ConfigRefusal{"error applying config: kind is \"a; b\"", "it must be NeuronConfig or UltraServerConfig"}));
  EXPECT_EQ(error_of(other), refusal(other)->problem + "; " + refusal(other)->fix);
  EXPECT_EQ(refusal("; "), (ConfigRefusal{error_of("; "), ""}));
}

TEST(ClaimConfig, AnEntryForAnotherRequestIsLookedAtToo) {
  EXPECT_FALSE(config_for({config(false, {"other"}, neuron_config(9))}, "r"));
}

}  // namespace
}  // namespace neuron::plugin::dra
