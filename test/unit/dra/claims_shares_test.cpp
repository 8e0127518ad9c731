// Shares: cores of a device that claims share (docs/dra-partitions.md#shares).
#include <set>
#include <thread>

#include "test/unit/dra/shares_fixture.h"

namespace neuron::plugin::dra {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(ClaimShares, ClaimsShareADeviceAndTheAnswerSaysWhichCores) {
  EXPECT_EQ(put_and_prepare("a", 3, 1), "");
  EXPECT_EQ(put_and_prepare("b", 3, 2), "");
  EXPECT_EQ(put_and_prepare("c", 3, 1), "");
  EXPECT_EQ(cdi_device("a"), "uid-a-neuron-device-3-share-0-1");
  EXPECT_EQ(cdi_device("b"), "uid-b-neuron-device-3-share-4-7");
  EXPECT_EQ(cdi_device("c"), "uid-c-neuron-device-3-share-2-3");
  EXPECT_EQ(env_of("uid-b", "cores"), "NEURON_RT_VISIBLE_CORES=2-3");
  const PrepareAnswer again = prepare("b");
  ASSERT_EQ(again.devices.size(), 1U);
  EXPECT_EQ(again.devices[0].device, "neuron-device-3") << "as in the slice";
  EXPECT_EQ(again.devices[0].share_id, "b");
  EXPECT_THAT(agent_->store.held_devices(), ElementsAre("neuron-device-3"));
}

TEST_F(ClaimShares, WhatNobodyAskedForIsTheWholeDevice) {
  EXPECT_EQ(put_and_prepare("all", 3, 4), "");
  EXPECT_EQ(cdi_device("all"), "uid-all-neuron-device-3");
  EXPECT_EQ(put_and_refuse("one", 3, 1), "held_by_claim");
  EXPECT_EQ(unprepare("all"), "");
  EXPECT_EQ(prepare("one").error, "");
}

// The freed core is the first choice; the records that the call began with still show its former holder.
TEST_F(ClaimShares, AClaimThatIsReleasedDuringThePrepareIsNoConflict) {
  EXPECT_EQ(put_and_prepare("a", 3, 1), "");
  meanwhile_ = [this] { EXPECT_EQ(unprepare("a"), ""); };
  EXPECT_EQ(put_and_prepare("b", 3, 1), "");
  EXPECT_EQ(cdi_device("b"), "uid-b-neuron-device-3-share-0-1");
}

// Two instances of the driver, as in a rolling update: this one chooses while the other one prepares.
TEST_F(ClaimShares, CoresThatAnotherInstanceHasGivenAwayAreChosenAnew) {
  const auto other = another_instance();
  put_claim("b", {share("cores", 3, 1, "b")});
  meanwhile_ = [&] { EXPECT_EQ(other->claims.prepare({ref("b")}, {}).at("uid-b").error, ""); };
  EXPECT_EQ(put_and_prepare("a", 3, 2), "");
  EXPECT_EQ(cdi_device("b"), "uid-b-neuron-device-3-share-0-1");
  EXPECT_EQ(cdi_device("a"), "uid-a-neuron-device-3-share-4-7");
  EXPECT_EQ(env_of("uid-a", "cores"), "NEURON_RT_VISIBLE_CORES=2-3");

  put_claim("c", {share("cores", 3, 1, "c")});
  meanwhile_ = [&] { EXPECT_EQ(other->claims.prepare({ref("c")}, {}).at("uid-c").error, ""); };
  EXPECT_EQ(put_and_refuse("d", 3, 1), "held_by_claim");
}

// The other instance is faster each time: after the third choice the claim is refused, and the kubelet's retry begins
// with what is left.
TEST_F(ClaimShares, CoresAreChosenThreeTimesInOneCall) {
  const auto other = another_instance();
  const auto prepare_while_losing = [&](const std::string& name, int device, int times) {
    std::set<int> lost;  // logical cores, of two physical ones each
    bool is_other = false;
    before_commit_ = [&](int core) {
      if (is_other || static_cast<int>(lost.size()) == times || !lost.insert(core / 2).second) return;
      is_other = true;
      const std::string winner = name + "-lost-" + std::to_string(lost.size());
      put_claim(winner, {share("cores", device, 1, winner)});
      EXPECT_EQ(other->claims.prepare({ref(winner)}, {}).at(uid_of(winner)).error, "");
      is_other = false;
    };
    const std::string error = put_and_prepare(name, device, 1);
    before_commit_ = nullptr;
    EXPECT_EQ(static_cast<int>(lost.size()), times);
    return error;
  };
  EXPECT_EQ(prepare_while_losing("a", 3, 2), "");
  EXPECT_EQ(cdi_device("a"), "uid-a-neuron-device-3-share-4-5");
  EXPECT_THAT(prepare_while_losing("b", 5, 3), HasSubstr("is held by the claim default/b-lost-3"));
  EXPECT_FALSE(agent_->store.held_claims().contains("uid-b"));
  EXPECT_EQ(prepare("b").error, "");
  EXPECT_EQ(cdi_device("b"), "uid-b-neuron-device-5-share-6-7");
}

TEST_F(ClaimShares, CoresThatAnotherInstanceHasChosenForTheClaimAreItsOwn) {
  const auto other = another_instance();
  put_claim("a", {share("cores", 3, 1, "a")});
  put_claim("b", {share("cores", 3, 1, "b")});
  meanwhile_ = [&] {
    for (const char* name : {"b", "a"}) {
      EXPECT_EQ(other->claims.prepare({ref(name)}, {}).at(uid_of(name)).error, "");
    }
    EXPECT_EQ(other->claims.unprepare({ref("b")}).at("uid-b"), "");
  };
  EXPECT_EQ(prepare("a").error, "");
  EXPECT_EQ(cdi_device("a"), "uid-a-neuron-device-3-share-2-3");
}

// A container's variables are over all its claims, also over one that is committed before the other loses its cores.
TEST_F(ClaimShares, ClaimsOfOneContainerAreChosenAnewTogether) {
  const auto other = another_instance();
  put_claim("a", {share("cores", 2, 1, "a")});
  put_claim("z", {share("cores", 5, 1, "z")});
  put_claim("b", {share("cores", 5, 1, "b")});
  for (const char* pod : {"pod-a", "pod-z"}) {
    put_pod(pod, {{"main", {{"a", ""}, {"z", ""}}}}, std::string("pod-uid-") + (pod + 4));
  }
  meanwhile_ = [&] { EXPECT_EQ(other->claims.prepare({ref("b")}, {}).at("uid-b").error, ""); };
  const auto answers = prepare_all({"a", "z"});
  EXPECT_EQ(answers.at("uid-a").error + answers.at("uid-z").error, "");
  EXPECT_EQ(cdi_device("b"), "uid-b-neuron-device-5-share-0-1");
  EXPECT_EQ(cdi_device("z"), "uid-z-neuron-device-5-share-2-3");
  EXPECT_EQ(env_of("uid-a", "cores"), env_of("uid-z", "cores"));
  EXPECT_THAT(env_of("uid-a", "cores"), testing::EndsWith(",5"));
}

TEST_F(ClaimShares, ChosenCoresStay) {
  put_and_prepare("a", 3, 1);
  put_and_prepare("b", 3, 1);
  EXPECT_EQ(unprepare("a"), "");
  EXPECT_EQ(cdi_device("b"), "uid-b-neuron-device-3-share-2-3");
  restart();
  EXPECT_EQ(prepare("b").error, "");
  EXPECT_EQ(cdi_device("b"), "uid-b-neuron-device-3-share-2-3");
  change_node([](model::HostScan& host) { host.lnc = {1, model::Origin::live}; });
  EXPECT_EQ(prepare("b").error, "");
  EXPECT_EQ(cdi_device("b"), "uid-b-neuron-device-3-share-2-3");
}

// The file of records is lost: what containers have is in the names of their CDI devices.
TEST_F(ClaimShares, AreKnownAgainFromTheirCdiFiles) {
  put_and_prepare("a", 3, 1);
  put_and_prepare("b", 3, 1);
  EXPECT_EQ(unprepare("a"), "");
  std::filesystem::remove(directory() + "/claims.json");
  const grant::NodeUnitsPtr node = std::exchange(node_, nullptr);
  restart();
  EXPECT_THAT(agent_->store.view()->records.at("uid-b")->held().devices, ElementsAre(HeldDevice{3, {2, 3}}));
  EXPECT_THAT(agent_->store.held_devices(), ElementsAre("neuron-device-3"));
  node_ = node;
  EXPECT_EQ(prepare("b").error, "");
  EXPECT_EQ(cdi_device("b"), "uid-b-neuron-device-3-share-2-3") << "not the lowest ones, which are free";
  EXPECT_EQ(put_and_prepare("c", 3, 1), "");
  EXPECT_EQ(cdi_device("c"), "uid-c-neuron-device-3-share-0-1");
}

// A claim that says no capacity has its devices alone: as many cores as there were then, all of them also after the
// node's LNC has changed, before it was prepared.
TEST_F(ClaimShares, AWholeDeviceIsWholeAfterAChangeOfTheLnc) {
  put_alone("whole", share("cores", 3, 4, "whole"));
  put_alone("again", share("cores", 5, 4, "again"));
  put_alone("taken", share("cores", 6, 4, "taken"));
  change_node([](model::HostScan& host) { host.lnc = {1, model::Origin::live}; });
  EXPECT_EQ(prepare("whole").error, "");
  EXPECT_EQ(cdi_device("whole"), "uid-whole-neuron-device-3");
  EXPECT_EQ(env_of("uid-whole", "cores"), "NEURON_RT_VISIBLE_CORES=0-7");
  make_core_ill(5, 7);
  EXPECT_EQ(prepare("again").reason, "unhealthy");
  EXPECT_EQ(put_and_prepare("share", 6, 4), "") << "a request that says 4 gets 4";
  EXPECT_EQ(cdi_device("share"), "uid-share-neuron-device-6-share-0-3");
  EXPECT_EQ(prepare("taken").reason, "held_by_claim");
}

TEST_F(ClaimShares, AWholeDeviceWithAnUnhealthyCoreHasTheOthers) {
  put_alone("then", share("cores", 3, 3, "then"));
  make_core_ill(4, 3);
  put_alone("now", share("cores", 4, 3, "now"));
  EXPECT_EQ(prepare("now").error, "");
  EXPECT_EQ(cdi_device("now"), "uid-now-neuron-device-4-share-0-5");
  EXPECT_EQ(prepare("then").error, "");
  EXPECT_EQ(cdi_device("then"), "uid-then-neuron-device-3-share-0-5") << "it is healthy again, and counts one as free";
  EXPECT_EQ(unprepare("then") + unprepare("now"), "");
  change_node([](model::HostScan& host) { host.lnc = {1, model::Origin::live}; });
  EXPECT_EQ(prepare("then").error, "");
  EXPECT_EQ(cdi_device("then"), "uid-then-neuron-device-3-share-0-5") << "6 of 8 logical cores";
}

TEST_F(ClaimShares, FewerAndLargerCoresAreWhatTheRequestSays) {
  change_node([](model::HostScan& host) { host.lnc = {1, model::Origin::live}; });
  put_alone("whole", share("cores", 3, 8, "whole"));
  put_claim("part", {share("cores", 4, 2, "part")});
  change_node([](model::HostScan& host) { host.lnc = {2, model::Origin::live}; });
  EXPECT_EQ(prepare("whole").error + prepare("part").error, "");
  EXPECT_EQ(cdi_device("whole"), "uid-whole-neuron-device-3");
  EXPECT_EQ(cdi_device("part"), "uid-part-neuron-device-4-share-0-3");
}

// As many logical cores as the request says, of the LNC at the time of Prepare, as a device plugin's pod would get.
TEST_F(ClaimShares, MoreCoresThanTheDeviceHasByTheNewLncAreRefused) {
  change_node([](model::HostScan& host) { host.lnc = {1, model::Origin::live}; });
  for (const int cores : {4, 5, 8}) {
    const std::string name = "of-" + std::to_string(cores);
    put_claim(name, {share("cores", cores, cores, name)});
    json claim = api_.at(claim_path(name));
    claim["spec"]["devices"]["requests"] = {
        {{"name", "cores"}, {"exactly", {{"capacity", {{"requests", {{"cores", std::to_string(cores)}}}}}}}}};
    api_.put(claim_path(name), claim);
  }
  change_node([](model::HostScan& host) { host.lnc = {2, model::Origin::live}; });
  EXPECT_EQ(prepare("of-4").error, "");
  EXPECT_EQ(cdi_device("of-4"), "uid-of-4-neuron-device-4");
  EXPECT_THAT(
      prepare("of-5").error,
      HasSubstr("5 cores of neuron5 were allocated, and by the node's LNC 2 it has 4; the LNC was changed since"));
  EXPECT_THAT(prepare("of-8").error, HasSubstr("delete the pod, so that a new one is allocated by it"));
  EXPECT_EQ(agent_->store.held_claims().size(), 1U);
  change_node([](model::HostScan& host) { host.lnc = {1, model::Origin::live}; });
  EXPECT_EQ(unprepare("of-4"), "");
  EXPECT_EQ(prepare("of-5").error + prepare("of-8").error, "");
  EXPECT_EQ(cdi_device("of-5"), "uid-of-5-neuron-device-5-share-0-4");
}

TEST_F(ClaimShares, AnUnhealthyCoreIsNotGiven) {
  make_core_ill(3, 0);
  EXPECT_EQ(put_and_prepare("a", 3, 3), "");
  EXPECT_EQ(cdi_device("a"), "uid-a-neuron-device-3-share-2-7");
  EXPECT_EQ(unprepare("a"), "");
  make_core_ill(3, 2);
  EXPECT_EQ(put_and_refuse("b", 3, 4), "unhealthy") << "it was whole when the scheduler chose it";
  put_and_prepare("c", 3, 1);
  EXPECT_THAT(put_and_prepare("d", 3, 3),
              HasSubstr("allocated 3 cores of neuron3, and 2 are healthy and free; one is "
                        "unhealthy: a core has failed; neuron3 is held by the claim default/c"));
}

TEST_F(ClaimShares, CoresOfADevicePluginsContainersAreNotGiven) {
  plugin_holders_ = PluginHolders{{"default/old/main", "aws.amazon.com/neuroncore", false, {{{3, {0, 1, 2, 3}}}, {}}}};
  EXPECT_EQ(put_and_prepare("a", 3, 2), "");
  EXPECT_EQ(cdi_device("a"), "uid-a-neuron-device-3-share-4-7");
  EXPECT_EQ(put_and_refuse("b", 3, 1), "held_by_plugin");
}

TEST_F(ClaimShares, OneClaimOverDevicesIsOneRange) {
  put_claim("c", {share("cores", 2, 1, "x"), share("cores", 5, 2, "y")});
  EXPECT_EQ(prepare("c").error, "");
  EXPECT_EQ(env_of("uid-c", "cores"), "NEURON_RT_VISIBLE_CORES=3-5");
}

TEST_F(ClaimShares, TwoRequestsOfOneClaimOnOneDevice) {
  put_claim("c", {share("one", 2, 1, "x"), share("two", 2, 2, "y")});
  const PrepareAnswer answer = prepare("c");
  ASSERT_EQ(answer.devices.size(), 2U) << answer.error;
  EXPECT_EQ(answer.devices[0].share_id, "x");
  EXPECT_EQ(answer.devices[1].share_id, "y");
  EXPECT_EQ(env_of("uid-c", "one"), "NEURON_RT_VISIBLE_CORES=0-2");
}

TEST_F(ClaimShares, BesideThePodsOtherClaim) {
  put_claim("a", {share("cores", 2, 1, "x")});
  put_claim("b", {{"chips", "neuron-device-3"}});
  put_pod("pod-a", {{"main", {{"a", ""}, {"b", ""}}}}, "pod-uid-a");
  put_pod("pod-b", {{"main", {{"a", ""}, {"b", ""}}}}, "pod-uid-b");
  const auto answers = prepare_all({"b", "a"});
  EXPECT_EQ(answers.at("uid-a").error + answers.at("uid-b").error, "");
  EXPECT_EQ(cdi_device("a"), "uid-a-neuron-device-2-share-6-7");
  EXPECT_EQ(env_of("uid-a", "cores"), "NEURON_RT_VISIBLE_CORES=3-7");
}

TEST_F(ClaimShares, AdminAccessHoldsNoCores) {
  ResultText look = share("look", 3, 4, "l");
  look.more["adminAccess"] = true;
  put_claim("look", {look});
  EXPECT_EQ(prepare("look").error, "");
  for (const char* name : {"a", "b", "c", "d"}) EXPECT_EQ(put_and_prepare(name, 3, 1), "");
  EXPECT_EQ(prepare("look").error, "");
  EXPECT_EQ(cdi_device("look"), "uid-look-admin-neuron-device-3");
}

// Two claims that are gone, and the kubelet lists one of them, by its cores.
TEST_F(ClaimShares, TheSweepKnowsAShareByItsCores) {
  EXPECT_EQ(put_and_prepare("a", 3, 1) + put_and_prepare("b", 3, 1), "");
  model::Allocation& listed = listed_.emplace_back();
  listed.pod_namespace = "default";
  listed.resource_name = kDriver;
  listed.claim = "b";
  listed.ids = {agent_->store.held_claims().at("uid-b")->devices.at(0).share};
  for (const char* name : {"a", "b"}) api_.drop(claim_path(name));
  EXPECT_THAT(*agent_->sweep.sweep(), ElementsAre("default/a (uid uid-a)"));
  listed.ids = {"neuron-device-3"};
  EXPECT_THAT(*agent_->sweep.sweep(), ElementsAre("default/b (uid uid-b)"));
}

TEST_F(ClaimShares, TheNameOfAShareIsNoDevice) {
  put_claim("c", {{"cores", "neuron-device-3-share-0-1"}});
  EXPECT_THAT(prepare("c").error, HasSubstr("is not a device that this driver offers"));
  put_claim("d", {share("cores", 3, 0, "d")});
  EXPECT_THAT(prepare("d").error, HasSubstr("has no core of its device"));
}

TEST_F(ClaimShares, ManyAtOnceGetDifferentCores) {
  std::vector<std::string> names;
  for (int i = 0; i < 32; ++i) {
    names.push_back("c" + std::to_string(i));
    put_claim(names.back(), {share("cores", i / 4, 1, names.back())});
  }
  std::vector<std::string> errors(names.size());
  {
    std::vector<std::jthread> calls;
    for (std::size_t i = 0; i < names.size(); ++i) {
      calls.emplace_back([&, i] { errors[i] = prepare(names[i]).error; });
      calls.emplace_back([&, i] { (void)prepare(names[i]); });  // of another pod
    }
  }
  EXPECT_THAT(errors, testing::Each(""));
  Hardware all;
  for (const auto& [uid, record] : agent_->store.held_claims()) {
    EXPECT_EQ(overlap(record->held(), all), std::nullopt);
    all.add(record->held());
    EXPECT_THAT(record->cdi_text, HasSubstr(record->devices.at(0).share));
  }
  EXPECT_EQ(agent_->store.held_claims().size(), 32U);
}

}  // namespace
}  // namespace neuron::plugin::dra
