// Claims by what else the containers of their pods use.

#include "plugin/dra/claim/claim_preparer.h"
#include "test/unit/dra/claims_fixture.h"

namespace neuron::plugin::dra {
namespace {

using testing::HasSubstr;

// The rule of the variables, through API objects.
TEST_F(ClaimsTest, Pain25SeveralClaimsOfOneContainerCarryTheUnion) {
  for (const char* name : {"a", "b"}) {
    json claim =
        claim_json(name, uid_of(name), {{"chips", name == std::string("a") ? "neuron-device-1" : "neuron-device-0"}});
    reserve_for(claim, "p", "pod-uid");
    api_.put(claim_path(name), claim);
  }
  put_pod("p", {{"main", {{"a", ""}, {"b", "chips"}}}}, "pod-uid");
  const auto answers = prepare_all({"a", "b"});
  EXPECT_EQ(answers.at("uid-a").error + answers.at("uid-b").error, "");
  EXPECT_EQ(env_of("uid-a", "chips"), "NEURON_RT_VISIBLE_CORES=0-3");
  EXPECT_EQ(env_of("uid-b", "chips"), "NEURON_RT_VISIBLE_CORES=0-3");
}

// A claim must not be prepared with a value that leaves out a claim of the same container which failed.
TEST_F(ClaimsTest, AClaimWaitsForTheOthersOfItsContainers) {
  for (const char* name : {"a", "b"}) {
    json claim =
        claim_json(name, uid_of(name), {{"chips", name == std::string("a") ? "neuron-device-77" : "neuron-device-0"}});
    reserve_for(claim, "p", "pod-uid");
    api_.put(claim_path(name), claim);
  }
  put_pod("p", {{"main", {{"a", ""}, {"b", ""}}}}, "pod-uid");
  scanned_ = node_;
  const auto answers = prepare_all({"a", "b"});
  EXPECT_EQ(answers.at("uid-a").reason, "unknown_device");
  EXPECT_EQ(answers.at("uid-b").reason, "other_claim");
  EXPECT_EQ(prepared(), 0U);
}

TEST_F(ClaimsTest, ASharedClaimThatIsPreparedDecidesForTheNext) {
  put_claim("shared", {{"chips", "neuron-device-1"}});
  ASSERT_EQ(prepare("shared").error, "");
  json claim = claim_json("b", "uid-b", {{"chips", "neuron-device-0"}});
  reserve_for(claim, "p", "pod-uid");
  api_.put(claim_path("b"), claim);
  put_pod("p", {{"main", {{"shared", ""}, {"b", ""}}}}, "pod-uid");
  EXPECT_EQ(prepare("b").reason, "request_clash");
  put_pod("p", {{"one", {{"shared", ""}}}, {"two", {{"b", ""}}}}, "pod-uid");
  EXPECT_EQ(prepare("b").error, "");
}

TEST_F(ClaimsTest, WithoutPodsAClaimWithOneNeuronRequestIsServed) {
  put_claim("one", {{"chips", "neuron-device-1"}, {"nics", "efa-" + node_->efa(0).name}});
  put_claim("two", {{"chips", "neuron-device-2"}, {"more", "neuron-device-3"}});
  api_.fail_next(
      {.times = fakes::FakeApi::kAlways, .path_part = "/pods/", .status = 403, .words = "pods is forbidden"});
  EXPECT_EQ(prepare("one").error, "");
  EXPECT_EQ(prepare("two").reason, "pods_unread");
  api_.heal();
  EXPECT_EQ(prepare("two").error, "");
  EXPECT_EQ(env_of("uid-two", "more"), "NEURON_RT_VISIBLE_CORES=0-3");
}

// A container may use it beside a claim that is prepared: two values of one variable, unless the pod is read.
TEST_F(ClaimsTest, Pain25APodThatCannotBeReadNowIsReadLater) {
  put_claim("shared", {{"chips", "neuron-device-1"}});
  ASSERT_EQ(prepare("shared").error, "");
  json claim = claim_json("b", "uid-b", {{"chips", "neuron-device-0"}});
  reserve_for(claim, "p", "pod-uid");
  api_.put(claim_path("b"), claim);
  put_pod("p", {{"one", {{"shared", ""}}}, {"two", {{"b", ""}}}}, "pod-uid");
  const fakes::FakeApi::Failure slow{.times = fakes::FakeApi::kAlways,
                                     .path_part = "/pods/",
                                     .error = make_error(ErrorCode::deadline_exceeded, "no answer in 10 s")};
  api_.fail_next(slow);
  EXPECT_EQ(prepare("b").reason, "pods_unread");
  api_.heal();
  api_.fail_next({.times = fakes::FakeApi::kAlways, .path_part = "/pods/", .status = 403, .words = "forbidden"});
  EXPECT_THAT(prepare("b").error, HasSubstr("the variables of 2 requests depend on"));
  api_.heal();
  EXPECT_EQ(prepare("b").error, "");
}

// Of a claim that was rebuilt nobody knows which variables its containers have.
TEST_F(ClaimsTest, Pain25AClaimThatWasRebuiltIsNotJoined) {
  put_claim("shared", {{"chips", "neuron-device-1"}});
  ASSERT_EQ(prepare("shared").error, "");
  write_text(directory() + "/claims.json", "junk");
  json claim = claim_json("b", "uid-b", {{"chips", "neuron-device-0"}});
  reserve_for(claim, "p", "pod-uid");
  api_.put(claim_path("b"), claim);
  put_claim("of-another-driver", {{"chips", "gpu-0", "gpu.example.com"}});
  put_pod("p", {{"main", {{"shared", "chips"}, {"b", ""}, {"of-another-driver", ""}, {"not-made-yet", ""}}}},
          "pod-uid");
  EXPECT_THAT(prepare("b").error,
              HasSubstr("uses the claim \"shared\" as well, which is not prepared: only its CDI file is left"));
  ASSERT_TRUE(agent_->store.set_name(uid_of("shared"), "default", "shared"));  // as the sweep finds it
  EXPECT_EQ(prepare("b").reason, "other_claim");
  put_pod("p", {{"main", {{"b", ""}}}}, "pod-uid");
  EXPECT_EQ(prepare("b").error, "");  // that uses it alone
}

class ClaimsOfGroupsTest : public ClaimsTest {
 protected:
  // A prepared claim of another pod in the same namespace, and a claim "g" that is reserved for a group of pods.
  void SetUp() override {
    ClaimsTest::SetUp();
    put_claim("other", {{"chips", "neuron-device-1"}});
    ASSERT_EQ(prepare("other").error, "");
    json claim = claim_json("g", "uid-g", {{"chips", "neuron-device-0"}});
    reserve_for_group(claim, "train");
    api_.put(claim_path("g"), claim);
  }
  void put_pod_here(const std::string& name, const std::vector<ContainerText>& containers) {
    put_pod(name, containers, "pod-uid-" + name);
    pods_here_->emplace_back("default", name);
  }
};

// KEP 5729: the claim names the group only. Its pods on this node are among those that the kubelet has.
TEST_F(ClaimsOfGroupsTest, TheirPodsAreFoundAmongThoseOfTheNode) {
  put_pod_here("pod-other", {{"main", {{"other", ""}}}});
  put_pod_here("w-0", {{"main", {{"g", ""}}}});
  pods_here_->emplace_back("elsewhere", "w-1");  // of another namespace: not asked for
  EXPECT_EQ(prepare("g").error, "");
  EXPECT_EQ(env_of("uid-g", "chips"), "NEURON_RT_VISIBLE_CORES=0-1");
}

TEST_F(ClaimsOfGroupsTest, WhatTheirContainersShareStillDecides) {
  put_pod_here("w-0", {{"main", {{"g", ""}, {"other", ""}}}});
  EXPECT_EQ(prepare("g").reason, "request_clash");
}

TEST_F(ClaimsOfGroupsTest, WithoutThemTheRefusalIsTrue) {
  put_pod_here("pod-other", {{"main", {{"other", ""}}}});
  const std::string error = prepare("g").error;
  EXPECT_THAT(error, HasSubstr("the claim is reserved for podgroups/train, but no pod on this node uses it"));
  EXPECT_THAT(error, testing::Not(HasSubstr("service account")));
  EXPECT_EQ(unprepare("other"), "");
  EXPECT_EQ(prepare("g").error, "") << "with one request there is nothing to get wrong";
}

TEST_F(ClaimsOfGroupsTest, AKubeletThatDoesNotAnswerIsAskedAgain) {
  pods_here_ = fail(ErrorCode::deadline_exceeded, "no answer in 2 s");
  EXPECT_THAT(prepare("g").error, HasSubstr("asking the kubelet for its pods: no answer in 2 s"));
  pods_here_ = PodsOfClaims::PodNames();
  put_pod_here("w-0", {{"main", {{"g", ""}}}});
  EXPECT_EQ(prepare("g").error, "");
}

TEST_F(ClaimsOfGroupsTest, APodThatMayNotBeReadSaysWhatToDo) {
  put_pod_here("w-0", {{"main", {{"g", ""}}}});
  api_.fail_next({.times = fakes::FakeApi::kAlways, .path_part = "/pods/", .status = 403, .words = "forbidden"});
  EXPECT_THAT(prepare("g").error, HasSubstr("allow the driver's service account to get pods"));
}

// The API allows 256 reservations.
TEST_F(ClaimsTest, AsManyPodsAsTheApiAllowsShareAClaim) {
  put_claim("other", {{"chips", "neuron-device-1"}});
  ASSERT_EQ(prepare("other").error, "");
  json claim = claim_json("many", "uid-many", {{"chips", "neuron-device-0"}});
  for (int i = 0; i < 256; ++i) {
    const std::string pod = "p-" + std::to_string(i);
    reserve_for(claim, pod, "uid-" + pod);
    put_pod(pod, {{"main", {{"many", ""}}}}, "uid-" + pod);
  }
  api_.put(claim_path("many"), claim);
  EXPECT_EQ(prepare("many").error, "");
}

}  // namespace
}  // namespace neuron::plugin::dra
