#include "plugin/dra/claim/claim_upkeep.h"

#include "test/unit/dra/claims_fixture.h"

namespace neuron::plugin::dra {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class ClaimSweepTest : public ClaimsTest {
 protected:
  void SetUp() override {
    ClaimsTest::SetUp();
    put_claim("a", {{"chips", "neuron-device-2"}, {"chips", "neuron-device-3"}});
    ASSERT_EQ(prepare("a").error, "");
  }
  [[nodiscard]] std::vector<std::string> sweep() {
    const auto forgotten = agent_->sweep.sweep();
    EXPECT_TRUE(forgotten) << forgotten.error().message;
    return forgotten ? *forgotten : std::vector<std::string>();
  }
  void list(const std::string& claim, const std::vector<std::string>& devices, const std::string& driver = kDriver,
            const std::string& uid = "") {
    model::Allocation allocation;
    allocation.ids = devices;
    allocation.resource_name = driver;
    allocation.pod_namespace = "default";
    allocation.claim = claim;
    allocation.cdi_id = uid.empty() ? "" : "k8s." + driver + "/claim=" + uid + "-" + devices.at(0);
    listed_.push_back(allocation);
  }
  // That holds nothing.
  void list_pod(const std::string& name) {
    model::Allocation& pod = listed_.emplace_back();
    pod.pod_namespace = "kube-system";
    pod.pod = name;
  }
  // A claim of one interface, which its pod may keep for so long after its deletion.
  void prepare_interface(std::optional<int> grace) {
    put_claim("nic", {{"nics", "efa-" + node_->efa(0).name}});
    json pod = pod_json("pod-nic", "pod-uid-nic", {{"main", {{"nic", ""}}}});
    if (grace) pod["spec"]["terminationGracePeriodSeconds"] = *grace;
    api_.put("/api/v1/namespaces/default/pods/pod-nic", pod);
    ASSERT_EQ(prepare("nic").error, "");
    api_.drop(claim_path("nic"));
  }
};

// An entry that nobody releases goes by itself.
TEST_F(ClaimSweepTest, Pain4AClaimThatIsGoneEverywhereIsForgotten) {
  EXPECT_THAT(sweep(), IsEmpty());  // it is there
  api_.drop(claim_path("a"));
  EXPECT_THAT(sweep(), ElementsAre("default/a (uid uid-a)"));
  EXPECT_EQ(prepared(), 0U);
  EXPECT_THAT(names_in(cdi()), IsEmpty());
  put_claim("b", {{"chips", "neuron-device-2"}});
  EXPECT_EQ(prepare("b").error, "");
}

TEST_F(ClaimSweepTest, AClaimUnderTheSameNameIsAnotherOne) {
  api_.drop(claim_path("a"));
  api_.put(claim_path("a"), claim_json("a", "uid-2", {{"chips", "neuron-device-9"}}));
  EXPECT_THAT(sweep(), ElementsAre("default/a (uid uid-a)"));
}

TEST_F(ClaimSweepTest, AClaimThatIsNotAllocatedHereAnyMoreIsForgotten) {
  put_claim("a", {{"chips", "neuron-device-2", kDriver, "another-node"}});
  EXPECT_THAT(sweep(), ElementsAre("default/a (uid uid-a)"));
}

TEST_F(ClaimSweepTest, WhatTheKubeletListsOrWhatHasMemoryStays) {
  api_.drop(claim_path("a"));
  list("a", {"neuron-device-2", "neuron-device-3"});
  api_.forget_calls();
  EXPECT_THAT(sweep(), IsEmpty());
  EXPECT_THAT(api_.calls(), IsEmpty());  // the server is not asked of what is in use
  listed_.clear();
  list("a", {"neuron-device-2"}, "gpu.example.com");
  leftovers_.set(3, 1, 4096);
  EXPECT_THAT(sweep(), IsEmpty());
  leftovers_.set(3, 1, 0);
  EXPECT_THAT(sweep(), ElementsAre("default/a (uid uid-a)"));
}

TEST_F(ClaimSweepTest, NothingIsForgottenWhileTheServerDoesNotAnswer) {
  api_.drop(claim_path("a"));
  for (const int status : {403, 429, 500, 503}) {
    api_.fail_next({.times = fakes::FakeApi::kAlways, .status = status});
    EXPECT_THAT(sweep(), IsEmpty()) << status;
    api_.heal();
  }
  for (const auto why : {ErrorCode::deadline_exceeded, ErrorCode::failed_precondition}) {  // no answer; no token
    api_.fail_next({.times = fakes::FakeApi::kAlways, .error = make_error(why, "the server was not asked")});
    EXPECT_THAT(sweep(), IsEmpty());
    api_.heal();
  }
}

// As a server in an upgrade of its control plane does for an API version that it lacks.
TEST_F(ClaimSweepTest, AVersionThatIsNotServedSaysNothingAboutTheClaim) {
  for (const std::vector<std::string>& served : {std::vector<std::string>{}, {"v1alpha3"}}) {
    api_.set_served(served);
    EXPECT_THAT(sweep(), IsEmpty());
    EXPECT_EQ(prepare("a").error, "") << "what is prepared is answered";
  }
  api_.set_served({"v1beta1"});
  EXPECT_THAT(sweep(), IsEmpty());
  api_.drop(claim_path("a"));
  EXPECT_THAT(sweep(), ElementsAre("default/a (uid uid-a)"));
}

// A claim that was rebuilt of its CDI file has no name: what the kubelet lists tells it.
TEST_F(ClaimSweepTest, AClaimWithoutANameLearnsItOrIsForgottenAtTheSecondList) {
  std::filesystem::remove(directory() + "/claims.json");
  restart();
  list("monitor", {"neuron-device-2", "neuron-device-3"});  // perhaps for admin access
  EXPECT_THAT(sweep(), IsEmpty());
  EXPECT_EQ(agent_->store.view()->records.at("uid-a")->shown(), "with uid uid-a") << "devices alone prove no name";
  list("monitor", {"neuron-device-2", "neuron-device-3"}, kDriver, "uid-monitor-admin");
  list("a", {"neuron-device-2", "neuron-device-3"}, kDriver, "uid-a");
  EXPECT_THAT(sweep(), IsEmpty());
  EXPECT_EQ(agent_->store.view()->records.at("uid-a")->shown(), "default/a (uid uid-a)");
  listed_.clear();
  list_pod("web");
  std::filesystem::remove(directory() + "/claims.json");
  restart();
  EXPECT_THAT(sweep(), IsEmpty());
  EXPECT_THAT(sweep(), ElementsAre("with uid uid-a"));
}

// A kubelet that has just started lists nothing, or static pods alone.
TEST_F(ClaimSweepTest, AClaimWithoutANameStaysWhileNoListIsWhole) {
  std::filesystem::remove(directory() + "/claims.json");
  own_pod_ = "agent-x";
  restart();
  const auto sweeps = [this] {
    for (int i = 0; i < 4; ++i) EXPECT_THAT(sweep(), IsEmpty()) << i;
  };
  sweeps();
  list_pod("static");
  sweeps();
  list_pod("agent-x");
  EXPECT_THAT(sweep(), IsEmpty());
  listed_.pop_back();
  sweeps();
  list_pod("agent-x");
  EXPECT_THAT(sweep(), ElementsAre("with uid uid-a"));

  own_pod_.clear();
  listed_.clear();
  put_claim("b", {{"chips", "neuron-device-2"}});
  ASSERT_EQ(prepare("b").error, "");
  std::filesystem::remove(directory() + "/claims.json");
  restart();
  sweeps();
}

// A leaked record and a claim that was made anew under its name, and runs.
TEST_F(ClaimSweepTest, AListedClaimOfTheSameNameIsAnotherOne) {
  api_.drop(claim_path("a"));
  list("a", {"neuron-device-9"}, kDriver, "uid-2");
  EXPECT_THAT(sweep(), ElementsAre("default/a (uid uid-a)"));
}

TEST_F(ClaimSweepTest, AListedClaimIsKnownByItsUid) {
  api_.drop(claim_path("a"));
  list("a", {"neuron-device-2", "neuron-device-3"}, kDriver, "uid-a");
  EXPECT_THAT(sweep(), IsEmpty());
}

TEST_F(ClaimSweepTest, WithoutCdiIdsNameAndDevicesTell) {
  api_.drop(claim_path("a"));
  list("a", {"neuron-device-9"});
  EXPECT_THAT(sweep(), ElementsAre("default/a (uid uid-a)"));
}

// Nothing shows whether a container still uses an interface.
TEST_F(ClaimSweepTest, AnInterfaceStaysForTheGracePeriodOfItsPod) {
  prepare_interface(600);
  EXPECT_THAT(sweep(), IsEmpty());
  clock_.advance(std::chrono::seconds(600));
  EXPECT_THAT(sweep(), IsEmpty());
  clock_.advance(ClaimSweep::kGraceMargin);
  EXPECT_THAT(sweep(), ElementsAre("default/nic (uid uid-nic)"));
}

// Another pod uses the claim later, and its containers may run for longer.
TEST_F(ClaimSweepTest, ALaterPodsLongerGracePeriodCounts) {
  const auto put_pod = [this](const std::string& name, int grace) {
    json pod = pod_json(name, "uid-of-" + name, {{"main", {{"nic", ""}}}});
    pod["spec"]["terminationGracePeriodSeconds"] = grace;
    api_.put("/api/v1/namespaces/default/pods/" + name, pod);
  };
  json claim = claim_json("nic", "uid-nic", {{"nics", "efa-" + node_->efa(0).name}});
  for (const auto& [name, grace] : {std::pair{"p1", 30}, std::pair{"p2", 600}, std::pair{"p3", 60}}) {
    reserve_for(claim, name, std::string("uid-of-") + name);
    api_.put(claim_path("nic"), claim);
    put_pod(name, grace);
    ASSERT_EQ(prepare("nic").error, "");
  }
  api_.forget_calls();
  ASSERT_EQ(prepare("nic").error, "");
  EXPECT_EQ(api_.calls().size(), 1U) << "each pod is read once";
  restart();
  api_.drop(claim_path("nic"));
  EXPECT_THAT(sweep(), IsEmpty());
  clock_.advance(std::chrono::seconds(599) + ClaimSweep::kGraceMargin);
  EXPECT_THAT(sweep(), IsEmpty());
  clock_.advance(std::chrono::seconds(1));
  EXPECT_THAT(sweep(), ElementsAre("default/nic (uid uid-nic)"));
}

TEST_F(ClaimSweepTest, TheGracePeriodOutlivesARestart) {
  prepare_interface(std::nullopt);  // 30 s
  restart();
  EXPECT_THAT(sweep(), IsEmpty());
  clock_.advance(std::chrono::seconds(29) + ClaimSweep::kGraceMargin);
  EXPECT_THAT(sweep(), IsEmpty());
  clock_.advance(std::chrono::seconds(1));
  EXPECT_THAT(sweep(), ElementsAre("default/nic (uid uid-nic)"));
}

TEST_F(ClaimSweepTest, AnUnknownGracePeriodIsLong) {
  api_.fail_next({.times = fakes::FakeApi::kAlways, .path_part = "/pods/", .status = 403, .words = "forbidden"});
  prepare_interface(10);
  EXPECT_THAT(sweep(), IsEmpty());
  clock_.advance(ClaimSweep::kUnknownGrace);
  EXPECT_THAT(sweep(), IsEmpty());
  clock_.advance(ClaimSweep::kGraceMargin);
  EXPECT_THAT(sweep(), ElementsAre("default/nic (uid uid-nic)"));
}

// The time counts from when it was gone without a break.
TEST_F(ClaimSweepTest, WhatIsListedAgainBeginsAnew) {
  prepare_interface(600);
  EXPECT_THAT(sweep(), IsEmpty());
  clock_.advance(std::chrono::seconds(659));
  list("nic", {"efa-" + node_->efa(0).name}, kDriver, "uid-nic");
  EXPECT_THAT(sweep(), IsEmpty());
  listed_.clear();
  clock_.advance(std::chrono::seconds(1));
  EXPECT_THAT(sweep(), IsEmpty());
  clock_.advance(std::chrono::seconds(660));
  EXPECT_THAT(sweep(), ElementsAre("default/nic (uid uid-nic)"));
}

TEST_F(ClaimSweepTest, MemoryThatCannotBeReadIsNotNone) {
  api_.drop(claim_path("a"));
  leftovers_.set_unreadable(3, 1);
  EXPECT_THAT(sweep(), IsEmpty());
  leftovers_.set(3, 1, 0);
  EXPECT_THAT(sweep(), ElementsAre("default/a (uid uid-a)"));
}

TEST_F(ClaimSweepTest, ADeviceThatIsAwayShowsNothing) {
  api_.drop(claim_path("a"));
  change_node([](model::HostScan& host) { host.devices.erase(host.devices.begin() + 3); });
  EXPECT_THAT(sweep(), IsEmpty());
  clock_.advance(std::chrono::seconds(30) + ClaimSweep::kGraceMargin);
  EXPECT_THAT(sweep(), ElementsAre("default/a (uid uid-a)"));
}

TEST_F(ClaimSweepTest, WithoutAScanNothingIsForgotten) {
  api_.drop(claim_path("a"));
  node_ = nullptr;
  EXPECT_THAT(sweep(), IsEmpty());
}

}  // namespace
}  // namespace neuron::plugin::dra
