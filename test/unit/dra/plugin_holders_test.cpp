#include "plugin/dra/claim/plugin_holders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "plugin/dra/claim/claim_plan.h"
#include "test/unit/dra/pools.h"

namespace neuron::plugin::dra {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

constexpr const char* kOurs = "neuron.aws.com";

model::Allocation given(const std::string& resource, std::vector<std::string> ids) {
  return {"default", "worker", "main", resource, std::move(ids)};
}

std::vector<std::string> tainted(const Pool& pool) {
  std::vector<std::string> names;
  for (const PoolDevice& device : pool.devices) {
    if (!device.taints.empty()) names.push_back(device.name);
  }
  return names;
}

// On a trn1.32xlarge a device has two cores.
TEST(PluginHolders, WhateverOverlapsIsTainted) {
  const TestNode node("trn1.32xlarge");
  const auto units = node.units();
  const auto holders =
      plugin_holders(units, {given("aws.amazon.com/neuron", {"3"}), given("aws.amazon.com/neuroncore", {"17"})}, kOurs);
  ASSERT_EQ(holders.size(), 2U);
  EXPECT_EQ(holders[0].container, "default/worker/main");
  Pool pool = node.pool();
  taint_held(pool, units, holders, "neuron.aws.com");
  EXPECT_THAT(tainted(pool),
              UnorderedElementsAre("neuron-device-3", "neuron-device-3-core-0", "neuron-device-3-core-1",
                                   "neuron-device-8", "neuron-device-8-core-1", "neuron-group-0-3", "neuron-group-8-11",
                                   "neuron-group-0-7", "neuron-group-8-15", "neuron-group-0-15"));
  const Taint taint{"neuron.aws.com/held", "device-plugin", "NoSchedule"};
  EXPECT_THAT(find(pool, "neuron-device-3").taints, ElementsAre(taint));
  EXPECT_TRUE(find(pool, "neuron-device-3").unhealthy);  // a server that keeps no taints is not shown it
  EXPECT_FALSE(find(pool, "neuron-device-8-core-0").unhealthy);
}

// The file that sets LNC was edited when the node was moved over to claims.
TEST(PluginHolders, CoresAreReadWithTheLncTheyWereGivenUnder) {
  const TestNode node("trn2.48xlarge");  // LNC 2 now
  const auto units = node.units();
  const auto held = [&](const core::NumberingEvidence& numbering) {
    const auto holders = plugin_holders(units, {given("aws.amazon.com/neuroncore", {"20"})}, kOurs, numbering);
    return holders.empty() ? Hardware{} : holders[0].hardware;
  };
  EXPECT_EQ(held({{{{20}, {2}}}, std::nullopt}), (Hardware{{{2, {4}}}, {}})) << "of LNC 1";
  EXPECT_EQ(held({{{{20}, {5}}}, std::nullopt}), (Hardware{{{5, {0, 1}}}, {}}));
  EXPECT_EQ(held({}), (Hardware{{{2, {4}}, {5, {0, 1}}}, {}})) << "not known";
}

// It comes back, and its holder has not ended.
TEST(PluginHolders, WhatTheScanDoesNotShowIsHeldAllTheSame) {
  TestNode node("trn1.32xlarge");
  model::Allocation claim = given("old.example.com", {"neuron-device-7-core-1"});
  claim.claim = "some-claim";
  const std::vector<model::Allocation> listed = {given("aws.amazon.com/neuron", {"3"}),
                                                 given("aws.amazon.com/neuroncore", {"11"}), claim,
                                                 given("vpc.amazonaws.com/efa", {"rdmap16s25"})};
  const auto before = plugin_holders(node.units(), listed, kOurs);
  ASSERT_EQ(before.size(), 4U);
  node.snapshot->host.devices.clear();
  node.snapshot->host.efas.clear();
  node.snapshot->host.unread_lists = {{model::ScanPart::Kind::devices}, {model::ScanPart::Kind::pci}};
  EXPECT_EQ(plugin_holders(node.units(), listed, kOurs), before);
}

TEST(PluginHolders, InterfacesToo) {
  const TestNode node("trn1.32xlarge");
  const auto units = node.units();
  const std::string name = units.efa(units.units(model::Resource::efa).front()).name;
  const auto holders = plugin_holders(units, {given("vpc.amazonaws.com/efa", {name})}, kOurs);
  Pool pool = node.pool();
  taint_held(pool, units, holders, "neuron.aws.com");
  EXPECT_THAT(tainted(pool), ElementsAre("efa-" + name));
}

TEST(PluginHolders, WhatIsNotOfThisNodeOrNotOfAPluginIsLeftOut) {
  const TestNode node("trn1.32xlarge");
  model::Allocation claim = given("neuron.aws.com", {"neuron-device-3"});
  claim.claim = "some-claim";
  EXPECT_TRUE(plugin_holders(node.units(),
                             {claim, given("nvidia.com/gpu", {"0"}), given("aws.amazon.com/neuron", {"99", "x"}),
                              given("vpc.amazonaws.com/efa", {"mlx5_0"})},
                             kOurs)
                  .empty());
}

// As when this driver was renamed while claims were prepared: it knows of them by the kubelet only.
TEST(PluginHolders, ClaimsOfAnotherDriverWithOurDevicesCount) {
  const TestNode node("trn1.32xlarge");
  const auto units = node.units();
  model::Allocation claim = given("old.example.com", {"neuron-device-3", "neuron-device-99", "gpu-0"});
  claim.claim = "some-claim";
  model::Allocation other = given("gpu.example.com", {"gpu-0"});
  other.claim = "gpus";
  const auto holders = plugin_holders(units, {claim, other}, kOurs);
  ASSERT_EQ(holders.size(), 1U);
  const auto found = conflict(holders, *hardware_of(units, "neuron-device-3-core-0"));
  ASSERT_TRUE(found);
  EXPECT_THAT(found->message, HasSubstr("neuron3 is held by default/worker/main, which was allocated it through "
                                        "old.example.com, another claim driver on this node"));
  Pool pool = node.pool();
  taint_held(pool, units, holders, kOurs);
  EXPECT_THAT(find(pool, "neuron-device-3").taints,
              ElementsAre(Taint{"neuron.aws.com/held", "other-driver", "NoSchedule"}));
}

TEST(PluginHolders, AClaimForTheSameHardwareIsRefusedNamingTheHolder) {
  const TestNode node("trn1.32xlarge");
  const auto units = node.units();
  const auto holders = plugin_holders(units, {given("aws.amazon.com/neuroncore", {"17"})}, kOurs);
  const auto conflict_with = [&](const char* device) { return conflict(holders, *hardware_of(units, device)); };
  ASSERT_TRUE(conflict_with("neuron-group-8-11"));
  EXPECT_THAT(conflict_with("neuron-group-8-11")->message,
              HasSubstr("is held by default/worker/main, which was allocated it through aws.amazon.com/neuroncore"));
  EXPECT_TRUE(conflict_with("neuron-device-8-core-1"));
  EXPECT_FALSE(conflict_with("neuron-device-8-core-0"));
  EXPECT_FALSE(conflict_with("neuron-device-9"));
}

class PluginHoldWatchTest : public testing::Test {
 protected:
  void scan() { node_ = std::make_shared<const grant::NodeUnits>(TestNode("trn1.32xlarge").units()); }
  // The list of the next turn, so much later than the one before; returns the time until the next.
  std::chrono::milliseconds turn(std::chrono::milliseconds later = {}) {
    now_ += later;
    return watch_.turn();
  }
  PluginHoldWatch::Ports ports() {
    return {.listed = [this] { return listed_; },
            .node = [this] { return node_; },
            .changed = [this] { ++changes_; },
            .driver = kOurs,
            .stored = [this] { return stored_; },
            .own_pod = own_pod_,
            .asked = [this] { ++asked_; },
            .now = [this] { return now_; }};
  }
  Result<std::vector<model::Allocation>> listed_ = std::vector<model::Allocation>{};
  Result<Checkpoint> stored_ = Checkpoint{};
  grant::NodeUnitsPtr node_;
  SteadyTime now_ = SteadyTime{} + std::chrono::hours(1);
  int changes_ = 0;
  std::atomic<int> asked_ = 0;
  std::string own_pod_;
  PluginHoldWatch watch_{ports()};
};

constexpr auto kBlind = holdings::ListedHolders::kApartBlind;

TEST_F(PluginHoldWatchTest, AsksOftenWhileSomethingIsHeld) {
  EXPECT_EQ(turn(), PluginHoldWatch::kRetry);  // the node was not scanned
  scan();
  listed_ = fail(ErrorCode::unavailable, "no kubelet");
  EXPECT_EQ(turn(), PluginHoldWatch::kRetry);
  listed_ = std::vector{given("aws.amazon.com/neuron", {"3"})};
  EXPECT_EQ(turn(), PluginHoldWatch::kWhileHeld);
  EXPECT_EQ(turn(PluginHoldWatch::kNew), PluginHoldWatch::kWhileHeld);
  EXPECT_EQ(changes_, 1);
  listed_ = fail(ErrorCode::unavailable, "no kubelet");
  EXPECT_EQ(turn(), PluginHoldWatch::kRetry);
  EXPECT_EQ(watch_.holders().size(), 1U);  // as it was
  listed_ = std::vector<model::Allocation>{};
  EXPECT_EQ(turn(), PluginHoldWatch::kRetry);
  EXPECT_EQ(turn(kBlind), PluginHoldWatch::kOtherwise);
  EXPECT_EQ(changes_, 2);
  EXPECT_TRUE(watch_.holders().empty());
}

// An instance of the earlier name may prepare a claim while it is being replaced.
TEST_F(PluginHoldWatchTest, AsksOftenInItsFirstMinutesThoughNothingIsHeld) {
  scan();
  EXPECT_EQ(turn(), PluginHoldWatch::kWhileHeld);
  EXPECT_EQ(turn(PluginHoldWatch::kNew), PluginHoldWatch::kOtherwise);
}

TEST_F(PluginHoldWatchTest, AClaimOfAnotherDriverForAdminAccessKeepsNothingFromClaims) {
  scan();
  model::Allocation monitor = given("old.example.com", {"neuron-device-3"});
  monitor.claim = "all";
  monitor.admin_access = true;
  listed_ = std::vector{monitor};
  EXPECT_EQ(turn(), PluginHoldWatch::kWhileHeld);
  EXPECT_TRUE(watch_.holders().empty());
  EXPECT_EQ(changes_, 0);
}

// Either is a kubelet that has just started.
TEST_F(PluginHoldWatchTest, AnEmptyListEndsNothingByItself) {
  scan();
  listed_ = std::vector{given("aws.amazon.com/neuron", {"3"})};
  static_cast<void>(turn());
  listed_ = std::vector<model::Allocation>{};
  EXPECT_EQ(turn(), PluginHoldWatch::kRetry);
  EXPECT_EQ(watch_.holders().size(), 1U);
  listed_ = std::vector{given("aws.amazon.com/neuron", {"3"})};
  EXPECT_EQ(turn(kBlind), PluginHoldWatch::kWhileHeld);
  EXPECT_EQ(changes_, 1);
}

TEST_F(PluginHoldWatchTest, WhatTheCheckpointHasCountsUntilTheListIsWhole) {
  scan();
  stored_->allocations = {{"", "", "main", "aws.amazon.com/neuron", {"3"}, "uid-1"}};
  EXPECT_EQ(turn(), PluginHoldWatch::kRetry) << "a kubelet that has just started lists nothing";
  ASSERT_EQ(watch_.holders().size(), 1U);
  EXPECT_EQ(watch_.holders()[0].container, "pod uid-1/main");
  std::stop_source stop;
  auto may_publish = std::async(std::launch::async, [&] { return watch_.await_first(stop.get_token()); });
  watch_.registered();
  EXPECT_EQ(may_publish.wait_for(std::chrono::milliseconds(0)), std::future_status::timeout);
  listed_ = std::vector{given("aws.amazon.com/neuron", {"3"})};
  EXPECT_EQ(turn(), PluginHoldWatch::kWhileHeld);
  EXPECT_TRUE(may_publish.get());
  EXPECT_EQ(watch_.holders().at(0).container, "default/worker/main");
}

TEST_F(PluginHoldWatchTest, WhileTheListFailsTheCheckpointsEntriesAreKept) {
  scan();
  stored_ = fail(ErrorCode::deadline_exceeded, "the disk hangs");
  listed_ = fail(ErrorCode::unavailable, "no socket");
  EXPECT_EQ(turn(), PluginHoldWatch::kRetry);
  EXPECT_TRUE(watch_.holders().empty());
  stored_ = Checkpoint{};
  stored_->allocations = {{"", "", "main", "aws.amazon.com/neuron", {"3"}, "uid-1"}};
  EXPECT_EQ(turn(), PluginHoldWatch::kRetry);
  EXPECT_EQ(watch_.holders().size(), 1U) << "the checkpoint is read again until it can be";
  for (int i = 0; i < PluginHoldWatch::kMostRetries; ++i) static_cast<void>(turn());
  EXPECT_EQ(turn(), PluginHoldWatch::kWhileHeld) << "never less often than that";
  EXPECT_EQ(watch_.holders().size(), 1U);
}

TEST_F(PluginHoldWatchTest, NothingIsPublishedBeforeTheKubeletTookTheDriverAndHasAnswered) {
  scan();
  static_cast<void>(turn());
  std::stop_source stop;
  auto may_publish = std::async(std::launch::async, [&] { return watch_.await_first(stop.get_token()); });
  EXPECT_EQ(may_publish.wait_for(std::chrono::milliseconds(0)), std::future_status::timeout);
  watch_.registered();
  EXPECT_TRUE(may_publish.get());
}

// One that took the driver, and whose answer never comes, or is an error.
TEST_F(PluginHoldWatchTest, AKubeletThatNeverAnswersKeepsNothingBack) {
  PluginHoldWatch watch{ports(), std::chrono::milliseconds(1)};
  watch.registered();
  EXPECT_TRUE(watch.await_first({}));
  EXPECT_TRUE(watch.holders().empty());
  scan();
  listed_ = fail(ErrorCode::unavailable, "no socket");
  EXPECT_EQ(watch.turn(), PluginHoldWatch::kRetry);
  EXPECT_TRUE(watch.await_first({}));
}

TEST_F(PluginHoldWatchTest, UntilTheListIsWholeItIsNotKnownWhatIsHeld) {
  own_pod_ = "agent-x";
  PluginHoldWatch watch(ports());
  scan();
  const auto refusal = [&] {
    const auto known = watch.known_holders();
    return known ? "" : known.error().message;
  };
  EXPECT_THAT(refusal(), HasSubstr("retried automatically")) << "before the first list";
  listed_ = fail(ErrorCode::unavailable, "no socket");
  EXPECT_EQ(watch.turn(), PluginHoldWatch::kRetry);
  EXPECT_EQ(asked_, 1);
  EXPECT_EQ(watch.known_holders().error().code, ErrorCode::unavailable) << "no answer";
  listed_ = std::vector<model::Allocation>{};
  EXPECT_EQ(watch.turn(), PluginHoldWatch::kRetry);
  watch.registered();
  EXPECT_THAT(refusal(), HasSubstr("retried automatically")) << "a kubelet that has just started";
  model::Allocation own;
  own.pod = own_pod_;
  listed_ = std::vector{own, given("aws.amazon.com/neuron", {"3"})};
  static_cast<void>(watch.turn());
  EXPECT_EQ(watch.known_holders().value().size(), 1U);
  EXPECT_EQ(asked_, 1);
}

TEST_F(PluginHoldWatchTest, AfterThePatienceWhatIsKnownCounts) {
  own_pod_ = "agent-x";
  PluginHoldWatch watch(ports());
  scan();
  stored_->allocations = {{"", "", "main", "aws.amazon.com/neuron", {"3"}, "uid-1"}};
  listed_ = fail(ErrorCode::unavailable, "no socket");
  static_cast<void>(watch.turn());
  now_ += PluginHoldWatch::kPatience;
  EXPECT_FALSE(watch.known_holders()) << "it counts from the registration";
  watch.registered();
  EXPECT_FALSE(watch.known_holders());
  now_ += PluginHoldWatch::kPatience;
  EXPECT_EQ(watch.known_holders().value().size(), 1U);
}

TEST_F(PluginHoldWatchTest, TheKubeletIsAskedAfterTheFirstScanWithoutARegistration) {
  scan();
  std::promise<void> asked;
  auto with_promise = ports();
  with_promise.asked = [&] { asked.set_value(); };
  PluginHoldWatch watch(with_promise);
  std::jthread runs([&](const std::stop_token& stop) { watch.run(stop); });
  watch.scanned();
  EXPECT_EQ(asked.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
  EXPECT_TRUE(watch.known_holders()) << "before it registers";
}

TEST_F(PluginHoldWatchTest, AStopEndsTheWait) {
  std::stop_source stop;
  auto may_publish = std::async(std::launch::async, [&] { return watch_.await_first(stop.get_token()); });
  std::jthread runs([this](const std::stop_token& inner) { watch_.run(inner); });
  stop.request_stop();
  EXPECT_FALSE(may_publish.get());
}

}  // namespace
}  // namespace neuron::plugin::dra
