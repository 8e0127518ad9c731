// Claims on a node: the scheduler's choice of devices, and every reason why there is none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/kubectl_neuron/questions.h"
#include "tools/kubectl-neuron/fit.h"

namespace neuron::fleet::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using Kind = Obstacle::Kind;

Fleet one_node() {
  Fleet fleet;
  add_node(fleet, "a", "trn1.32xlarge", Mode::claims);
  add_classes(fleet);
  return fleet;
}

Fleet asking(std::vector<ClaimRequest> requests, std::vector<ClaimConstraint> constraints = {}) {
  Fleet fleet = one_node();
  add_template(fleet, "t", std::move(requests), std::move(constraints));
  return fleet;
}

const Pod kPod = pod_with_claim("p", "t");

std::vector<std::string> devices(int first, int last) {
  std::vector<std::string> names;
  for (int i = first; i <= last; ++i) names.push_back("neuron-device-" + std::to_string(i));
  return names;
}

SliceDevice& device_of(Fleet& fleet, const std::string& name) {
  return *std::ranges::find(fleet.pools[0].devices, name, &SliceDevice::name);
}

TEST(FitClaims, TakesTheFirstThatFit) {
  Fleet fleet = asking({request_of("neuron.aws.com", 2)});
  add_holder(fleet, "q", "a", {"neuron-device-0"});
  const Verdict verdict = fit_on(fleet, kPod, "a");
  EXPECT_EQ(verdict.answer, Answer::yes);
  EXPECT_THAT(device_names(verdict), ElementsAre("neuron-device-1", "neuron-device-2"));
}

TEST(FitClaims, TooFewAreFree) {
  Fleet fleet = asking({request_of("neuron.aws.com", 4)});
  add_holder(fleet, "q", "a", devices(0, 13));
  const Verdict verdict = fit_on(fleet, kPod, "a");
  ASSERT_THAT(kinds_of(verdict), ElementsAre(Kind::too_few_devices));
  EXPECT_EQ(words_of(verdict.obstacles[0]), "request r needs 4 devices, 2 of 16 are free; held by default/q (14)");
}

TEST(FitClaims, AnAlignedGroupMayBeMissing) {
  const ClaimConstraint aligned{{"r"}, "resource.aws.com/devicegroup4_id", ""};
  Fleet fleet = asking({request_of("neuron.aws.com", 4)}, {aligned});
  EXPECT_THAT(device_names(fit_on(fleet, kPod, "a")), testing::ElementsAreArray(devices(0, 3)));
  add_holder(fleet, "q", "a", {"neuron-device-0", "neuron-device-4", "neuron-device-8"});
  EXPECT_EQ(device_names(fit_on(fleet, kPod, "a")), devices(12, 15)) << "it goes on behind groups that are not whole";
  add_holder(fleet, "s", "a", {"neuron-device-15"});
  const Verdict verdict = fit_on(fleet, kPod, "a");
  ASSERT_THAT(kinds_of(verdict), ElementsAre(Kind::constraint));
  EXPECT_EQ(verdict.obstacles[0].name, "resource.aws.com/devicegroup4_id");
}

TEST(FitClaims, DistinctAttributes) {
  const ClaimConstraint distinct{{}, "", "neuron.aws.com/topology4_id"};
  Fleet fleet = asking({request_of("neuron.aws.com", 4)}, {distinct});
  EXPECT_THAT(device_names(fit_on(fleet, kPod, "a")),
              ElementsAre("neuron-device-0", "neuron-device-4", "neuron-device-8", "neuron-device-12"));
  fleet.claim_templates["default/t"].front().count = 5;
  EXPECT_THAT(kinds_of(fit_on(fleet, kPod, "a")), ElementsAre(Kind::constraint));
}

TEST(FitClaims, AllTakesEveryDeviceAndNoneMayBeHeld) {
  ClaimRequest all = request_of("neuron.aws.com");
  all.all = true;
  Fleet fleet = asking({all});
  EXPECT_EQ(device_names(fit_on(fleet, kPod, "a")).size(), 16U);
  add_holder(fleet, "q", "a", {"neuron-device-7"});
  const Verdict verdict = fit_on(fleet, kPod, "a");
  EXPECT_THAT(kinds_of(verdict), ElementsAre(Kind::too_few_devices));
  EXPECT_EQ(verdict.obstacles[0].asked, 16);
}

TEST(FitClaims, FirstAvailableGoesThroughTheAlternatives) {
  ClaimRequest either;
  either.name = "r";
  either.first_available = {request_of("group.neuron.aws.com"), request_of("neuron.aws.com")};
  either.first_available[0].name = "group";
  either.first_available[1].name = "one";
  const Fleet fleet = asking({either});
  const Verdict verdict = fit_on(fleet, kPod, "a");
  ASSERT_EQ(verdict.answer, Answer::yes);
  EXPECT_EQ(verdict.devices[0].devices[0].request, "r/one");
}

TEST(FitClaims, AdminAccessNeedsNothingFree) {
  ClaimRequest admin = request_of("neuron.aws.com", 16);
  admin.admin_access = true;
  Fleet fleet = asking({admin});
  add_holder(fleet, "q", "a", devices(0, 15));
  EXPECT_EQ(fit_on(fleet, kPod, "a").answer, Answer::yes);
}

TEST(FitClaims, TaintsOfDevices) {
  Fleet fleet = asking({request_of("neuron.aws.com", 16)});
  device_of(fleet, "neuron-device-3").taints = {{"neuron.aws.com/unhealthy", "sram_ecc_uncorrected", "NoSchedule"}};
  const Verdict verdict = fit_on(fleet, kPod, "a");
  ASSERT_THAT(kinds_of(verdict), ElementsAre(Kind::tainted));
  EXPECT_EQ(verdict.obstacles[0].detail, "neuron.aws.com/unhealthy=sram_ecc_uncorrected");
  fleet.claim_templates["default/t"].front().tolerations = {{"neuron.aws.com/unhealthy", "Exists", "", ""}};
  EXPECT_EQ(fit_on(fleet, kPod, "a").answer, Answer::yes);
}

TEST(FitClaims, SelectorsThatNoDeviceMeets) {
  ClaimRequest request = request_of("neuron.aws.com");
  request.selectors = {{"device.attributes['neuron.aws.com'].instanceType == 'inf2.48xlarge'"}};
  const Verdict none = fit_on(asking({request}), kPod, "a");
  ASSERT_THAT(kinds_of(none), ElementsAre(Kind::no_device));
  EXPECT_EQ(none.obstacles[0].detail, request.selectors[0].expression);
  request.selectors = {{"device.attributes['neuron.aws.com'].lnc == 2"}};
  EXPECT_THAT(kinds_of(fit_on(asking({request}), kPod, "a")), ElementsAre(Kind::lnc));
  request.selectors = {{"device.attributes['neuron.aws.com'].family.matches('Train.*')"}};
  const Verdict doubt = fit_on(asking({request}), kPod, "a");
  EXPECT_EQ(doubt.answer, Answer::unknown);
  EXPECT_THAT(kinds_of(doubt), ElementsAre(Kind::selector));
}

TEST(FitClaims, WhatDoesNotExist) {
  EXPECT_THAT(kinds_of(fit_on(asking({request_of("gpu.example.com")}), kPod, "a")), ElementsAre(Kind::class_unknown));
  EXPECT_THAT(kinds_of(fit_on(one_node(), kPod, "a")), ElementsAre(Kind::claim_missing));
  Fleet partial = one_node();
  partial.unknown = {"claim templates: forbidden"};
  EXPECT_EQ(fit_on(partial, kPod, "a").answer, Answer::unknown) << "it may be there and not be readable";
  Pod named = pod_with_claim("p", "");
  named.claims[0].claim = "none";
  EXPECT_THAT(kinds_of(fit_on(one_node(), named, "a")), ElementsAre(Kind::claim_missing));
}

TEST(FitClaims, AnAllocatedClaimBindsToItsNode) {
  Fleet fleet = one_node();
  add_node(fleet, "b", "trn1.32xlarge", Mode::claims);
  add_holder(fleet, "q", "b", {"neuron-device-0"});
  Pod named = pod_with_claim("p", "");
  named.claims[0].claim = "q-devices";
  EXPECT_EQ(fit_on(fleet, named, "b").answer, Answer::yes);
  const Verdict verdict = fit_on(fleet, named, "a");
  ASSERT_THAT(kinds_of(verdict), ElementsAre(Kind::claim_elsewhere));
  EXPECT_EQ(verdict.obstacles[0].detail, "b");
}

TEST(FitClaims, AClaimHasAtMost32Devices) {
  const Verdict verdict = fit_on(asking({request_of("neuron.aws.com", 33)}), kPod, "a");
  ASSERT_THAT(kinds_of(verdict), ElementsAre(Kind::claim_limit));
  EXPECT_EQ(verdict.obstacles[0].total, 32);
}

TEST(FitClaims, TheOtherModeAndIncompletePools) {
  Fleet plugin = asking({request_of("neuron.aws.com")});
  add_node(plugin, "b", "trn1.32xlarge");
  EXPECT_THAT(kinds_of(fit_on(plugin, kPod, "b")), ElementsAre(Kind::other_mode));
  Fleet fleet = asking({request_of("neuron.aws.com")});
  fleet.pools[0].complete = false;
  EXPECT_THAT(kinds_of(fit_on(fleet, kPod, "a")), ElementsAre(Kind::incomplete_pool));
}

// Cores that share counters with their device.
Fleet with_counters() {
  Fleet fleet = one_node();
  Pool& pool = fleet.pools[0];
  std::vector<SliceDevice> cores;
  for (SliceDevice& device : pool.devices) {
    if (device.attributes["resourceType"].text != "neuron_device") continue;
    const std::string counter = "device-" + std::to_string(device.attributes["deviceId"].number.value_or(0));
    pool.counters["cores"][counter] = "2";
    device.consumes["cores"] = {{counter, "2"}};
    for (int core = 0; core < 2; ++core) {
      SliceDevice one = device;
      one.name += "-core-" + std::to_string(core);
      one.attributes["resourceType"].text = "neuron_core";
      one.consumes["cores"] = {{counter, "1"}};
      cores.push_back(one);
    }
  }
  pool.devices.insert(pool.devices.end(), cores.begin(), cores.end());
  return fleet;
}

TEST(FitClaims, CountersKeepDevicesAndCoresApart) {
  Fleet fleet = with_counters();
  add_template(fleet, "t", {request_of("neuron.aws.com", 16)});
  EXPECT_EQ(fit_on(fleet, kPod, "a").answer, Answer::yes);
  add_holder(fleet, "q", "a", {"neuron-device-5-core-1"});
  const Verdict verdict = fit_on(fleet, kPod, "a");
  ASSERT_THAT(kinds_of(verdict), ElementsAre(Kind::counters));
  EXPECT_THAT(verdict.obstacles[0].holders, Contains(testing::Field(&Holder::pod, "default/q")));
  add_template(fleet, "t", {request_of("core.neuron.aws.com", 31)});
  EXPECT_EQ(fit_on(fleet, kPod, "a").answer, Answer::yes);
  // One claim cannot have a device and its cores.
  ClaimRequest cores = request_of("core.neuron.aws.com", 2);
  cores.name = "c";
  add_template(fleet, "t", {request_of("neuron.aws.com", 15), cores});
  EXPECT_THAT(kinds_of(fit_on(fleet, kPod, "a")), ElementsAre(Kind::together));
}

TEST(FitClaims, ResourcesByClass) {
  Fleet fleet = one_node();
  const Pod pod = pod_of("p", {{kNeuron, 4}, {kEfa, 1}});
  const Verdict verdict = fit_on(fleet, pod, "a");
  ASSERT_EQ(verdict.answer, Answer::yes);
  EXPECT_EQ(device_names(verdict).size(), 5U);
  add_holder(fleet, "q", "a", devices(0, 13));
  EXPECT_THAT(kinds_of(fit_on(fleet, pod, "a")), ElementsAre(Kind::too_few_devices));
}

TEST(FitClaims, MoreThan32ByClassIsPlacedNowhere) {
  Fleet fleet = one_node();
  fleet.classes.push_back({"neuroncore.neuron.aws.com", {{"device.driver == 'neuron.aws.com'"}}, kNeuronCore});
  add_node(fleet, "b", "trn2.48xlarge");
  Pod pod = pod_of("p", {{kNeuronCore, 64}});
  const std::vector<NodeState> states = node_states(fleet);
  const std::vector<Verdict> all = fit_all(fleet, pod, states);
  EXPECT_THAT(kinds_of(all[0]), ElementsAre(Kind::claim_limit));
  EXPECT_THAT(kinds_of(all[1]), ElementsAre(Kind::claim_limit)) << "the scheduler ends with an error";
  pod.node_selector = {{"kubernetes.io/hostname", "b"}};
  EXPECT_EQ(fit_all(fleet, pod, states)[1].answer, Answer::yes);
}

TEST(FitClaims, ManyCombinationsEnd) {
  Fleet fleet = with_counters();
  ClaimRequest cores = request_of("core.neuron.aws.com", 20);
  cores.name = "c";
  add_template(fleet, "t", {request_of("neuron.aws.com", 8), cores});
  const Verdict verdict = fit_on(fleet, kPod, "a");
  EXPECT_NE(verdict.answer, Answer::yes);
}

// The next four as the scheduler's allocator has it (test/dra/plan_test.go).
TEST(FitClaims, AllMeansTheDevicesWithCapacityLeft) {
  ClaimRequest all = request_of("neuron.aws.com");
  all.all = true;
  Fleet fleet = asking({all});
  for (SliceDevice& device : fleet.pools[0].devices) device.multiple = device.name.starts_with("neuron-device-");
  add_holder(fleet, "q", "a", {"neuron-device-0"});
  fleet.claims.back().devices[0].consumed_capacity = {{"cores", "1"}};
  EXPECT_THAT(device_names(fit_on(fleet, kPod, "a")), testing::ElementsAreArray(devices(1, 15)));
}

TEST(FitClaims, AConstraintAgainstOneOfAllIsTheEndAlsoOfAlternatives) {
  ClaimRequest all = request_of("neuron.aws.com"), one = request_of("neuron.aws.com"), either = request_of("");
  all.all = true;
  all.name = "a0";
  one.name = "a1";
  either.first_available = {all, one};
  const ClaimConstraint same{{}, "neuron.aws.com/deviceId", ""};
  Fleet fleet = asking({either}, {same});
  add_node(fleet, "b", "trn1.2xlarge", Mode::claims);  // has one device alone
  EXPECT_EQ(fit_on(fleet, kPod, "b").answer, Answer::yes);
  for (const Verdict& verdict : fit_all(fleet, kPod, node_states(fleet))) {
    EXPECT_THAT(kinds_of(verdict), ElementsAre(Kind::all_differ));
  }
  std::ranges::reverse(either.first_available);
  EXPECT_EQ(fit_on(asking({either}, {same}), kPod, "a").answer, Answer::yes);
}

TEST(FitClaims, AnAlternativeAboveTheLimitIsPassedOver) {
  ClaimRequest many = request_of("neuron.aws.com", 16), few = request_of("neuron.aws.com", 1);
  ClaimRequest first = request_of("efa.neuron.aws.com", 8), second = request_of(""), third = request_of("");
  first.name = "f";
  second.name = "s";
  second.first_available = {many, few};
  third = request_of("efa.neuron.aws.com", 20);
  third.name = "t";
  // 8 and 16 and 20 are above 32, 8 and 1 and 20 are not; there are no 28 interfaces.
  EXPECT_THAT(kinds_of(fit_on(asking({first, second, third}), kPod, "a")), testing::Not(Contains(Kind::claim_limit)));
  second.first_available = {many};
  EXPECT_THAT(kinds_of(fit_on(asking({first, second, third}), kPod, "a")), Contains(Kind::claim_limit));
}

TEST(FitClaims, DistinctValuesAreComparedWithTheLastOfEachRequest) {
  ClaimRequest four = request_of("neuron.aws.com", 4), three = request_of("neuron.aws.com", 3);
  four.name = "r0";
  three.name = "r1";
  const ClaimConstraint distinct{{}, "", "resource.aws.com/devicegroup4_id"};
  EXPECT_THAT(device_names(fit_on(asking({four, three}, {distinct}), kPod, "a")),
              ElementsAre("neuron-device-0", "neuron-device-4", "neuron-device-8", "neuron-device-12",
                          "neuron-device-1", "neuron-device-5", "neuron-device-9"));
}

}  // namespace
}  // namespace neuron::fleet::test
