#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/base/parse.h"
#include "test/unit/kubectl_neuron/simulated_fleet.h"
#include "test/unit/render/golden.h"
#include "test/unit/render/json_schema.h"
#include "tools/kubectl-neuron/commands.h"
#include "tools/kubectl-neuron/table.h"

namespace neuron::fleet {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

void expect_golden(const std::string& name, const std::string& text) {
  test::expect_golden_file("test/unit/kubectl_neuron/golden/" + name, text);
}

TEST(Listings, OfThreeNodes) {
  const Fleet fleet = make_fleet(test::three_nodes());
  Usages usages;
  for (const int core : {16, 17, 18, 19, 20, 21, 22, 23}) usages["busy"].cores[core].percent = core < 20 ? 100 : 50;
  expect_golden("nodes.txt", nodes_listing(fleet, Output::table));
  expect_golden("nodes_wide.txt", nodes_listing(fleet, Output::wide));
  expect_golden("nodes.csv", nodes_listing(fleet, Output::csv));
  expect_golden("nodes.json", nodes_listing(fleet, Output::json));
  expect_golden("pods.txt", pods_listing(fleet, usages, Output::table, ""));
  expect_golden("pods.csv", pods_listing(fleet, usages, Output::csv, ""));
  expect_golden("pods.json", pods_listing(fleet, usages, Output::json, "team"));
}

TEST(Listings, JsonKeepsToItsSchema) {
  Documents with_claims = test::three_nodes();
  json pod = test::pod_object("team", "by-claim", "", {});
  pod["spec"]["resourceClaims"] = {{{"name", "c"}, {"resourceClaimName", "c"}}};
  with_claims.list(Kind::pods).push_back(test::page_of({pod}));
  with_claims.list(Kind::slices) = {test::page_of(
      {{{"metadata", {{"name", "s"}}},
        {"spec",
         {{"driver", "neuron.aws.com"},
          {"nodeName", "web"},
          {"pool", {{"name", "web"}}},
          {"devices",
           {{{"name", "neuron-device-0"}, {"attributes", {{"resourceType", {{"string", "neuron_device"}}}}}}}}}}}})};
  with_claims.unknown = {"events are not known"};
  for (const Documents& documents : {Documents(), test::three_nodes(), with_claims}) {
    const Fleet fleet = make_fleet(documents);
    EXPECT_EQ(test::schema_file_violation("kubectl-neuron-nodes-1", nodes_listing(fleet, Output::json)), "");
    EXPECT_EQ(test::schema_file_violation("kubectl-neuron-pods-1", pods_listing(fleet, {}, Output::json, "")), "");
  }
}

TEST(Listings, WithoutAnAgentsAnswerItIsNotKnownHowManyDevicesPodsHoldCoreByCore) {
  Documents documents;
  json node =
      test::node_object("n", "trn1.32xlarge", {{"aws.amazon.com/neuron", 16}, {"aws.amazon.com/neuroncore", 32}});
  node["status"]["allocatable"]["aws.amazon.com/neuron"] = "12";
  documents.list(Kind::nodes) = {test::page_of({node})};
  std::vector<json> pods;
  for (const char* name : {"a", "b", "c", "d"})
    pods.push_back(test::pod_object("team", name, "n", {{"aws.amazon.com/neuroncore", 1}}));
  documents.list(Kind::pods) = {test::page_of(pods)};
  const std::string text = nodes_listing(make_fleet(documents), Output::json);
  EXPECT_EQ(test::schema_file_violation("kubectl-neuron-nodes-1", text), "");
  const json units = {{"total", 16}, {"free", 12}, {"held", nullptr}, {"unhealthy", nullptr}};
  EXPECT_EQ(json::parse(text)["nodes"][0]["devices"], units) << "two to four of the four";
  EXPECT_EQ(json::parse(text)["sum"]["devices"], units);
  EXPECT_EQ(json::parse(text)["nodes"][0]["cores"]["held"], 4);
  EXPECT_THAT(
      nodes_listing(make_fleet(documents), Output::table),
      AllOf(HasSubstr("12/-/- "), HasSubstr("16 devices: 12 free, 4 held or unhealthy; 32 cores: 28 free, 4 held")));
  node["status"]["allocatable"]["aws.amazon.com/neuron"] = "14";
  documents.list(Kind::nodes) = {test::page_of({node})};
  EXPECT_THAT(nodes_listing(make_fleet(documents), Output::table), HasSubstr("14/2/0 ")) << "no fewer hold four cores";
}

TEST(Listings, SinceWhenAPodWaits) {
  Documents documents;
  documents.read_at = "2026-11-26T12:00:00Z";
  json fresh = test::pod_object("team", "fresh", "", {{"aws.amazon.com/neuron", 1}});
  json waiting = fresh, leaving = fresh;
  waiting["metadata"]["name"] = "waiting";
  waiting["status"]["conditions"] = {
      {{"type", "PodScheduled"}, {"status", "False"}, {"lastTransitionTime", "2026-11-26T11:58:30Z"}}};
  leaving["metadata"]["name"] = "leaving";
  leaving["metadata"]["deletionTimestamp"] = "2026-11-26T12:00:00Z";
  documents.list(Kind::pods) = {
      test::page_of({fresh, waiting, leaving, test::pod_object("team", "runs", "n", {{"aws.amazon.com/neuron", 1}})})};
  const Fleet fleet = make_fleet(documents);
  const json rows = json::parse(pods_listing(fleet, {}, Output::json, "")).at("pods");
  EXPECT_EQ(rows[0]["waiting_since"], "2026-11-26T11:00:00Z") << "no scheduler has seen it: since it was made";
  EXPECT_TRUE(rows[1]["waiting_since"].is_null()) << "it leaves";
  EXPECT_TRUE(rows[2]["waiting_since"].is_null()) << "it runs";
  EXPECT_EQ(rows[3]["waiting_since"], "2026-11-26T11:58:30Z");
  const std::string table = pods_listing(fleet, {}, Output::csv, "");
  EXPECT_THAT(table, HasSubstr("team,waiting,,Waiting,90s,"));
  EXPECT_THAT(table, HasSubstr("team,runs,n,Running,,"));
}

TEST(Listings, OfNothing) {
  EXPECT_THAT(nodes_listing({}, Output::table), HasSubstr("no node has"));
  EXPECT_THAT(pods_listing({}, {}, Output::table, "team"), HasSubstr("no pod of namespace team"));
  EXPECT_THAT(pods_listing({}, {}, Output::table, ""), HasSubstr("no pod of any namespace"));
  EXPECT_TRUE(json::parse(nodes_listing({}, Output::json)).at("nodes").empty());
}

TEST(Listings, HostileNamesArePrintedAsText) {
  const std::string escape = "a\x1b[2Jb\xe2\x80\xae\n";  // clears the screen, turns the direction
  Documents documents;
  documents.list(Kind::nodes) = {test::page_of({test::node_object(escape, escape, {{"aws.amazon.com/neuron", 1}})})};
  documents.list(Kind::pods) = {
      test::page_of({test::pod_object(escape, escape, escape, {{"aws.amazon.com/neuron", 1}})})};
  const Fleet fleet = make_fleet(documents);
  for (const Output output : {Output::table, Output::wide, Output::csv}) {
    for (const std::string& text : {nodes_listing(fleet, output), pods_listing(fleet, {}, output, "")}) {
      EXPECT_THAT(text, Not(HasSubstr("\x1b")));
      EXPECT_THAT(text, Not(HasSubstr("\xe2\x80\xae")));
      EXPECT_THAT(text, HasSubstr("a\\x1b[2Jb"));
    }
  }
  EXPECT_TRUE(json::accept(pods_listing(fleet, {}, Output::json, "")));
}

TEST(Table, CsvQuotesAndDisarmsFormulas) {
  EXPECT_EQ(table_csv({{"A", "B"}, {{"x,\"y\"", "=1+1"}, {"", "z"}}}), "A,B\n\"x,\"\"y\"\"\",'=1+1\n,z\n");
}

TEST(Table, AgesAreThoseOfKubectl) {
  const std::string now = "2026-11-26T12:00:00Z";
  EXPECT_EQ(age_text("2026-11-26T11:58:30Z", now), "90s");
  EXPECT_EQ(age_text("2026-11-26T11:10:59.123456Z", now), "49m");
  EXPECT_EQ(age_text("2026-11-25T00:00:00Z", now), "36h");
  EXPECT_EQ(age_text("2025-11-26T12:00:00Z", now), "365d");
  EXPECT_EQ(age_text("2026-11-26T12:00:01Z", now), "");
  EXPECT_EQ(age_text("yesterday", now), "");
}

}  // namespace
}  // namespace neuron::fleet
