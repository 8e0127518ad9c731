#include "tools/neuron-sim/kubelet/allocation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace neuron::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

v1beta1::ContainerAllocateResponse response(const std::string& value) {
  v1beta1::ContainerAllocateResponse out;
  (*out.mutable_envs())["CORES"] = value;
  return out;
}

TEST(ContainerGrantTest, EqualAnswersAreNoConflict) {
  ContainerGrant grant;
  merge_response(grant, "a", response("0-3"));
  merge_response(grant, "b", response("0-3"));
  EXPECT_THAT(grant.conflicts, IsEmpty());
}

TEST(ContainerGrantTest, ADifferentSecondAnswerIsRecordedAndIgnored) {
  ContainerGrant grant;
  merge_response(grant, "a", response("0-3"));
  merge_response(grant, "b", response("4-7"));
  EXPECT_EQ(grant.env.at("CORES"), "0-3");
  EXPECT_THAT(grant.conflicts, ElementsAre("env CORES: \"0-3\" stays, b wanted \"4-7\""));
}

TEST(ContainerGrantTest, ReadingOrderIsByNumberThenText) {
  EXPECT_THAT(in_reading_order({"10", "9", "rdmap2", "0", "alpha"}), ElementsAre("0", "9", "10", "alpha", "rdmap2"));
}

}  // namespace
}  // namespace neuron::sim
