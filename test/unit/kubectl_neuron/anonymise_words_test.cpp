// What an anonymised dump keeps of names of capacities and of sentences.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/kubectl_neuron/simulated_fleet.h"
#include "tools/kubectl-neuron/dump.h"
#include "tools/kubectl-neuron/replacements.h"

namespace neuron::fleet {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

json quantity(const char* amount) {
  return {{"value", amount}};
}

TEST(AnonymiseWords, NamesOfCapacitiesAndAttributesGo) {
  Documents documents;
  const json requests = {{"cores", "2"}, {"acme.example/memory", "1Gi"}, {"acme-slices", "3"}};
  const json exactly = {{"deviceClassName", "neuron.aws.com"}, {"capacity", {{"requests", requests}}}};
  const json devices = {{"requests",
                         {{{"name", "r"}, {"exactly", exactly}},
                          {{"name", "s"}, {"firstAvailable", {exactly}}},
                          {{"name", "t"}, {"capacity", {{"requests", requests}}}}}}};
  const json results = {{{"driver", "neuron.aws.com"},
                         {"pool", "n"},
                         {"device", "neuron-device-0"},
                         {"consumedCapacity", {{"cores", "2"}, {"acme.example/memory", "1Gi"}}}}};
  const json metadata = {{"name", "c"}, {"namespace", "team"}};
  documents.list(Kind::claims) = {
      test::page_of({{{"metadata", metadata},
                      {"spec", {{"devices", devices}}},
                      {"status", {{"allocation", {{"devices", {{"results", results}}}}}}}}})};
  documents.list(Kind::claim_templates) = {
      test::page_of({{{"metadata", metadata}, {"spec", {{"spec", {{"devices", devices}}}}}}})};
  const json device = {
      {"name", "neuron-device-0"},
      {"attributes", {{"resourceType", {{"string", "neuron_device"}}}, {"acmeRack", {{"int", 7}}}}},
      {"capacity", {{"cores", quantity("8")}, {"acme.example/memory", quantity("96Gi")}}},
      {"consumesCounters",
       {{{"counterSet", "cores"}, {"counters", {{"device-0", quantity("8")}, {"acme-slots", quantity("1")}}}}}}};
  documents.list(Kind::slices) = {test::page_of(
      {{{"metadata", {{"name", "s"}}},
        {"spec",
         {{"driver", "neuron.aws.com"},
          {"nodeName", "n"},
          {"pool", {{"name", "n"}, {"generation", 1}, {"resourceSliceCount", 1}}},
          {"devices", {device}},
          {"sharedCounters",
           {{{"name", "cores"}, {"counters", {{"device-0", quantity("8")}, {"acme-slots", quantity("9")}}}}}}}}}})};
  anonymise(documents);
  for (const Kind kind : {Kind::claims, Kind::claim_templates, Kind::slices}) {
    EXPECT_THAT(documents.list(kind).at(0), AllOf(Not(HasSubstr("acme")), HasSubstr(R"("cores")"))) << plural_of(kind);
  }
  const Fleet fleet = make_fleet(documents);
  const SliceDevice& kept = fleet.pools.at(0).devices.at(0);
  const Claim& claim = fleet.claims.at(0);
  ASSERT_EQ(claim.requests.at(0).capacity.size(), 3U);
  EXPECT_EQ(claim.requests[0].capacity.at("cores"), "2");
  ASSERT_EQ(kept.capacity.size(), 2U);
  EXPECT_EQ(kept.attributes.size(), 2U);
  for (const auto& [name, amount] : claim.devices.at(0).consumed_capacity) EXPECT_TRUE(kept.capacity.contains(name));
}

TEST(AnonymiseWords, AnAmountThatCannotBeReadStaysSo) {
  Documents documents = test::three_nodes();
  json node = test::node_object("acme-node", "trn1.32xlarge");
  node["status"]["capacity"]["aws.amazon.com/neuron"] = "acme";
  documents.list(Kind::nodes) = {test::page_of({node})};
  anonymise(documents);
  EXPECT_THAT(documents.list(Kind::nodes).at(0), Not(HasSubstr("acme")));
  EXPECT_THAT(make_fleet(documents).unknown, testing::Contains(HasSubstr("1 of 1 nodes were not understood")));
}

TEST(AnonymiseWords, ALabelOfTheAgentKeepsFamiliesAlone) {
  for (const char* family : {"trn1", "trn2u", "trn2eu", "trn3e", "inf2"})
    EXPECT_TRUE(is_public_value("neuron-agent/family", family)) << family;
  for (const char* other : {"trnacmesecretq", "trn1acme", "infra", "trn"})
    EXPECT_FALSE(is_public_value("neuron-agent/family", other)) << other;
}

TEST(AnonymiseWords, SentencesOfTheSchedulerStay) {
  const Replacements names;
  for (const char* sentence :
       {"Scheduling is blocked due to non-empty scheduling gates",
        "0/3 nodes are available: 1 node(s) had untolerated taint {karpenter.sh/disrupted: }, 2 Too many pods.",
        "0/2 nodes are available: 2 node(s) had untolerated taint {node.cloudprovider.kubernetes.io/uninitialized: }.",
        "1 node(s) didn't match Pod's node affinity/selector, 1 node(s) didn't match pod anti-affinity rules",
        "pod has unbound immediate PersistentVolumeClaims. not eligible due to preemptionPolicy=Never.",
        "1 node(s) didn't have free ports for the requested pod ports, 1 node(s) exceed max volume count",
        "1 node(s) had volume node affinity conflict, 1 node(s) didn't match pod topology spread constraints"}) {
    EXPECT_EQ(names.in_sentence(sentence), sentence);
  }
}

TEST(AnonymiseWords, WhatOnlyLooksLikeAPublicKeyGoes) {
  const Replacements names;
  for (const char* sentence : {"pulling 123456789012.dkr.ecr.eu-west-1.amazonaws.com/acme", "karpenter.sh/acme-squad",
                               "karpenter.sh/disrupted/acme", "acme.karpenter.sh/disrupted"}) {
    EXPECT_THAT(names.in_sentence(sentence), AllOf(Not(HasSubstr("acme")), HasSubstr("removed"))) << sentence;
  }
}

}  // namespace
}  // namespace neuron::fleet
