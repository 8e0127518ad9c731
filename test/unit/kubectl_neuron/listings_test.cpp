#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/base/parse.h"
#include "test/unit/kubectl_neuron/simulated_fleet.h"
#include "test/unit/render/golden.h"
#include "tools/kubectl-neuron/commands.h"
#include "tools/kubectl-neuron/table.h"

namespace neuron::fleet {
namespace {

using nlohmann::json;
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
