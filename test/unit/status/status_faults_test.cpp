#include "agent/status/status_writer.h"
#include "test/unit/status/writer_fixture.h"

namespace neuron::status {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Servers that forbid, lose, lie or are another's, and others who write to the same node.
class StatusFaultsTest : public WriterFixture {
 protected:
  void expect_told() {
    EXPECT_EQ(label("neuron-agent/devices"), "16");
    EXPECT_EQ(status("NeuronHealth"), "False");
    EXPECT_TRUE(writer_->state().current) << writer_->state().error;
  }
};

TEST_F(StatusFaultsTest, EveryRefusalIsSurvived) {
  for (const int code : {400, 401, 403, 404, 409, 410, 422, 429, 500, 503}) {
    put_node("u" + std::to_string(code));
    start_anew();
    api_.fail_next({.times = fakes::FakeApi::kAlways, .status = code});
    begin();
    EXPECT_FALSE(writer_->state().current) << code;
    api_.forget_calls();
    after(std::chrono::hours(1));
    EXPECT_LE(api_.calls().size(), 130U) << code;
    EXPECT_GE(api_.calls().size(), 5U) << code;
    api_.heal();
    after(minutes(6));
    expect_told();
  }
}

// Of labels, conditions and events each, while the others are allowed.
TEST_F(StatusFaultsTest, WhatIsForbiddenDoesNotKeepTheRest) {
  model::HostScan host = well_host();
  set_health(host, 3, broken(3));
  api_.fail_next(
      {.times = fakes::FakeApi::kAlways, .method = kube::Method::apply, .path_part = "/status", .status = 403});
  begin(host);
  EXPECT_EQ(label("neuron-agent/health"), "unhealthy");
  EXPECT_EQ(status("NeuronHealth"), "");
  api_.heal();
  api_.fail_next({.times = fakes::FakeApi::kAlways, .path_part = "events", .status = 403});
  after(minutes(10));
  EXPECT_EQ(status("NeuronHealth"), "True");
  EXPECT_TRUE(writer_->state().current);
  EXPECT_THAT(reasons_told(), IsEmpty());
  api_.heal();
  after(minutes(6));
  EXPECT_EQ(reasons_told().size(), 1U);
}

TEST_F(StatusFaultsTest, AnswersThatAreLostAreLookedAfter) {
  api_.fail_next({.times = 3,
                  .method = kube::Method::apply,
                  .error = make_error(ErrorCode::deadline_exceeded, "no answer"),
                  .lost = true});
  begin();
  after(minutes(2));
  expect_told();
}

TEST_F(StatusFaultsTest, GarbageIsNotTakenForAnAnswer) {
  api_.fail_next({.times = 2, .status = 200, .words = "no node"});
  begin();
  after(minutes(1));
  expect_told();
}

TEST_F(StatusFaultsTest, AServerThatIsAwayForLong) {
  begin();
  api_.fail_next({.times = fakes::FakeApi::kAlways, .error = make_error(ErrorCode::unavailable, "nobody listens")});
  model::HostScan host = well_host();
  set_health(host, 3, broken(3));
  say(host);
  say(well_host());
  after(std::chrono::hours(3));
  say(host);
  api_.heal();
  after(minutes(1));
  EXPECT_EQ(status("NeuronHealth"), "True");
  int told = 0;
  for (const Json& event : api_.all(kEvents)) told += event["count"].get<int>();
  EXPECT_EQ(told, 3);
}

TEST_F(StatusFaultsTest, ANodeThatIsMadeAnewIsToldAgain) {
  begin();
  put_node("v");
  EXPECT_EQ(status("NeuronHealth"), "");
  after(StatusWriter::kReadInterval + StatusWriter::kReadInterval / 10);
  expect_told();
  put_node("w");
  model::HostScan host = well_host();
  set_health(host, 3, broken(3));
  say(host);  // refused: the uid is another
  after(seconds(5));
  EXPECT_EQ(status("NeuronHealth"), "True");
}

TEST_F(StatusFaultsTest, ANodeThatIsGoneIsNotMade) {
  begin();
  api_.drop(kNode);
  model::HostScan host = well_host();
  set_health(host, 3, broken(3));
  say(host);
  after(minutes(30));
  EXPECT_TRUE(api_.at(kNode).is_null());
}

TEST_F(StatusFaultsTest, WhatSomebodyTookAwayComesBack) {
  begin();
  api_.write_as("kubectl-label", kNode, {{"metadata", {{"labels", {{"neuron-agent/devices", nullptr}}}}}});
  api_.write_as("kubectl-label", kNode, {{"metadata", {{"labels", {{"neuron-agent/cores", "1"}}}}}});
  after(StatusWriter::kReadInterval + StatusWriter::kReadInterval / 10);
  expect_told();
  EXPECT_EQ(label("neuron-agent/cores"), "32");
}

// ---- Others who write the same

nlohmann::json ready_of_nma(const std::string& status) {
  return {{"status",
           {{"conditions",
             {{{"type", "Ready"}, {"status", "True"}},
              {{"type", "AcceleratedHardwareReady"}, {"status", status}, {"reason", "NMA"}}}}}}};
}

TEST_F(StatusFaultsTest, AConditionOfAnotherIsLeftToThem) {
  api_.write_as("eks-node-monitoring-agent", kStatus, ready_of_nma("True"));
  model::HostScan host = well_host();
  set_health(host, 3, broken(3));
  begin(host);
  EXPECT_EQ(status("NeuronHealth"), "True");
  EXPECT_EQ(condition("AcceleratedHardwareReady")["reason"], "NMA");
  for (const auto& call : api_.writes()) {
    if (call.path == kStatus) {
      EXPECT_THAT(call.query, testing::Not(HasSubstr("force")));
      EXPECT_THAT(call.body, testing::Not(HasSubstr("AcceleratedHardwareReady")));
    }
  }
  // When they are gone it is ours.
  api_.write_as("kubectl", kStatus, {{"status", {{"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}});
  after(std::chrono::hours(2));
  EXPECT_EQ(status("AcceleratedHardwareReady"), "False");
}

TEST_F(StatusFaultsTest, OneWhoComesLaterHasIt) {
  begin();
  Json theirs = condition("AcceleratedHardwareReady");
  theirs.update({{"status", "False"}, {"reason", "NMA"}});
  const Json all = {{{"type", "Ready"}, {"status", "True"}}, condition("NeuronHealth"), theirs};
  api_.write_as("eks-node-monitoring-agent", kStatus, {{"status", {{"conditions", all}}}});
  api_.forget_calls();
  model::HostScan host = well_host();
  set_health(host, 3, broken(3));
  say(host);
  after(minutes(1));
  EXPECT_EQ(status("NeuronHealth"), "True");
  EXPECT_EQ(condition("AcceleratedHardwareReady")["reason"], "NMA");
  after(std::chrono::hours(3));
  EXPECT_EQ(condition("AcceleratedHardwareReady"), theirs);
  EXPECT_TRUE(writer_->state().current);
  start_anew();
  begin();
  after(std::chrono::hours(1));
  EXPECT_EQ(condition("AcceleratedHardwareReady"), theirs);
}

TEST_F(StatusFaultsTest, LabelsOfAnUltraServerWhoseFilesAreUnreadStay) {
  model::HostScan host = well_host();
  host.ultraserver = model::UltraServer{false, {1, 4}, {{4, "ffeeddccbbaa9988", 3}}};
  begin(host);
  ASSERT_EQ(label("neuron.amazonaws.com/ultraserver-node-id-4"), "3");
  start_anew();
  host.ultraserver.reset();
  host.ultraserver_is_unread = true;
  begin(host);
  after(std::chrono::hours(1));
  EXPECT_EQ(label("neuron.amazonaws.com/ultraserver-node-id-4"), "3");
  EXPECT_EQ(label("neuron.amazonaws.com/ultraserver-mode"), "1_4");
  host.ultraserver_is_unread = false;
  start_anew();
  begin(host);
  after(std::chrono::hours(1));
  EXPECT_EQ(label("neuron.amazonaws.com/ultraserver-node-id-4"), "") << "now it is known to be in none";
}

TEST_F(StatusFaultsTest, ALabelOfAwsThatAnotherWritesIsLeftToThem) {
  model::HostScan host = well_host();
  host.ultraserver = model::UltraServer{false, {1, 4}, {{4, "ffeeddccbbaa9988", 3}}};
  api_.write_as("neuron-dra", kNode,
                {{"metadata", {{"labels", {{"neuron.amazonaws.com/ultraserver-mode", "theirs"}}}}}});
  begin(host);
  EXPECT_EQ(label("neuron.amazonaws.com/ultraserver-mode"), "theirs");
  EXPECT_EQ(label("neuron.amazonaws.com/ultraserver-node-id-4"), "3");
  EXPECT_EQ(label("neuron-agent/devices"), "16");
}

}  // namespace
}  // namespace neuron::status
