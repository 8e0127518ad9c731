#include "tools/neuron-sim/host_plan.h"

#include <gmock/gmock.h>

namespace neuron::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::vector<std::string> kNames = {"trn1.2xlarge", "trn1.32xlarge", "trn1n.32xlarge", "inf2.48xlarge"};

TEST(NearMatch, NearestFirst) {
  EXPECT_THAT(near_matches("trn1.32xlarg", kNames), ElementsAre("trn1.32xlarge", "trn1.2xlarge", "trn1n.32xlarge"));
}

TEST(NearMatch, SameStemCounts) {
  EXPECT_THAT(near_matches("inf2", kNames), ElementsAre("inf2.48xlarge"));
}

TEST(NearMatch, NothingNear) {
  EXPECT_THAT(near_matches("banana", kNames), IsEmpty());
  EXPECT_THAT(near_matches("", kNames), IsEmpty());
  EXPECT_THAT(near_matches(std::string(100000, 't'), kNames), IsEmpty());
}

}  // namespace
}  // namespace neuron::sim
