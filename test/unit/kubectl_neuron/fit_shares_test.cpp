// Devices that claims share by their cores: what they consume adds up.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/kubectl_neuron/questions.h"
#include "tools/kubectl-neuron/plan.h"

namespace neuron::fleet::test {
namespace {

using testing::ElementsAre;
using Kind = Obstacle::Kind;

const Pod kPod = pod_with_claim("p", "t");

// A node whose devices have four cores each, which claims may share.
Fleet shared_devices() {
  Fleet fleet;
  add_node(fleet, "a", "trn2.48xlarge", Mode::claims);
  add_classes(fleet);
  for (SliceDevice& device : fleet.pools[0].devices) {
    device.multiple = device.attributes["resourceType"].text == "neuron_device";
    if (device.multiple) device.attributes["whole"].flag = true;
  }
  return fleet;
}

ClaimRequest cores_of(std::int64_t devices, const char* cores) {
  ClaimRequest share = request_of("core.neuron.aws.com", devices);
  share.capacity = {{"cores", cores}};
  return share;
}

TEST(FitShares, SharesOfDevices) {
  Fleet fleet = shared_devices();
  add_template(fleet, "t", {cores_of(16, "2")});
  NodeState state = node_states(fleet)[0];
  Pod second = kPod, third = kPod;
  second.name = "p2";
  third.name = "p3";
  place(fleet, kPod, fit(fleet, kPod, state), state);
  const Verdict again = fit(fleet, second, state);
  ASSERT_EQ(again.answer, Answer::yes) << "two cores of each are left";
  EXPECT_EQ(again.devices[0].devices[0].consumed_capacity.at("cores"), "2");
  place(fleet, second, again, state);
  EXPECT_THAT(kinds_of(fit(fleet, third, state)), ElementsAre(Kind::capacity));
  add_template(fleet, "t", {request_of("neuron.aws.com")});
  EXPECT_EQ(fit(fleet, third, state).answer, Answer::no) << "without a capacity it wants a device alone";
}

// Two pods have three of the four cores of each device, one of them by two shares.
Fleet three_of_four_held() {
  Fleet fleet = shared_devices();
  std::vector<std::string> all;
  for (int i = 0; i < 16; ++i) all.push_back("neuron-device-" + std::to_string(i));
  std::vector<std::string> twice = all;
  twice.insert(twice.end(), all.begin(), all.end());
  add_holder(fleet, "one", "a", all);
  add_holder(fleet, "two", "a", twice);
  for (Claim& claim : fleet.claims) {
    for (AllocatedDevice& device : claim.devices) device.consumed_capacity = {{"cores", "1"}, {"memory", "0"}};
  }
  return fleet;
}

TEST(FitShares, SharesOfADeviceAddUp) {
  Fleet fleet = three_of_four_held();
  add_template(fleet, "t", {cores_of(16, "1")});
  EXPECT_EQ(fit_on(fleet, kPod, "a").answer, Answer::yes);
  add_template(fleet, "t", {cores_of(1, "2")});
  const Verdict verdict = fit_on(fleet, kPod, "a");
  ASSERT_THAT(kinds_of(verdict), ElementsAre(Kind::capacity));
  EXPECT_EQ(words_of(verdict.obstacles[0]),
            "request r needs 1 device, 0 of 16 are free, since too little of their capacity is left; held by "
            "default/one (16) and default/two (16)");
  // Both requests of a claim count.
  ClaimRequest other = cores_of(16, "1");
  other.name = "s";
  add_template(fleet, "t", {cores_of(1, "1"), other});
  EXPECT_THAT(kinds_of(fit_on(fleet, kPod, "a")), ElementsAre(Kind::together));
  other.count = 15;
  add_template(fleet, "t", {cores_of(1, "1"), other});
  EXPECT_EQ(fit_on(fleet, kPod, "a").answer, Answer::yes);
}

TEST(FitShares, SenselessQuantitiesOfSharesAreBounded) {
  Fleet fleet = three_of_four_held();
  for (Claim& claim : fleet.claims) {
    for (AllocatedDevice& device : claim.devices) device.consumed_capacity = {{"cores", "9000000000000000000"}};
  }
  fleet.claims[0].devices[0].consumed_capacity = {{"cores", "-5"}};
  add_template(fleet, "t", {cores_of(1, "1")});
  EXPECT_THAT(kinds_of(fit_on(fleet, kPod, "a")), ElementsAre(Kind::capacity));
}

TEST(FitShares, PodsWithSharesThatEndGiveThemBack) {
  Fleet fleet = three_of_four_held();
  add_template(fleet, "t", {cores_of(16, "2")});
  NodeState state = node_states(fleet)[0];
  ASSERT_TRUE(release(*find_pod(fleet, "default", "one"), state));
  EXPECT_EQ(fit(fleet, kPod, state).answer, Answer::yes);
  add_template(fleet, "t", {cores_of(16, "3")});
  EXPECT_EQ(fit(fleet, kPod, state).answer, Answer::no);
  ASSERT_TRUE(release(*find_pod(fleet, "default", "two"), state));
  EXPECT_EQ(fit(fleet, kPod, state).answer, Answer::yes);
}

TEST(FitShares, CoresThatSharesLeaveAreFree) {
  Fleet fleet = three_of_four_held();
  add_template(fleet, "t", {cores_of(1, "2")});
  FreeByClaim free = free_by_claim(fleet, kPod, node_states(fleet)[0]).value();
  EXPECT_TRUE(free.is_cores);
  EXPECT_EQ(free.units, 16) << "one of each device";
  add_template(fleet, "t", {request_of("neuron.aws.com")});
  free = free_by_claim(fleet, kPod, node_states(fleet)[0]).value();
  EXPECT_FALSE(free.is_cores);
  EXPECT_EQ(free.units, 0);
}

TEST(FitShares, PlanNamesCoresThatNoPodCanUse) {
  Fleet fleet = three_of_four_held();
  add_template(fleet, "t", {cores_of(1, "2")});
  Manifest manifest;
  manifest.groups = {{kPod, 1}};
  const Plan result = plan(fleet, manifest, 0);
  EXPECT_EQ(exit_status(result), 1);
  EXPECT_EQ(result.groups.at(0).empty_fleet, 32) << "two on each device of an empty node";
  EXPECT_THAT(plan_text(result), testing::HasSubstr("16 cores by claim on a: request r needs 1 device"));
}

}  // namespace
}  // namespace neuron::fleet::test
