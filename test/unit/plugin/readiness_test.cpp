#include "plugin/device/serving_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace neuron::plugin {
namespace {

using model::Resource;

TEST(Readiness, ANodeThatWasNotReadIsNotReady) {
  const metrics::Readiness all = assess_readiness({});
  EXPECT_FALSE(all.ready);
  EXPECT_EQ(all.text, "the node has not been scanned yet\n");
}

TEST(Readiness, EveryResourceThatTheNodeHasIsRegistered) {
  const metrics::Readiness all = assess_readiness(
      {true, {{Resource::neuron, ServingStep::registered}, {Resource::efa, ServingStep::not_offered}}});
  EXPECT_TRUE(all.ready);
  EXPECT_EQ(all.text, "aws.amazon.com/neuron: registered\n") << "what the node lacks is not named";
}

TEST(Readiness, OneThatIsOnItsWayIsEnoughToWait) {
  for (const ServingStep step : {ServingStep::waiting, ServingStep::registering, ServingStep::unwatched}) {
    for (const bool first : {true, false}) {
      const metrics::Readiness all =
          assess_readiness({true,
                            {{Resource::neuron, first ? step : ServingStep::registered},
                             {Resource::neuroncore, first ? ServingStep::registered : step}}});
      EXPECT_FALSE(all.ready);
    }
  }
}

TEST(Readiness, TheLinesSayWhatIsMissing) {
  const metrics::Readiness all = assess_readiness({true,
                                                   {{Resource::neuroncore, ServingStep::waiting},
                                                    {Resource::neuron, ServingStep::unwatched},
                                                    {Resource::neurondevice, ServingStep::registered},
                                                    {Resource::efa, ServingStep::registering}}});
  EXPECT_EQ(all.text,
            "aws.amazon.com/neuroncore: not registered; waiting for the kubelet or the next attempt\n"
            "aws.amazon.com/neuron: waiting for the kubelet to call ListAndWatch\n"
            "aws.amazon.com/neurondevice: registered\n"
            "vpc.amazonaws.com/efa: waiting for the kubelet to accept the registration\n");
}

TEST(Readiness, WhoWaitsToTakeOverIsReadyForFiveMinutes) {
  constexpr std::chrono::milliseconds kTick{1};
  constexpr std::chrono::minutes kMost{5};
  ServingState state{true, {{Resource::neuron, ServingStep::waiting}}, kMost - kTick};
  EXPECT_TRUE(assess_readiness(state).ready);
  EXPECT_EQ(assess_readiness(state).text, "another agent serves this node; waiting for its end\n");
  state.waited = kMost;
  EXPECT_FALSE(assess_readiness(state).ready) << "two DaemonSets by mistake";
  state = {false, {}, kTick};
  EXPECT_FALSE(assess_readiness(state).ready) << "it could not serve at once";
}

TEST(Readiness, ANodeWithNothingToOfferIsReady) {
  EXPECT_TRUE(assess_readiness({true, {}}).ready);
  const metrics::Readiness all = assess_readiness({true, {{Resource::neuron, ServingStep::not_offered}}});
  EXPECT_TRUE(all.ready);
  EXPECT_EQ(all.text, "nothing to offer on this node\n");
}

}  // namespace
}  // namespace neuron::plugin
