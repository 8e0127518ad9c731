#include "agent/model/allocation.h"

#include <gtest/gtest.h>

namespace neuron::model {
namespace {

TEST(Allocation, IsTheHoldersByUidWhereItIsKnownAndByNameElse) {
  Allocation one{"default", "train", "worker", "aws.amazon.com/neuron", {"0"}};
  EXPECT_EQ(holder_of(one), "default/train/worker");
  EXPECT_EQ(holder_name(one), "default/train/worker");
  one.pod_uid = "u1";
  EXPECT_EQ(holder_of(one), "pod u1/worker") << "also where the name has been learnt since";
  EXPECT_EQ(holder_name(one), "default/train/worker");
  EXPECT_EQ(holder_name({"", "", "worker", "r", {}, "u1"}), "");
  EXPECT_FALSE(holder_of({}).empty()) << "nobody is not a holder";
}

}  // namespace
}  // namespace neuron::model
