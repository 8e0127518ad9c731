// What a pod's event says after "Allocate failed due to rpc error: code = … desc = ".
#include "plugin/device/refusals.h"

#include <gtest/gtest.h>

#include <memory>

#include "agent/grant/node_units.h"

namespace neuron::plugin::refusals {
namespace {

using model::Resource;

TEST(Refusals, SayWhoHoldsWhatAndWhatToDo) {
  holdings::Conflict conflict{5, {model::Resource::neuron, {2}, {4, 5}, {2}, "default/train/worker", 0, {}}};
  EXPECT_EQ(held(model::Resource::neuroncore, conflict).message,
            "aws.amazon.com/neuroncore: core 5 is held by default/train/worker through aws.amazon.com/neuron until "
            "that container ends; let a Job or ReplicaSet make this pod again, or use one of the two names per node "
            "(docs/one-name-or-two.md)");
  conflict.with.holder = "pod 0a1b/init";
  conflict.with.shown_as = "default/train/init";
  EXPECT_EQ(conflict.describe(), "core 5 is held by default/train/init through aws.amazon.com/neuron");
  conflict.with.shown_as.clear();
  EXPECT_EQ(conflict.describe(), "core 5 is held by pod 0a1b/init through aws.amazon.com/neuron") << "not known yet";
  conflict.with.holder.clear();
  EXPECT_EQ(held(model::Resource::neuroncore, conflict).message,
            "aws.amazon.com/neuroncore: core 5 is held by a container admitted moments ago through "
            "aws.amazon.com/neuron until that container ends; let a Job or ReplicaSet make this pod again, or use one "
            "of the two names per node (docs/one-name-or-two.md)");
}

TEST(Refusals, SayWhyTwoNamesAreNotTheSameHardware) {
  const holdings::Holding first{model::Resource::neuron, {0, 1}, {0, 1, 2, 3}, {0, 1}, "", 1, {}};
  EXPECT_EQ(other_hardware(model::Resource::neuroncore, first, {}).message,
            "aws.amazon.com/neuroncore: the container was just given 4 cores through aws.amazon.com/neuron, which is "
            "the same silicon; ask for all cores of the same devices through both, or for one only");
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
  EXPECT_EQ(not_scanned().message, "the node has not been scanned yet; let a Job or ReplicaSet make this pod again");
}

TEST(Refusals, HaveAKindForThoseWhoCount) {
  const holdings::Holding holder{Resource::neuron, {2}, {4, 5}, {2}, "default/train/worker", 0, {}};
  holdings::Holding by_claim = holder;
  by_claim.claim = "chips";
  const core::OfferPolicy split{{}, core::CoreDevices{}};
  EXPECT_EQ(reason_of(not_scanned()), kNotScanned);
  EXPECT_EQ(reason_of(no_ids(Resource::efa)), kNoIds);
  EXPECT_EQ(reason_of(asked_twice(Resource::efa, "rdmap16s25")), kAskedTwice);
  // The sentence of a failing device is another's, and may say what it likes but what is looked for before it.
  EXPECT_EQ(reason_of(unhealthy(Resource::neuron, "3", {model::HealthState::unhealthy, "x", "core 1 is held up", ""})),
            kUnhealthy);
  EXPECT_EQ(reason_of(not_offered(Resource::neuron, "3")), kNotOffered);
  EXPECT_EQ(reason_of(held(Resource::neuroncore, {5, holder})), kHeld);
  EXPECT_EQ(reason_of(held(Resource::neuroncore, {5, by_claim})), kHeldByClaim);
  EXPECT_EQ(reason_of(claimed(Resource::efa, "rdmap16s25", by_claim)), kHeldByClaim);
  EXPECT_EQ(reason_of(other_hardware(Resource::neuroncore, holder, {})), kOtherHardware);
  EXPECT_EQ(reason_of(other_hardware(Resource::neuroncore, holder, split)), kOtherHardware);
  const auto unknown = grant::NodeUnits(std::make_shared<model::Snapshot>()).unit_of(Resource::neuron, "99");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(reason_of(unknown.error()), kUnknownId);
  EXPECT_EQ(reason_of(make_error(ErrorCode::internal, "something else")), kOther);
}

}  // namespace
}  // namespace neuron::plugin::refusals
