#include "plugin/dra/claim/claim_status.h"

#include <thread>

#include "test/unit/dra/shares_fixture.h"

namespace neuron::plugin::dra {
namespace {

using std::chrono::milliseconds;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ClaimStatusTest : public ClaimShares {
 protected:
  void SetUp() override {
    ClaimShares::SetUp();
    begin();
  }
  // As after a restart of the agent.
  void begin() {
    writer_.emplace(ClaimStatusWriter::Settings{kDriver, [] { return std::chrono::system_clock::time_point{}; }},
                    ClaimStatusWriter::Ports{[this] { return agent_->store.held_claims(); }, [this] { return node_; }},
                    api_, clock_);
  }
  [[nodiscard]] json status_of(const std::string& name) const { return api_.at(claim_path(name))["status"]["devices"]; }
  // "GET a", "PATCH a/status": the calls since the last time, but those of Prepare.
  [[nodiscard]] std::vector<std::string> calls() {
    std::vector<std::string> all;
    for (const kube::ApiCall& call : api_.calls()) {
      all.push_back(std::string(kube::verb_of(call.method)) + " " + call.path.substr(claim_path("").size()));
    }
    api_.forget_calls();
    return all;
  }
  void turn() {
    api_.forget_calls();
    (void)writer_->turn();
  }

  std::optional<ClaimStatusWriter> writer_;
};

TEST_F(ClaimStatusTest, SaysWhatTheClaimHas) {
  put_claim("whole", {{"chips", "neuron-device-2"}});
  put_claim("part", {share("cores", 3, 2, "0-1-2")});
  ASSERT_EQ(prepare("part").error + prepare("whole").error, "");
  turn();
  const json ready = {{"type", "Ready"},
                      {"status", "True"},
                      {"reason", "Prepared"},
                      {"message", "prepared for containers on this node"},
                      {"lastTransitionTime", "1970-01-01T00:00:00Z"}};
  EXPECT_EQ(status_of("whole"), json::array({{{"driver", kDriver},
                                              {"pool", "n1"},
                                              {"device", "neuron-device-2"},
                                              {"conditions", {ready}},
                                              {"data", {{"deviceNodes", {"/dev/neuron2"}}, {"cores", "8-11"}}}}}));
  EXPECT_EQ(status_of("part"), json::array({{{"driver", kDriver},
                                             {"pool", "n1"},
                                             {"device", "neuron-device-3"},
                                             {"shareID", "0-1-2"},
                                             {"conditions", {ready}},
                                             {"data", {{"deviceNodes", {"/dev/neuron3"}}, {"cores", "12-13"}}}}}));
}

TEST_F(ClaimStatusTest, SaysWhichInterfaceItIs) {
  const model::EfaInterface& efa = node_->snapshot().host.efas.front();
  put_claim("net", {{"efas", "efa-" + efa.name}});
  ASSERT_EQ(prepare("net").error, "");
  turn();
  EXPECT_EQ(status_of("net")[0]["data"], json({{"rdmaDevice", efa.name},
                                               {"pciAddress", model::to_string(efa.bdf)},
                                               {"deviceNodes", {"/dev/infiniband/" + *efa.uverbs}}}));
}

TEST_F(ClaimStatusTest, OneWriteForEachClaim) {
  turn();
  EXPECT_THAT(calls(), IsEmpty());
  for (const char* name : {"a", "b"}) {
    EXPECT_EQ(put_and_prepare(name, 3, 1), "");
    turn();
    EXPECT_THAT(calls(), ElementsAre("PATCH " + std::string(name) + "/status"));
  }
  EXPECT_EQ(prepare("a").error, "");
  EXPECT_EQ(unprepare("b"), "");
  turn();
  EXPECT_THAT(calls(), IsEmpty());
}

TEST_F(ClaimStatusTest, AnotherAllocationIsWrittenToo) {
  put_claim("a", {{"chips", "neuron-device-2"}});
  ASSERT_EQ(prepare("a").error, "");
  turn();
  ASSERT_EQ(unprepare("a"), "");
  put_claim("a", {{"chips", "neuron-device-4"}});
  ASSERT_EQ(prepare("a").error, "");
  turn();
  EXPECT_EQ(status_of("a")[0]["device"], "neuron-device-4");
}

TEST_F(ClaimStatusTest, ARestartReadsAndWritesOnlyWhatIsNotThere) {
  ASSERT_EQ(put_and_prepare("a", 3, 1) + put_and_prepare("b", 3, 1), "");
  turn();
  json claim = api_.at(claim_path("b"));
  claim["status"].erase("devices");
  api_.put(claim_path("b"), claim);
  begin();
  turn();
  EXPECT_THAT(calls(), ElementsAre("GET a", "GET b", "PATCH b/status"));
}

TEST_F(ClaimStatusTest, AClaimThatIsGoneOrAnotherHoldsUpNone) {
  ASSERT_EQ(put_and_prepare("a", 3, 1) + put_and_prepare("b", 3, 1) + put_and_prepare("c", 3, 1), "");
  turn();
  begin();
  api_.drop(claim_path("a"));
  put_claim("b", {});
  json other = api_.at(claim_path("b"));
  other["metadata"]["uid"] = "another";
  api_.drop(claim_path("b"));
  api_.put(claim_path("b"), other);
  turn();
  EXPECT_THAT(calls(), ElementsAre("GET a", "GET b", "PATCH b/status", "GET c"));
  EXPECT_TRUE(status_of("b").is_null());
}

TEST_F(ClaimStatusTest, AFailureIsTriedAgainLater) {
  turn();
  ASSERT_EQ(put_and_prepare("a", 3, 1) + put_and_prepare("b", 3, 1), "");
  api_.fail_next(1, 503);
  turn();
  EXPECT_THAT(calls(), ElementsAre("PATCH a/status")) << "the next would fail too";
  turn();
  EXPECT_THAT(calls(), IsEmpty()) << "not at once";
  clock_.advance(ClaimStatusWriter::kFirstRetry);
  turn();
  EXPECT_THAT(calls(), ElementsAre("PATCH a/status", "PATCH b/status"));
}

// By a policy on its namespace, a webhook that is away, or anything else that the server says of one claim.
TEST_F(ClaimStatusTest, ARefusedClaimHoldsUpNone) {
  turn();
  for (const int status : {401, 403, 418, 500}) {
    const std::string bad = "a" + std::to_string(status), good = "b" + std::to_string(status);
    ASSERT_EQ(put_and_prepare(bad, 3, 1) + put_and_prepare(good, 3, 1), "");
    api_.fail_next({.times = fakes::FakeApi::kAlways, .path_part = "/" + bad + "/", .status = status});
    turn();
    EXPECT_THAT(calls(), ElementsAre("PATCH " + bad + "/status", "PATCH " + good + "/status"));
    for (int i = 0; i < 10; ++i) clock_.advance(writer_->turn());
    api_.forget_calls();
    ASSERT_EQ(put_and_prepare("new", 3, 1), "");
    turn();
    EXPECT_THAT(calls(), Contains("PATCH new/status"));
    turn();
    EXPECT_THAT(calls(), IsEmpty()) << "not at once";
    EXPECT_EQ(unprepare("new"), "");
    clock_.advance(ClaimStatusWriter::kRefusedRetry);
    turn();
    EXPECT_THAT(calls(), ElementsAre("PATCH " + bad + "/status"));
    api_.heal();
    clock_.advance(ClaimStatusWriter::kRefusedRetry);
    turn();
    EXPECT_FALSE(status_of(bad).is_null());
    EXPECT_EQ(unprepare(bad) + unprepare(good), "");
  }
}

TEST_F(ClaimStatusTest, AnotherAllocationOfARefusedClaimDoesNotWait) {
  turn();
  ASSERT_EQ(put_and_prepare("a", 3, 1), "");
  api_.fail_next(fakes::FakeApi::kAlways, 403);
  for (int i = 0; i < 10; ++i) clock_.advance(writer_->turn());
  turn();
  EXPECT_THAT(calls(), ElementsAre("PATCH a/status"));
  api_.heal();
  ASSERT_EQ(unprepare("a"), "");
  put_claim("a", {{"chips", "neuron-device-4"}});
  ASSERT_EQ(prepare("a").error, "");
  turn();
  EXPECT_EQ(status_of("a")[0]["device"], "neuron-device-4");
}

// No token yet, or a server whose certificate is not trusted: not what the server says of a claim.
TEST_F(ClaimStatusTest, NoAnswerIsNoRefusal) {
  turn();
  ASSERT_EQ(put_and_prepare("a", 3, 1) + put_and_prepare("b", 3, 1), "");
  api_.fail_next(1, make_error(ErrorCode::failed_precondition, "no token"));
  turn();
  EXPECT_THAT(calls(), ElementsAre("PATCH a/status"));
  clock_.advance(ClaimStatusWriter::kFirstRetry);
  turn();
  EXPECT_THAT(calls(), ElementsAre("PATCH a/status", "PATCH b/status"));
}

TEST_F(ClaimStatusTest, WithoutTheRoleItAsksRarely) {
  turn();
  ASSERT_EQ(put_and_prepare("a", 3, 1), "");
  api_.fail_next(fakes::FakeApi::kAlways, 403);
  milliseconds pause{0};
  for (int i = 0; i < 10; ++i) {
    pause = writer_->turn();
    clock_.advance(pause);
  }
  EXPECT_EQ(pause, milliseconds(ClaimStatusWriter::kRefusedRetry));
  api_.heal();
  turn();
  EXPECT_THAT(calls(), ElementsAre("PATCH a/status"));
}

TEST_F(ClaimStatusTest, AClaimWithoutANameIsLeftOut) {
  ASSERT_EQ(put_and_prepare("a", 3, 1), "");
  std::filesystem::remove(directory() + "/claims.json");
  restart();
  ASSERT_EQ(agent_->store.view()->records.size(), 1U) << "rebuilt from its CDI file";
  turn();
  EXPECT_THAT(calls(), IsEmpty());
}

TEST_F(ClaimStatusTest, TheThreadWritesWhenItIsWoken) {
  std::jthread thread([this](const std::stop_token& stop) { writer_->run(stop); });
  ASSERT_EQ(put_and_prepare("a", 3, 1), "");
  writer_->changed();
  EXPECT_TRUE(api_.wait([this] { return !status_of("a").is_null(); }));
}

}  // namespace
}  // namespace neuron::plugin::dra
