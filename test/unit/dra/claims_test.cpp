#include "plugin/dra/claim/claim_preparer.h"

#include "plugin/dra/claim/claim_plan.h"
#include "plugin/dra/slices/pool.h"
#include "test/unit/dra/claims_fixture.h"

namespace neuron::plugin::dra {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kKind = "k8s.neuron.aws.com/claim=";

TEST_F(ClaimsTest, APreparedClaimHasItsFileAndItsIds) {
  put_claim("a", {{"chips", "neuron-device-2"}, {"chips", "neuron-device-3"}});
  const PrepareAnswer answer = prepare("a");
  EXPECT_EQ(answer.error, "");
  ASSERT_EQ(answer.devices.size(), 2U);
  EXPECT_THAT(answer.devices[0].cdi_ids, ElementsAre(kKind + std::string("uid-a-neuron-device-2")));
  EXPECT_THAT(answer.devices[1].cdi_ids,
              ElementsAre(kKind + std::string("uid-a-neuron-device-3"), kKind + std::string("uid-a-request-chips")));
  EXPECT_EQ(answer.devices[0].pool, "n1");
  EXPECT_THAT(answer.devices[0].requests, ElementsAre("chips"));
  EXPECT_EQ(env_of("uid-a", "chips"), "NEURON_RT_VISIBLE_CORES=0-3");
  EXPECT_THAT(names_in(cdi()), ElementsAre("k8s.neuron.aws.com-claim_uid-a.json"));
  EXPECT_THAT(agent_->store.held_devices(), ElementsAre("neuron-device-2", "neuron-device-3"));

  EXPECT_EQ(unprepare("a"), "");
  EXPECT_TRUE(names_in(cdi()).empty());
  EXPECT_EQ(prepared(), 0U);
  EXPECT_TRUE(agent_->store.held_devices().empty());
}

// The same ids again, and the file is there again, also without the API server, or a token for it.
TEST_F(ClaimsTest, Pain1And24PreparingAgainGivesTheSameAndTheFileAgain) {
  put_claim("a", {{"chips", "neuron-device-2"}});
  const PrepareAnswer first = prepare("a");
  const std::string file = read_text(cdi_file("uid-a"));
  leftovers_.set(2, 0, 4096);  // its own container runs by now
  for (const bool is_restarted : {false, true}) {
    if (is_restarted) restart();
    for (const auto why : {ErrorCode::internal, ErrorCode::unavailable, ErrorCode::failed_precondition}) {
      if (why != ErrorCode::internal) {
        api_.fail_next({.times = fakes::FakeApi::kAlways, .error = make_error(why, "no route, or no token")});
      }
      std::filesystem::remove_all(cdi());
      const PrepareAnswer again = prepare("a");
      EXPECT_EQ(again.error, "");
      ASSERT_EQ(again.devices.size(), 1U);
      EXPECT_EQ(again.devices[0].cdi_ids, first.devices[0].cdi_ids);
      EXPECT_EQ(again.devices[0].requests, first.devices[0].requests);
      EXPECT_EQ(read_text(cdi_file("uid-a")), file);
      api_.heal();
    }
  }
}

TEST_F(ClaimsTest, EveryVersionOfTheApiIsRead) {
  for (const std::vector<std::string>& served :
       {std::vector<std::string>{"v1", "v1beta2", "v1beta1"}, {"v1beta2", "v1beta1"}, {"v1beta1"}}) {
    api_.set_served(served);
    const std::string name = "claim-" + served.front();
    put_claim(name, {{"chips", "neuron-device-" + std::to_string(served.size())}});
    EXPECT_EQ(prepare(name).error, "");
    EXPECT_EQ(prepare(name).error, "");
  }
  api_.set_served({});
  put_claim("none", {{"chips", "neuron-device-9"}});
  EXPECT_EQ(prepare("none").reason, "api_server");
}

// Two pods on one device, by whatever name. The retry succeeds once the first has gone.
TEST_F(ClaimsTest, Pain3DevicesCoresGroupsAndInterfacesAreHeldOnce) {
  const std::string efa = "efa-" + node_->efa(0).name;
  put_claim("a", {{"chips", "neuron-device-2"}, {"nics", efa}});
  ASSERT_EQ(prepare("a").error, "");
  put_claim("device", {{"chips", "neuron-device-2"}});
  put_claim("core", {{"chips", "neuron-device-2-core-1"}});
  put_claim("group", {{"chips", "neuron-group-0-3"}});
  put_claim("nic", {{"nics", efa}});
  put_claim("node", {{"chips", "neuron-node"}});
  for (const char* name : {"device", "core", "group", "node"}) {
    EXPECT_EQ(prepare(name).reason, "held_by_claim") << name;
  }
  EXPECT_THAT(prepare("device").error, HasSubstr("neuron2 is held by the claim default/a (uid uid-a)"));
  EXPECT_THAT(prepare("nic").error, HasSubstr("interface " + node_->efa(0).name + " is held by the claim default/a"));
  put_claim("free", {{"chips", "neuron-group-4-7"}});
  EXPECT_EQ(prepare("free").error, "");
  ASSERT_EQ(unprepare("a"), "");
  EXPECT_EQ(prepare("core").error, "");
  put_claim("other-core", {{"chips", "neuron-device-2-core-0"}});
  EXPECT_EQ(prepare("other-core").error, "");
  EXPECT_EQ(prepare("device").reason, "held_by_claim");
}

TEST_F(ClaimsTest, Pain29AnotherInstanceHoldsToo) {
  put_claim("a", {{"chips", "neuron-device-2"}});
  put_claim("b", {{"chips", "neuron-device-2"}});
  const auto other = another_instance();
  ASSERT_EQ(prepare("a").error, "");
  const auto answer = [&](const char* name) { return other->claims.prepare({ref(name)}, {}).at(uid_of(name)); };
  EXPECT_EQ(answer("b").reason, "held_by_claim");
  EXPECT_EQ(answer("a").error, "");
  EXPECT_EQ(other->claims.unprepare({ref("a")}).at("uid-a"), "");
  EXPECT_EQ(prepare("b").error, "");
}

TEST_F(ClaimsTest, Pain39WhatCannotBePreparedSaysWhy) {
  put_claim("a", {{"chips", "neuron-device-2"}});
  EXPECT_THAT(agent_->claims.prepare({{"default", "a", "uid-of-before"}}, {}).at("uid-of-before").error,
              HasSubstr("deleted and recreated under the same name (uid uid-a, not uid-of-before)"));
  EXPECT_THAT(prepare("nowhere").error, HasSubstr("404"));
  json bare = claim_json("bare", "uid-bare", {});
  bare["status"].erase("allocation");
  api_.put(claim_path("bare"), bare);
  EXPECT_THAT(prepare("bare").error, HasSubstr("no allocation by this driver"));
  put_claim("others", {{"chips", "gpu-0", "gpu.example.com"}});
  EXPECT_THAT(prepare("others").error, HasSubstr("no allocation by this driver"));
  put_claim("elsewhere", {{"chips", "neuron-device-2", kDriver, "n2"}});
  EXPECT_THAT(prepare("elsewhere").error, HasSubstr("is of the pool \"n2\", and this node has \"n1\""));
  put_claim("missing", {{"chips", "neuron-device-77"}});
  EXPECT_THAT(prepare("missing").error,
              HasSubstr("\"neuron-device-77\" is allocated, but this node has no such device"));
  put_claim("twice", {{"chips", "neuron-device-2"}, {"more", "neuron-group-0-3"}});
  EXPECT_THAT(prepare("twice").error, HasSubstr("neuron2 is allocated twice in this claim"));
  const json misspelt = {{"apiVersion", "neuron.aws.com/v1"}, {"kind", "NeuronConfig"}, {"lnc", 1}};
  put_claim("misspelt", {{"chips", "neuron-device-2"}}, json::array({config_json("FromClaim", {}, misspelt)}));
  EXPECT_THAT(prepare("misspelt").error, HasSubstr("unknown field \"lnc\""));
  put_claim("lnc", {{"chips", "neuron-device-2"}}, json::array({config_json("FromClaim", {}, neuron_config(1))}));
  EXPECT_EQ(prepare("lnc").error,
            "pod-lnc/main: error applying config: LNC value is not configurable for instance type trn1.32xlarge");
  EXPECT_THAT(agent_->claims.prepare({{"default", "a", "../../x"}}, {}).at("../../x").error,
              HasSubstr("is not a claim"));
  EXPECT_THAT(agent_->claims.prepare({{"default", "a/../b", "u"}}, {}).at("u").error, HasSubstr("is not a valid"));
  EXPECT_EQ(prepared(), 0U);
  EXPECT_TRUE(names_in(cdi()).empty());
}

// Another's slice under our driver's name, or one from before: that run of a torus is no group of neighbours.
TEST_F(ClaimsTest, AGroupThatTheNodeDoesNotOfferIsRefusedUnlessItIsPrepared) {
  put_claim("wraps", {{"chips", "neuron-group-3-1"}});
  EXPECT_EQ(prepare("wraps").reason, "unknown_device");
  put_claim("odd", {{"chips", "neuron-group-2-5"}});
  EXPECT_EQ(prepare("odd").reason, "unknown_device");
  EXPECT_EQ(prepared(), 0U);
  put_claim("four", {{"chips", "neuron-group-4-7"}});
  EXPECT_EQ(prepare("four").error, "");
  EXPECT_EQ(unprepare("four"), "");

  write_text(cdi_file("uid-odd"), R"({"cdiVersion":"0.3.0","kind":"k8s.neuron.aws.com/claim","devices":[)"
                                  R"({"name":"uid-odd-neuron-group-2-5","containerEdits":{}}]})");
  std::filesystem::remove(directory() + "/claims.json");
  restart();
  EXPECT_EQ(prepare("odd").error, "");
}

// The event says which device is ill, and why.
TEST_F(ClaimsTest, Pain38AnIllDeviceIsRefusedWithItsReasonAndToleratedIfTheClaimSaysSo) {
  change_node([](model::HostScan& host) {
    host.devices[2].health = {model::HealthState::unhealthy, "hw_error", "5 hardware errors", "replace the instance"};
  });
  put_claim("a", {{"chips", "neuron-device-2"}});
  EXPECT_EQ(prepare("a").reason, "unhealthy");
  put_claim("b", {{"chips",
                   "neuron-device-2",
                   kDriver,
                   "n1",
                   {{"tolerations", {{{"key", "neuron.aws.com/unhealthy"}, {"operator", "Exists"}}}}}}});
  EXPECT_EQ(prepare("b").error, "");
}

// A device that the newest scan does not have yet.
TEST_F(ClaimsTest, Pain30ADeviceThatIsNotThereIsScannedForOnce) {
  scanned_ = node_;
  change_node([](model::HostScan& host) { host.devices.erase(host.devices.begin() + 2); });
  put_claim("a", {{"chips", "neuron-device-2"}});
  EXPECT_EQ(prepare("a").error, "");
  EXPECT_EQ(prepare("nowhere").devices.size(), 0U);
}

// A scan for the occasion has no memory of earlier ones, and may see less: what is known to be ill stays so.
TEST_F(ClaimsTest, AScanForADeviceThatIsNotThereClearsNoOther) {
  scanned_ = node_;
  change_node([](model::HostScan& host) {
    host.devices[3].health = {model::HealthState::unhealthy, "hw_error", "5 hardware errors", "replace the instance"};
    host.devices.erase(host.devices.begin() + 5);
  });
  put_claim("both", {{"chips", "neuron-device-5"}, {"chips", "neuron-device-3"}});
  EXPECT_EQ(prepare("both").reason, "unhealthy");
  put_claim("new", {{"chips", "neuron-device-5"}});
  put_claim("old", {{"chips", "neuron-device-3"}});
  const auto answers = prepare_all({"new", "old"});
  EXPECT_EQ(answers.at("uid-new").error, "");
  EXPECT_EQ(answers.at("uid-old").reason, "unhealthy");
}

TEST_F(ClaimsTest, BeforeTheFirstScanItIsTriedAgain) {
  put_claim("a", {{"chips", "neuron-device-2"}});
  const auto scanned = std::exchange(node_, nullptr);
  EXPECT_THAT(prepare("a").error, HasSubstr("has not been scanned yet"));
  node_ = scanned;
  EXPECT_EQ(prepare("a").error, "");
}

TEST_F(ClaimsTest, AdminAccessOpensWriteOnlyWhatOthersHoldAndHoldsNothing) {
  put_claim("a", {{"chips", "neuron-device-2"}});
  ASSERT_EQ(prepare("a").error, "");
  put_claim("monitor", {{"all", "neuron-device-2", kDriver, "n1", {{"adminAccess", true}}},
                        {"all", "neuron-device-3", kDriver, "n1", {{"adminAccess", true}}}});
  leftovers_.set(2, 0, 4096);  // admin access does not wait for memory
  EXPECT_EQ(prepare("monitor").error, "");
  EXPECT_EQ(cdi_of("uid-monitor")["devices"].size(), 2U);  // no variables
  EXPECT_EQ(cdi_of("uid-monitor")["devices"][0]["containerEdits"]["deviceNodes"][0]["permissions"], "w");
  put_claim("b", {{"chips", "neuron-device-3"}});
  EXPECT_EQ(prepare("b").error, "");
}

// The pool keeps the devices that held_devices() names, so an admin claim there would pin an unhealthy device to the
// slices of a server without taints, and split an UltraServer's node into devices.
TEST_F(ClaimsTest, DevicesOfAdminAccessAreNotHeldInThePool) {
  put_claim("mixed", {{"watch", "neuron-device-3", kDriver, "n1", {{"adminAccess", true}}},
                      {"watch", "neuron-group-0-3", kDriver, "n1", {{"adminAccess", true}}},
                      {"chips", "neuron-device-7"}});
  ASSERT_EQ(prepare("mixed").error, "");
  EXPECT_THAT(agent_->store.held_devices(), ElementsAre("neuron-device-7"));
  change_node([](model::HostScan& host) {
    for (model::NeuronDevice& device : host.devices) {
      if (device.index == 3 || device.index == 7) {
        device.health = {model::HealthState::unhealthy, "hw_error", "5 hardware errors", ""};
      }
    }
  });
  const Pool pool = make_pool(*node_, {}, agent_->store.held_devices());
  const Layout layout = lay_out(pool, {SliceShape::plain, false});
  std::vector<std::string> names;
  for (const PoolDevice& device : layout.slices.at(0).devices) names.push_back(device.name);
  EXPECT_THAT(names, testing::Not(testing::Contains("neuron-device-3")));
  EXPECT_THAT(names, testing::Contains("neuron-device-7"));
  EXPECT_EQ(std::count(names.begin(), names.end(), "neuron-group-0-3"), 0);

  put_claim("same", {{"chips", "neuron-device-4"}});  // one claim watches what another holds
  put_claim("watch", {{"all", "neuron-device-4", kDriver, "n1", {{"adminAccess", true}}}});
  ASSERT_EQ(prepare("same").error + prepare("watch").error, "");
  const auto held = ElementsAre("neuron-device-4", "neuron-device-7");
  EXPECT_THAT(agent_->store.held_devices(), held);
  std::filesystem::remove(directory() + "/claims.json");  // what CDI files say of it is the same
  restart();
  ASSERT_TRUE(agent_->store.repair());
  EXPECT_THAT(agent_->store.held_devices(), held);
  EXPECT_EQ(unprepare("same"), "");
  EXPECT_THAT(agent_->store.held_devices(), ElementsAre("neuron-device-7"));
}

// Requests of one claim for different containers, claims of one call and of different ones; the first to commit has it.
TEST_F(ClaimsTest, OneDeviceHasOneLnc) {
  node_ = node_of("trn2.48xlarge");  // LNC 2
  const json one = config_json("FromClaim", {}, neuron_config(1));
  const json two = config_json("FromClaim", {}, neuron_config(2));
  put_claim("node", {{"chips", "neuron-device-2-core-0"}});
  put_claim("same", {{"chips", "neuron-device-2-core-1"}}, json::array({two}));
  put_claim("other", {{"chips", "neuron-device-2-core-2"}}, json::array({one}));
  put_claim("elsewhere", {{"chips", "neuron-device-3-core-2"}}, json::array({one}));
  EXPECT_EQ(prepare("node").error, "");
  EXPECT_EQ(prepare("same").error, "") << "which the node has anyway";
  EXPECT_THAT(prepare("other").error,
              HasSubstr("neuron2 is used with logicalNeuronCore 2 by the claim default/node (uid uid-node), and the "
                        "request \"chips\" requests it with 1"));
  EXPECT_EQ(prepare("elsewhere").error, "");
  EXPECT_EQ(unprepare("node") + unprepare("same"), "");
  const auto answers = prepare_all({"node", "other"});
  EXPECT_EQ(answers.at("uid-node").error, "");
  EXPECT_EQ(answers.at("uid-other").reason, "lnc_clash");

  json claim = claim_json("mixed", "uid-mixed", {{"a", "neuron-device-5-core-0"}, {"b", "neuron-device-5-core-1"}},
                          json::array({config_json("FromClaim", {"b"}, neuron_config(1))}));
  reserve_for(claim, "p", "pod-uid");
  api_.put(claim_path("mixed"), claim);
  put_pod("p", {{"first", {{"mixed", "a"}}}, {"second", {{"mixed", "b"}}}}, "pod-uid");
  EXPECT_THAT(prepare("mixed").error,
              HasSubstr("neuron5 is used with logicalNeuronCore 2 by the request \"a\", and the "
                        "request \"b\" requests it with 1: a device has one"));
}

// What is prepared says by which LNC its cores were numbered, also after a restart.
TEST_F(ClaimsTest, TheNumbersOfTheNodeAreKept) {
  node_ = node_of("trn2.48xlarge");
  EXPECT_FALSE(agent_->store.held_numbering().any);
  put_claim("nic", {{"nics", "efa-" + node_->efa(0).name}});
  ASSERT_EQ(prepare("nic").error, "");
  EXPECT_FALSE(agent_->store.held_numbering().any);
  put_claim("core", {{"chips", "neuron-device-2-core-1"}});
  ASSERT_EQ(prepare("core").error, "");
  restart();
  ASSERT_TRUE(agent_->store.repair());
  EXPECT_TRUE(agent_->store.held_numbering().any);
  EXPECT_EQ(agent_->store.held_numbering().lnc, 2);
  EXPECT_EQ(unprepare("core"), "");
  EXPECT_FALSE(agent_->store.held_numbering().any);
}

// A claim that waited while the last holder went and the node was numbered anew for another one.
TEST_F(ClaimsTest, OneNodeHasOneNumbering) {
  node_ = node_of("trn2.48xlarge");  // LNC 2
  put_claim("a", {{"chips", "neuron-device-2-core-1"}});
  ASSERT_EQ(prepare("a").error, "");
  change_node([](model::HostScan& host) { host.lnc->value = 1; });
  put_claim("b", {{"chips", "neuron-device-3-core-1"}});
  EXPECT_THAT(
      prepare("b").error,
      HasSubstr("numbered by LNC 1, but they are now held as LNC 2 numbers them; retried with the new numbers"));
  put_claim("nic", {{"nics", "efa-" + node_->efa(0).name}});
  EXPECT_EQ(prepare("nic").error, "");
  EXPECT_EQ(unprepare("a"), "");
  EXPECT_EQ(prepare("b").error, "");
}

// As an older version may have left them.
TEST(ClaimLnc, TwoLncsDoNotRefuseAClaimThatIsPreparedAnew) {
  ClaimRecords claims;
  const auto add = [&](const std::string& uid, int device, int lnc) {
    auto claim = std::make_shared<ClaimRecord>();
    claim->is_completed = true;
    claim->uid = uid;
    claim->node_lnc = lnc;
    claim->requests.push_back({{"chips", {{{device, {}}}, {}}, false, {}}, {}});
    claims[uid] = claim;
  };
  add("uid-a", 1, 1);
  add("uid-b", 2, 2);
  ASSERT_EQ(numbering_of(claims).lnc, 1);  // as the node is numbered then
  for (const char* uid : {"uid-0", "uid-a", "uid-b", "uid-c"}) {
    ClaimRecord claim = *claims.at("uid-a");
    claim.uid = uid;
    EXPECT_FALSE(numbering_clash(claim, claims)) << uid;
    claim.node_lnc = 2;
    EXPECT_TRUE(numbering_clash(claim, claims)) << uid;
  }
}

// The old claim of that name is still prepared, as nobody has released it yet.
TEST_F(ClaimsTest, AClaimMadeAnewUnderItsNameIsAnotherOne) {
  put_claim("a", {{"chips", "neuron-device-1"}});
  ASSERT_EQ(prepare("a").error, "");
  json anew = claim_json("a", "uid-2", {{"chips", "neuron-group-4-7"}});
  reserve_for(anew, "pod-a", "pod-uid-a");
  api_.drop(claim_path("a"));
  api_.put(claim_path("a"), anew);
  EXPECT_EQ(agent_->claims.prepare({{"default", "a", "uid-2"}}, {}).at("uid-2").error, "");
  EXPECT_EQ(env_of("uid-2", "chips"), "NEURON_RT_VISIBLE_CORES=0-7");
}

TEST_F(ClaimsTest, AnAllocationThatIsAnotherByNowIsPreparedAnew) {
  put_claim("a", {{"chips", "neuron-device-1"}});
  ASSERT_EQ(prepare("a").error, "");
  put_claim("a", {{"chips", "neuron-device-5"}});
  const PrepareAnswer answer = prepare("a");
  ASSERT_EQ(answer.devices.size(), 1U) << answer.error;
  EXPECT_EQ(answer.devices[0].device, "neuron-device-5");
  put_claim("b", {{"chips", "neuron-device-1"}});
  EXPECT_EQ(prepare("b").error, "");
}

// Neither API server nor devices, and unknown claims are no error.
TEST_F(ClaimsTest, Pain7ReleasingNeedsNothing) {
  put_claim("a", {{"chips", "neuron-device-1"}});
  ASSERT_EQ(prepare("a").error, "");
  api_.fail_next({.times = fakes::FakeApi::kAlways, .error = make_error(ErrorCode::unavailable, "no route")});
  node_ = nullptr;
  restart();
  api_.forget_calls();
  EXPECT_EQ(unprepare("a"), "");
  EXPECT_EQ(unprepare("a"), "");
  EXPECT_EQ(unprepare("never"), "");
  EXPECT_EQ(agent_->claims.unprepare({{"default", "x", "../../etc/passwd"}}).at("../../etc/passwd"), "");
  EXPECT_TRUE(api_.calls().empty());
  EXPECT_TRUE(names_in(cdi()).empty());
}

TEST_F(ClaimsTest, ReleasingGoesByTheUidNotTheName) {
  put_claim("a", {{"chips", "neuron-device-1"}});
  ASSERT_EQ(prepare("a").error, "");
  EXPECT_EQ(agent_->claims.unprepare({{"default", "a", "uid-of-before"}}).at("uid-of-before"), "");
  EXPECT_EQ(prepared(), 1U);
}

// Files that cannot be written: an error that names the place, and the next call succeeds.
TEST_F(ClaimsTest, AFullOrForbiddenDirectoryIsAnErrorAndNoHalfState) {
  put_claim("a", {{"chips", "neuron-device-1"}});
  write_text(cdi(), "in the way");
  EXPECT_THAT(prepare("a").error, HasSubstr(cdi()));
  std::filesystem::remove(cdi());
  EXPECT_EQ(prepared(), 0U);
  EXPECT_EQ(prepare("a").error, "");
}

// A pod that ran when the node changed over from a device plugin.

}  // namespace
}  // namespace neuron::plugin::dra
