#include "agent/core/offer_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace neuron::test {
namespace {

using testing::HasSubstr;

core::OfferPolicy policy(std::string_view resources, std::string_view core_devices) {
  return {*core::parse_resource_list(resources), *core::parse_core_devices(core_devices)};
}

TEST(OfferPolicy, OffersEverythingUnderEveryNameByDefault) {
  for (const model::Resource resource : model::kAllResources) EXPECT_TRUE(core::OfferPolicy{}.offers(resource, 3));
  EXPECT_TRUE(core::OfferPolicy{}.mixes());
  EXPECT_TRUE(policy("all", "off").mixes());
  EXPECT_FALSE(policy("all", "off").serves(model::Resource::neurondevice)) << "the alias is opt-in";
}

TEST(OfferPolicy, ASplitOffersEachDeviceUnderOneName) {
  const core::OfferPolicy split = policy("neuron,neuroncore,neurondevice,efa", "0-3,8");
  for (int device = 0; device < 16; ++device) {
    const bool as_cores = device < 4 || device == 8;
    EXPECT_EQ(split.offers(model::Resource::neuroncore, device), as_cores) << device;
    EXPECT_EQ(split.offers(model::Resource::neuron, device), !as_cores) << device;
    EXPECT_EQ(split.offers(model::Resource::neurondevice, device), !as_cores) << device;
    EXPECT_TRUE(split.offers(model::Resource::efa, device));
  }
  EXPECT_FALSE(split.mixes());
  EXPECT_TRUE(policy("all", "all").offers(model::Resource::neuroncore, 63));
  EXPECT_FALSE(policy("all", "all").offers(model::Resource::neuron, 0));
  EXPECT_TRUE(policy("all", "none").offers(model::Resource::neuron, 0));
  EXPECT_FALSE(policy("all", "none").offers(model::Resource::neuroncore, 0));
}

TEST(OfferPolicy, OneNameMixesNothing) {
  EXPECT_FALSE(policy("neuroncore,efa", "off").mixes());
  EXPECT_FALSE(policy("neuron,neurondevice", "off").mixes()) << "two names of whole devices";
  EXPECT_TRUE(policy("neurondevice,neuroncore", "off").mixes());
  EXPECT_FALSE(policy("neuroncore", "0-3").offers(model::Resource::neuron, 8));
}

TEST(OfferPolicy, OneNameThatTheSplitGivesNothingOffersNothingOnAnyNode) {
  EXPECT_FALSE(policy("neuroncore", "none").can_offer());
  EXPECT_FALSE(policy("neuron,neurondevice", "all").can_offer());
  for (const char* split : {"off", "all", "0"}) EXPECT_TRUE(policy("neuroncore", split).can_offer()) << split;
  for (const char* split : {"off", "none", "0-3"}) EXPECT_TRUE(policy("neurondevice", split).can_offer()) << split;
  EXPECT_TRUE(policy("neuroncore,efa", "none").can_offer()) << "interfaces";
  EXPECT_TRUE(policy("neuroncore,neuron", "none").can_offer());
  EXPECT_FALSE((core::OfferPolicy{{}, {}}.can_offer()));
}

TEST(OfferPolicy, ListsAreReadAndWritten) {
  EXPECT_EQ(*core::parse_resource_list(" efa, aws.amazon.com/neuron ,neuron"),
            (std::vector{model::Resource::neuron, model::Resource::efa}));
  EXPECT_EQ(core::format_resource_list(*core::parse_resource_list("efa,neurondevice")), "neurondevice,efa");
  for (const char* text : {"off", "all", "none", "0-3,8", "63"}) {
    EXPECT_EQ(core::format_core_devices(*core::parse_core_devices(text)), text);
  }
  EXPECT_EQ(core::format_core_devices(*core::parse_core_devices(" 8,0-3, 2 ")), "0-3,8");
}

TEST(OfferPolicy, WhatMakesNoSenseIsRefusedInWords) {
  EXPECT_EQ(core::parse_resource_list("neuron,gpu").error().message,
            "\"gpu\" is not a resource; valid are neuron, neuroncore, neurondevice, efa, or all alone");
  for (const char* with_all : {"all,efa", "neuron, all", "all,"}) {
    EXPECT_EQ(core::parse_resource_list(with_all).error().message,
              "\"all\" cannot be combined: give all alone, or some of neuron, neuroncore, neurondevice, efa")
        << with_all;
  }
  for (const char* bad : {"", " ", "neuron,", "neuron neuroncore", "Neuron", "all,efa"}) {
    ASSERT_FALSE(core::parse_resource_list(bad)) << bad;
    EXPECT_EQ(core::parse_resource_list(bad).error().code, ErrorCode::invalid_argument);
  }
  EXPECT_EQ(core::parse_core_devices("3-1").error().message,
            "\"3-1\" is neither a list of device indices from 0 to 63 such as 0-3,8 nor one of all, none, off");
  for (const char* bad : {"", "64", "0-", "-1", "0,,1", "0-3;8", "neuron0", "all,3"}) {
    ASSERT_FALSE(core::parse_core_devices(bad)) << bad;
    EXPECT_THAT(core::parse_core_devices(bad).error().message, HasSubstr("all, none, off"));
  }
}

}  // namespace
}  // namespace neuron::test
