#include "plugin/dra/claim/claim_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/dra_server/fake_claims.h"

namespace neuron::plugin::dra {
namespace {

using testing::HasSubstr;

TEST(ClaimCalls, EveryClaimIsAnsweredTheBadOnesInWords) {
  FakeClaims claims;
  const auto answers = prepare_all(
      claims, {{"team", "train", "u-1"}, {"team", "bad\nname", "u-2"}, {"", "x", "u-3"}, {"team", "y", "../u"}}, {});
  ASSERT_TRUE(answers);
  ASSERT_EQ(answers->size(), 4U);
  EXPECT_EQ(answers->at("u-1").error, "");
  EXPECT_EQ(answers->at("u-1").devices.size(), 1U);
  for (const char* uid : {"u-2", "u-3", "../u"}) EXPECT_EQ(answers->at(uid).reason, "bad_request") << uid;
  EXPECT_THAT(answers->at("u-2").error, HasSubstr("bad\\x0aname"));
  EXPECT_THAT(answers->at("u-3").error, HasSubstr("namespace"));
  EXPECT_THAT(answers->at("../u").error, HasSubstr("uid"));
  EXPECT_EQ(claims.prepared(), std::set<std::string>{"u-1"});
}

// As the API server does: a claim's name is a DNS subdomain, its namespace a label.
TEST(ClaimCalls, NamesThatNoObjectCanHaveAreRefused) {
  FakeClaims claims;
  const std::vector<std::string> wrong = {"a-", "a.", "a..b", "a.-b", "a-.b",
                                          "-a", ".a", "A",    "a_b",  std::string(254, 'a')};
  for (const std::string& name : wrong) {
    const auto named = prepare_all(claims, {{"team", name, "u"}}, {});
    EXPECT_THAT(named->at("u").error, HasSubstr("name of a claim")) << name;
    const auto placed = prepare_all(claims, {{name, "train", "u"}}, {});
    EXPECT_THAT(placed->at("u").error, HasSubstr("namespace of a claim")) << name;
  }
  EXPECT_THAT(prepare_all(claims, {{"a.b", "train", "u"}}, {})->at("u").error, HasSubstr("namespace of a claim"));
  EXPECT_EQ(prepare_all(claims, {{"team", "a.b-1.c", "u"}}, {})->at("u").error, "");
}

TEST(ClaimCalls, AClaimThatComesTwiceIsAskedOnce) {
  FakeClaims claims;
  const auto answers = prepare_all(claims, {{"team", "a", "u"}, {"team", "a", "u"}}, {});
  ASSERT_TRUE(answers);
  EXPECT_EQ(answers->size(), 1U);
}

TEST(ClaimCalls, MoreClaimsThanAPodCanHaveAreRefusedAsAWhole) {
  FakeClaims claims;
  std::vector<ClaimRef> many;
  for (std::size_t i = 0; i <= kMostClaims; ++i) many.push_back({"team", "c", "u-" + std::to_string(i)});
  const auto answers = prepare_all(claims, many, {});
  ASSERT_FALSE(answers);
  EXPECT_EQ(answers.error().code, ErrorCode::invalid_argument);
  many.pop_back();
  EXPECT_EQ(unprepare_all(claims, many)->size(), kMostClaims);
}

// A port that forgets: its caller would take silence for success.
class Forgetful final : public ClaimCalls {
 public:
  std::map<std::string, PrepareAnswer> prepare(const std::vector<ClaimRef>&, const std::stop_token&) override {
    return {{"someone-else", {}}};
  }
  std::map<std::string, std::string> unprepare(const std::vector<ClaimRef>&) override { return {}; }
};

TEST(ClaimCalls, WhatIsForgottenIsAnErrorAndWhatWasNotAskedIsLeftOut) {
  Forgetful port;
  const auto prepared = prepare_all(port, {{"team", "a", "u"}}, {});
  ASSERT_EQ(prepared->size(), 1U);
  EXPECT_EQ(prepared->at("u").reason, "other");
  EXPECT_THAT(prepared->at("u").error, HasSubstr("did not answer"));
  EXPECT_THAT(unprepare_all(port, {{"team", "a", "u"}})->at("u"), HasSubstr("did not answer"));
}

}  // namespace
}  // namespace neuron::plugin::dra
