// What a pod's event says after "Allocate failed due to rpc error: code = … desc = ".
#include "plugin/device/refusals.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string_view>

#include "agent/grant/grant.h"

namespace neuron::plugin::refusals {
namespace {

using model::Resource;

TEST(Refusals, SayWhoHoldsWhatAndWhatToDo) {
  Conflict conflict{5, {model::Resource::neuron, {2}, {4, 5}, {2}, "default/train/worker", 0, {}}};
  EXPECT_EQ(held(model::Resource::neuroncore, conflict).message,
            "aws.amazon.com/neuroncore: core 5 is held by default/train/worker through aws.amazon.com/neuron until "
            "that container ends; have a Job or ReplicaSet recreate this pod, or use one of the two names per node "
            "(docs/resources.md#one-name-or-two)");
  conflict.with.holder = "pod 0a1b/init";
  conflict.with.shown_as = "default/train/init";
  EXPECT_EQ(conflict.describe(), "core 5 is held by default/train/init through aws.amazon.com/neuron");
  conflict.with.shown_as.clear();
  EXPECT_EQ(conflict.describe(), "core 5 is held by pod 0a1b/init through aws.amazon.com/neuron") << "not known yet";
  conflict.with.holder.clear();
  EXPECT_EQ(held(model::Resource::neuroncore, conflict).message,
            "aws.amazon.com/neuroncore: core 5 is held by a container admitted moments ago through "
            "aws.amazon.com/neuron until that container ends; have a Job or ReplicaSet recreate this pod, or use one "
            "of the two names per node (docs/resources.md#one-name-or-two)");
}

TEST(Refusals, SayWhyTwoNamesAreNotTheSameHardware) {
  const holdings::Holding first{model::Resource::neuron, {0, 1}, {0, 1, 2, 3}, {0, 1}, "", 1, {}};
  EXPECT_EQ(other_hardware(model::Resource::neuroncore, first, {}).message,
            "aws.amazon.com/neuroncore: the container was just allocated 4 cores through aws.amazon.com/neuron, which "
            "are the same hardware; request all cores of the same devices through both resources, or use one only");
}

TEST(Refusals, OfOneUnitNameIt) {
  EXPECT_EQ(unhealthy(model::Resource::neuron, "3", {model::HealthState::unhealthy, "x", "3 SRAM errors", "replace it"})
                .message,
            "aws.amazon.com/neuron: \"3\" is unhealthy: 3 SRAM errors; replace it");
  EXPECT_EQ(unhealthy(model::Resource::neuron, "3", {model::HealthState::unhealthy, "vanished", "", ""}).message,
            "aws.amazon.com/neuron: \"3\" is unhealthy: vanished");
  EXPECT_EQ(asked_twice(model::Resource::efa, "rdmap16s25").message,
            "vpc.amazonaws.com/efa: \"rdmap16s25\" is in the request more than once");
  EXPECT_EQ(no_ids(model::Resource::efa).message, "vpc.amazonaws.com/efa: no device ids in the request");
  EXPECT_EQ(not_scanned().message, "the node has not been scanned yet; have a Job or ReplicaSet recreate this pod");
}

TEST(Refusals, HaveAKind) {
  const holdings::Holding holder{Resource::neuron, {2}, {4, 5}, {2}, "default/train/worker", 0, {}};
  holdings::Holding by_claim = holder;
  by_claim.claim = "chips";
  EXPECT_EQ(not_scanned().kind, Kind::not_scanned);
  EXPECT_EQ(no_ids(Resource::efa).kind, Kind::no_ids);
  EXPECT_EQ(asked_twice(Resource::efa, "rdmap16s25").kind, Kind::asked_twice);
  EXPECT_EQ(too_many_ids(4096).kind, Kind::too_many_ids);
  EXPECT_EQ(too_many_ids(4096).message, "more than 4096 device ids");
  // A pod's name or a device's sentence decides nothing.
  EXPECT_EQ(
      unhealthy(Resource::neuron, "3", {model::HealthState::unhealthy, "x", "no device ids in the request", ""}).kind,
      Kind::unhealthy);
  EXPECT_EQ(not_offered(Resource::neuron, "3").kind, Kind::not_offered);
  EXPECT_EQ(held(Resource::neuroncore, {5, holder}).kind, Kind::held);
  EXPECT_EQ(held(Resource::neuroncore, {5, by_claim}).kind, Kind::held_by_claim);
  EXPECT_EQ(given_before(Resource::neuron, "2", holder).kind, Kind::given_before);
  EXPECT_EQ(claimed(Resource::efa, "rdmap16s25", by_claim).kind, Kind::held_by_claim);
  EXPECT_EQ(other_hardware(Resource::neuroncore, holder, {}).kind, Kind::other_hardware);
  const auto unknown = grant::NodeUnits(std::make_shared<model::Snapshot>()).unit_of(Resource::neuron, "99");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown_id(unknown.error()).kind, Kind::unknown_id);
  EXPECT_EQ(unknown_id(unknown.error()).message, unknown.error().message);
}

// The label of a metric: short, lower case, one word for one kind.
TEST(Refusals, EveryKindHasAWord) {
  std::set<std::string_view> words;
  for (const Kind kind : kAllKinds) {
    EXPECT_TRUE(words.insert(to_string(kind)).second) << to_string(kind);
    EXPECT_EQ(to_string(kind).find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), std::string_view::npos);
  }
  EXPECT_EQ(kAllKinds.size(), static_cast<std::size_t>(Kind::other_hardware) + 1) << "a kind is not in the list";
}

}  // namespace
}  // namespace neuron::plugin::refusals
