#include "agent/base/near_match.h"

#include <gtest/gtest.h>

namespace neuron {
namespace {

const std::vector<std::string> kNames = {"trn1.2xlarge", "trn1.32xlarge", "trn1n.32xlarge", "inf2.48xlarge"};

TEST(NearMatch, NearestFirst) {
  EXPECT_EQ(did_you_mean("trn1.32xlarg", kNames), "; did you mean trn1.32xlarge, trn1.2xlarge, trn1n.32xlarge?");
}

TEST(NearMatch, SameStemCounts) {
  EXPECT_EQ(did_you_mean("inf2", kNames), "; did you mean inf2.48xlarge?");
}

TEST(NearMatch, NothingNear) {
  EXPECT_EQ(did_you_mean("banana", kNames), "");
  EXPECT_EQ(did_you_mean("", kNames), "");
  EXPECT_EQ(did_you_mean(std::string(100000, 't'), kNames), "");
}

}  // namespace
}  // namespace neuron
