#include "plugin/dra/serve/reporting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/grant/nodes.h"

namespace neuron::plugin::dra {
namespace {

namespace dra = plugin::dra;
using model::Resource;
using testing::ElementsAre;
using testing::IsEmpty;

dra::ClaimRecords one_claim(dra::Hardware hardware) {
  auto claim = std::make_shared<dra::ClaimRecord>();
  claim->is_completed = true;
  claim->claim_namespace = "default";
  claim->name = "chips";
  claim->uid = "uid-1";
  dra::RecordedRequest& request = claim->requests.emplace_back();
  request.planned.hardware = std::move(hardware);
  return {{"uid-1", claim}};
}

const std::vector<model::Allocation> kListed = {{"default", "train", "worker", "neuron.aws.com", {}, "", "chips"},
                                                {"other", "train", "worker", "neuron.aws.com", {}, "", "chips2"}};

TEST(ClaimHoldings, AClaimHoldsCoresAndInterfacesForThePodThatUsesIt) {
  const auto node = node_of("trn2.48xlarge");  // LNC 2: 4 logical cores per device
  const std::string efa = node->id_of(Resource::efa, 3);
  const auto all = holdings_of(*node, one_claim({{{1, {}}, {2, {2, 3}}}, {efa}}), {}, kListed);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].resource, Resource::neuroncore);
  EXPECT_THAT(all[0].devices, ElementsAre(1, 2));
  EXPECT_THAT(all[0].cores, ElementsAre(4, 5, 6, 7, 9)) << "places 2 and 3 are one logical core";
  EXPECT_EQ(all[0].shown_as, "default/train/worker");
  EXPECT_EQ(all[0].claim, "chips");
  EXPECT_EQ(all[1].resource, Resource::efa);
  EXPECT_THAT(all[1].units, ElementsAre(3));
  EXPECT_EQ(all[1].shown_as, "default/train/worker");
}

TEST(ClaimHoldings, AClaimOfSeveralContainersIsListedOnceOrForEach) {
  const auto node = node_of("trn1.2xlarge");
  auto listed = kListed;
  listed.push_back(listed[0]);
  listed.back().container = "side";
  const auto claims = one_claim({{{0, {}}}, {}});
  EXPECT_EQ(holdings_of(*node, claims, {}, listed).size(), 1U);
  const auto each = holdings_of(*node, claims, {}, listed, ClaimUsers::each);
  ASSERT_EQ(each.size(), 2U);
  EXPECT_EQ(each[0].shown_as, "default/train/worker");
  EXPECT_EQ(each[1].shown_as, "default/train/side");
  EXPECT_EQ(each[1].claim_namespace, "default");
  EXPECT_EQ(each[1].cores, each[0].cores);
  EXPECT_EQ(holdings_of(*node, claims, {}, {}, ClaimUsers::each).size(), 1U) << "held, though the kubelet lists nobody";
}

TEST(ClaimHoldings, WhoUsesAClaimIsUnknownUntilTheKubeletHasSaid) {
  const auto node = node_of("trn1.2xlarge");
  const auto all = holdings_of(*node, one_claim({{{0, {}}}, {}}), {}, {});
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].shown_as, "");
}

// The record is of an older claim of that name.
TEST(ClaimHoldings, APodThatUsesAClaimMadeAnewUnderTheNameIsNotItsUser) {
  const auto node = node_of("trn1.2xlarge");
  auto listed = kListed;
  listed[0].cdi_id = "k8s.neuron.aws.com/claim=uid-2-neuron-device-0";
  EXPECT_EQ(holdings_of(*node, one_claim({{{0, {}}}, {}}), {}, listed).at(0).shown_as, "");
  listed[0].cdi_id = "k8s.neuron.aws.com/claim=uid-1-neuron-device-0";
  EXPECT_EQ(holdings_of(*node, one_claim({{{0, {}}}, {}}), {}, listed).at(0).shown_as, "default/train/worker");
}

TEST(ClaimHoldings, HardwareThatIsNotThereHasNoCores) {
  const auto node = node_of("trn1.2xlarge");
  const auto all = holdings_of(*node, one_claim({{{7, {}}}, {"rdmap99s0"}}), {}, {});
  ASSERT_EQ(all.size(), 1U);
  EXPECT_THAT(all[0].cores, IsEmpty());
  EXPECT_THAT(all[0].devices, ElementsAre(7));
}

TEST(ClaimHoldings, ContainersOfTheDevicePluginAreNamed) {
  const auto node = node_of("trn1.2xlarge");
  const auto all = holdings_of(
      *node, {}, {{"default/old/main", "aws.amazon.com/neuron", false, {{{0, {}}}, {}}}, {"a/b/c", "x/y", false, {}}},
      {});
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].resource, Resource::neuron);
  EXPECT_THAT(all[0].units, ElementsAre(0));
  EXPECT_THAT(all[0].cores, ElementsAre(0, 1));
  EXPECT_EQ(all[0].shown_as, "default/old/main");
  EXPECT_EQ(all[0].claim, "");
}

TEST(CountedClaims, RefusedClaimsAreCountedByTheirReason) {
  struct BusyClaims final : ClaimCalls {
    std::map<std::string, PrepareAnswer> prepare(const std::vector<ClaimRef>&, const std::stop_token&) override {
      return {{"u", refused(make_error(ErrorCode::deadline_exceeded, RefusalReason::in_use, "busy"))},
              {"v", refused(make_error(ErrorCode::internal, "no reason"))}};
    }
    std::map<std::string, std::string> unprepare(const std::vector<ClaimRef>&) override { return {}; }
  } claims;
  HealthHub health;
  NodeBoard board{{{}, "pool-1"}, [](const Pool&) {}, health};
  board.set_held({.devices = [] { return std::vector<std::string>(); }});
  CallFigures figures(CountedClaims::counted_names("neuron.aws.com"));
  EXPECT_EQ(figures.counts().refusals.size(), kRefusalReasons.size()) << "each begins at 0";
  CountedClaims counted(claims, board, figures, "neuron.aws.com");
  EXPECT_EQ(counted.prepare({}, {}).size(), 2U);
  for (const auto& [reason, count] : figures.counts().refusals) {
    EXPECT_EQ(count, reason == "in_use" || reason == "other" ? 1U : 0U) << reason;
  }
}

TEST(ListedClaims, KeepsTheNewestListAndNothingOfAFailedOne) {
  ListedClaims listed;
  EXPECT_TRUE(listed.claims().empty());
  model::Allocation plain{"default", "train", "worker", "aws.amazon.com/neuron", {"0"}};
  const auto given = listed.seen(std::vector<model::Allocation>{kListed[0], plain});
  ASSERT_TRUE(given);
  EXPECT_EQ(given->size(), 2U);
  EXPECT_THAT(listed.claims(), ElementsAre(kListed[0]));
  EXPECT_FALSE(listed.seen(fail(ErrorCode::unavailable, "no")));
  EXPECT_EQ(listed.claims().size(), 1U);
}

}  // namespace
}  // namespace neuron::plugin::dra
