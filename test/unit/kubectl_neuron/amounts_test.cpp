// Amounts that cannot be read are named, and never count as nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/kubectl_neuron/simulated_fleet.h"
#include "tools/kubectl-neuron/commands.h"
#include "tools/kubectl-neuron/counts.h"

namespace neuron::fleet {
namespace {

using nlohmann::json;
using test::node_object;
using test::page_of;
using test::pod_object;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kNeuronName = "aws.amazon.com/neuron";

Fleet fleet_of(const std::vector<json>& nodes, const std::vector<json>& pods = {}) {
  Documents documents;
  documents.list(Kind::nodes) = {page_of(nodes)};
  documents.list(Kind::pods) = {page_of(pods)};
  return make_fleet(documents);
}

json node_with(const json& amount) {
  json node = node_object("n1", "trn1.32xlarge");
  node["status"]["capacity"][kNeuronName] = node["status"]["allocatable"][kNeuronName] = amount;
  return node;
}

TEST(Amounts, OfANodeThatCannotBeReadAreNamed) {
  for (const json& bad : {json("-5"), json("abc"), json("1.5"), json(-5), json(1.5), json(nullptr), json("1e99"),
                          json("10001"), json("9223372036854775807"), json(18446744073709551615U)}) {
    const Fleet fleet = fleet_of({node_with(bad)});
    EXPECT_THAT(fleet.unknown, ElementsAre("1 of 1 nodes were not understood, wholly or in part: n1")) << bad;
    EXPECT_THAT(nodes_listing(fleet, Output::table), HasSubstr("cannot tell which nodes")) << bad;
  }
  EXPECT_THAT(fleet_of({node_with("16")}).unknown, IsEmpty());
  EXPECT_THAT(fleet_of({node_with(10'000)}).unknown, IsEmpty());
  json memory = node_with(16);
  memory["status"]["allocatable"]["memory"] = "much";
  EXPECT_THAT(fleet_of({memory}).unknown, ElementsAre(HasSubstr("1 of 1 nodes")));
}

TEST(Amounts, OfAPodThatCannotBeReadAreNamed) {
  for (const char* field : {"limits", "requests"}) {
    for (const json& bad : {json("x"), json("-4"), json("1.5"), json::array()}) {
      json pod = pod_object("team", "p", "n1", {});
      pod["spec"]["containers"][0]["resources"][field][kNeuronName] = bad;
      const Fleet fleet = fleet_of({node_with(16)}, {pod});
      EXPECT_THAT(fleet.unknown, ElementsAre("1 of 1 pods were not understood, wholly or in part: p")) << bad;
      EXPECT_TRUE(fleet.pods_partial);
      EXPECT_FALSE(count_node(fleet.nodes.at(0), asked_by_node(fleet)).devices) << "some may be held";
    }
  }
  EXPECT_THAT(fleet_of({}, {pod_object("team", "p", "", {{kNeuronName, 4}, {"cpu", 2}})}).unknown, IsEmpty());
}

TEST(Amounts, APodWhoseAmountsCannotBeReadMayNotFit) {
  json pod = pod_object("team", "p", "", {});
  pod["spec"]["containers"][0]["resources"]["limits"][kNeuronName] = "x";
  const Fleet fleet = fleet_of({node_with(16)}, {pod});
  const Verdict verdict = fit(fleet, fleet.pods.at(0), node_states(fleet).at(0));
  EXPECT_EQ(verdict.answer, Answer::unknown);
  ASSERT_EQ(verdict.obstacles.size(), 1U);
  EXPECT_EQ(words_of(verdict.obstacles[0]),
            "cannot tell: a readable amount in its requests was not found, and not everything could be read");
}

TEST(Amounts, OfManyNodesAreAddedUp) {
  Fleet fleet = fleet_of({node_with(16)});
  fleet.nodes[0].capacity[kNeuronName] = fleet.nodes[0].allocatable[kNeuronName] = kMostUnits;
  fleet.nodes.resize(3, fleet.nodes[0]);
  EXPECT_THAT(nodes_listing(fleet, Output::table), HasSubstr("; 6442450941 devices: 6442450941 free"));
}

TEST(Amounts, AnObjectThatIsListedTwiceIsNamed) {
  json other = node_with(3);
  const Fleet fleet = fleet_of({node_with(16), other}, {pod_object("a", "p", "", {}), pod_object("a", "p", "", {})});
  EXPECT_EQ(fleet.nodes.size(), 1U);
  EXPECT_EQ(fleet.pods.size(), 1U);
  EXPECT_THAT(fleet.unknown, ElementsAre("1 object of the list of nodes is there more than once: n1",
                                         "1 object of the list of pods is there more than once: p"));
  EXPECT_FALSE(fleet.nodes_unread.empty());
}

TEST(Amounts, OfManyObjectsThatAreNotUnderstoodThreeAreNamed) {
  Documents documents;
  documents.list(Kind::pods) = {page_of(std::vector<json>(7, json::object()))};
  documents.list(Kind::slices) = documents.list(Kind::pods);
  EXPECT_THAT(make_fleet(documents).unknown,
              ElementsAre("7 of 7 pods were not understood, wholly or in part: number 1, number 2, number 3 and 4 more",
                          "7 of 7 resourceslices were not understood, wholly or in part: number 1, number 2, number 3 "
                          "and 4 more"));
}

}  // namespace
}  // namespace neuron::fleet
