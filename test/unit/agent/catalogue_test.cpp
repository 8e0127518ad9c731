#include "tools/neuron-agent/catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "agent/base/workers.h"
#include "plugin/daemon/machine_scans.h"
#include "plugin/dra/slices/publisher.h"
#include "test/fakes/fake_host.h"
#include "test/unit/render/json_schema.h"

namespace neuron::agent {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Of one machine: all that the catalogue does not know of a node of the type.
const std::set<std::string> kOfOneMachine = {"serial", "ultraserverId", "ultraserverServerId2", "ultraserverServerId4"};

// The slices with those attributes emptied; each must be there.
json without_machine(json list, std::set<std::string>& emptied) {
  for (json& slice : list.at("items")) {
    if (!slice.at("spec").contains("devices")) continue;
    for (json& device : slice.at("spec").at("devices")) {
      for (const std::string& name : kOfOneMachine) {
        if (!device.at("attributes").contains(name)) continue;
        device["attributes"][name] = {{"string", ""}};
        emptied.insert(name);
      }
    }
  }
  return list;
}

struct Simulated {
  explicit Simulated(const std::string& type, std::optional<int> lnc) : host(type) {
    if (lnc) host.lnc(*lnc);
    host.write();
    auto scanned = plugin::scan_once(host.path(), host::KernelLogUse::none, workers);
    if (scanned) snapshot = *scanned;
  }
  [[nodiscard]] json published(const Options& options) const {
    const auto pool = plugin::dra::make_pool(grant::NodeUnits(snapshot), options.dra.pool, {});
    const std::string& node = snapshot->host.instance_type;
    return json::parse(plugin::dra::published_text(plugin::dra::lay_out(pool, options.dra.layout),
                                                   {options.dra.pool.driver, node, {node, ""}}));
  }

  fakes::FakeHost host;
  Workers workers;
  model::SnapshotPtr snapshot;
};

// The options of `run` and `catalogue` that change slices.
std::vector<Options> choices() {
  std::vector<Options> all(1);
  using plugin::dra::Partitions;
  for (const Partitions partitions : {Partitions::cores, Partitions::groups, Partitions::all}) {
    all.emplace_back().dra.pool.partitions = partitions;
  }
  all.emplace_back().dra.pool.shares = plugin::dra::Shares::off;
  all.emplace_back().dra.pool.core_devices = core::CoreDevices{false, {0, 1, 2, 3}};
  all.emplace_back().dra.pool.ultraserver = plugin::dra::UltraServer::devices;
  all.emplace_back().dra.layout = *plugin::dra::layout_for("1.34.2");
  all.emplace_back().dra.pool.driver = "neuron.example.org";
  return all;
}

class CatalogueOf : public testing::TestWithParam<std::string> {};

TEST_P(CatalogueOf, SlicesAreThoseOfASimulatedNode) {
  const core::InstanceType& type = *core::find_instance_type(GetParam());
  std::set<std::string> emptied;
  for (int lnc = 0; lnc <= (type.default_lnc == 2 ? 1 : 0); ++lnc) {  // 0: none is written
    const std::optional<int> chosen = lnc > 0 ? std::optional(lnc) : std::nullopt;
    const Simulated node(type.name, chosen);
    ASSERT_NE(node.snapshot, nullptr);
    for (Options options : choices()) {
      options.types = {type.name};
      options.lnc = chosen;
      options.driver_version = node.snapshot->host.driver_version;
      options.output = ReportForm::slices;
      const Catalogue made = catalogue(options);
      ASSERT_EQ(made.report.verdict, Verdict::good) << made.report.error;
      EXPECT_EQ(without_machine(json::parse(made.report.output), emptied),
                without_machine(node.published(options), emptied))
          << "lnc " << lnc;
    }
  }
  if (type.in_ultraserver) {
    EXPECT_EQ(emptied, kOfOneMachine);
  }
}

// What a registered resource would count.
TEST_P(CatalogueOf, UnitsAreThoseOfASimulatedNode) {
  const core::InstanceType& type = *core::find_instance_type(GetParam());
  const Simulated node(type.name, std::nullopt);
  ASSERT_NE(node.snapshot, nullptr);
  const grant::NodeUnits units(node.snapshot);
  const ordered_json document = catalogue_json({&type}, Options());
  for (const ordered_json& offer : document["types"][0]["allocatable"]) {
    if (offer["options"] != "" || (type.family && offer["lnc"] != type.default_lnc)) continue;
    std::size_t count = 0;
    for (const auto& [name, allocatable] : offer["resources"].items()) {
      EXPECT_EQ(allocatable, units.units(*model::parse_resource(name)).size()) << name;
      ++count;
    }
    EXPECT_EQ(count, (type.family ? 2U : 0U) + (type.efa_count > 0 ? 1U : 0U));
  }
}

TEST_P(CatalogueOf, TheDocumentFollowsItsSchema) {
  std::vector<Options> all(3);
  all[1].neurondevice = true;
  all[2].offer.core_devices_said = true;
  all[2].offer.core_devices = core::CoreDevices{false, {0}};
  if (core::find_instance_type(GetParam())->family) all[2].lnc = 1;
  for (Options& options : all) {
    options.types = {GetParam()};
    options.output = ReportForm::json;
    const std::string text = catalogue(options).report.output;
    EXPECT_EQ(neuron::test::schema_file_violation("neuron-catalogue-1", text), "");
  }
}

std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const core::InstanceType& type : core::all_instance_types()) names.push_back(type.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Types, CatalogueOf, testing::ValuesIn(all_names()), [](const auto& type) {
  std::string name = type.param;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
});

Catalogue catalogue_of(std::vector<std::string> types, ReportForm form = ReportForm::json) {
  Options options;
  options.types = std::move(types);
  options.output = form;
  return catalogue(options);
}

ordered_json facts_of(const std::string& type, const Options& options = {}) {
  return catalogue_json({core::find_instance_type(type)}, options)["types"][0];
}

TEST(Catalogue, AllTypesWithoutAName) {
  const Catalogue all = catalogue_of({});
  EXPECT_EQ(ordered_json::parse(all.report.output)["types"].size(), core::all_instance_types().size());
  EXPECT_THAT(all.notes, IsEmpty());
}

TEST(Catalogue, AnUnknownTypeNamesSimilarOnes) {
  const Catalogue unknown = catalogue_of({"trn1.32xlarge", "trn1.23xlarge"});
  EXPECT_EQ(unknown.report.verdict, Verdict::cannot_tell);
  EXPECT_THAT(unknown.report.error, HasSubstr("\"trn1.23xlarge\"; did you mean trn1.2xlarge, trn1.32xlarge"));
  EXPECT_EQ(unknown.report.output, "");
}

TEST(Catalogue, TheLncOfANamedTypeMustBePossible) {
  Options options;
  options.lnc = 2;
  options.types = {"trn1.32xlarge"};
  EXPECT_THAT(catalogue(options).report.error, HasSubstr("--lnc 2 is not possible on trn1.32xlarge"));
  options.types.clear();
  EXPECT_EQ(catalogue(options).report.verdict, Verdict::good);
}

TEST(Catalogue, FactsOfATorus) {
  const ordered_json trn1 = facts_of("trn1.32xlarge");
  EXPECT_EQ(trn1["family"], "Trainium1");
  EXPECT_EQ(trn1["devices"],
            (ordered_json{{"count", 16}, {"physicalCores", 2}, {"memoryGiB", 32}, {"addresses", "of one machine"}}));
  EXPECT_EQ(trn1["lnc"], (ordered_json{{"default", 1}, {"logicalCores", {{"1", 32}}}}));
  EXPECT_EQ(trn1["interfaces"]["count"], 8);
  EXPECT_EQ(trn1["fabric"], "torus");
  EXPECT_EQ(trn1["numaNodes"][1]["devices"], (ordered_json{2, 3, 6, 7, 10, 11, 14, 15}));
  EXPECT_EQ(trn1["nearestInterfaces"][2], "rdmap160s26");
  EXPECT_EQ(trn1["groups"].size(), 3U);
  EXPECT_EQ(trn1["groups"][1]["members"][1], (ordered_json{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(Catalogue, UnknownFactsAreNull) {
  EXPECT_TRUE(facts_of("trn3.48xlarge")["numaNodes"].is_null());
  for (const char* name : {"g4dn.8xlarge", "g5.48xlarge", "p5.4xlarge", "p6-b300.48xlarge", "c5n.18xlarge"}) {
    EXPECT_TRUE(facts_of(name)["numaNodes"].is_null()) << name;
  }
  EXPECT_EQ(facts_of("p5.48xlarge")["numaNodes"][1]["interfaces"].size(), 16U);
  EXPECT_THAT(catalogue_of({"g5.48xlarge"}, ReportForm::text).report.output,
              testing::ContainsRegex("g5.48xlarge .* 1  *-  *-  *-  *192"));
  EXPECT_TRUE(facts_of("trn3.3xlarge")["hostMemoryGiB"].is_null());
  EXPECT_TRUE(facts_of("trn3n.48xlarge")["nearestInterfaces"][0].is_null());
  EXPECT_TRUE(facts_of("g4dn.8xlarge")["family"].is_null());
  EXPECT_TRUE(facts_of("g4dn.8xlarge")["lnc"].is_null());
}

TEST(Catalogue, AllocatableByLncAndOffer) {
  const auto found = [](const ordered_json& type, const std::string& options, int lnc) {
    for (const ordered_json& offer : type["allocatable"]) {
      if (offer["options"] == options && offer["lnc"] == lnc) return offer["resources"];
    }
    return ordered_json();
  };
  const ordered_json trn2 = facts_of("trn2.48xlarge");
  const ordered_json both = {
      {"aws.amazon.com/neuroncore", 64}, {"aws.amazon.com/neuron", 16}, {"vpc.amazonaws.com/efa", 16}};
  EXPECT_EQ(found(trn2, "", 2), both);
  EXPECT_EQ(found(trn2, "", 1)["aws.amazon.com/neuroncore"], 128);
  EXPECT_EQ(found(trn2, "--core-devices none", 2),
            (ordered_json{{"aws.amazon.com/neuron", 16}, {"vpc.amazonaws.com/efa", 16}}));
  EXPECT_EQ(found(trn2, "--core-devices all", 1),
            (ordered_json{{"aws.amazon.com/neuroncore", 128}, {"vpc.amazonaws.com/efa", 16}}));
  EXPECT_EQ(found(trn2, "--neurondevice", 2)["aws.amazon.com/neurondevice"], 16);
  Options options;
  options.offer.core_devices_said = true;
  options.offer.core_devices = core::CoreDevices{false, {0, 1}};
  options.lnc = 1;
  const ordered_json split = facts_of("trn2.48xlarge", options);
  EXPECT_EQ(
      found(split, "--core-devices 0-1", 1),
      (ordered_json{{"aws.amazon.com/neuroncore", 16}, {"aws.amazon.com/neuron", 14}, {"vpc.amazonaws.com/efa", 16}}));
  EXPECT_TRUE(found(split, "--core-devices 0-1", 2).is_null()) << "--lnc 1 alone";
}

// What Karpenter counts by itself, and the agent does not offer, is 0, but for interfaces that another plugin may
// offer.
TEST(Catalogue, OverlaysCountWhatIsOffered) {
  Options options;
  options.types = {"trn2.48xlarge", "inf2.xlarge", "p5.4xlarge"};
  options.output = ReportForm::overlays;
  const json list = json::parse(catalogue(options).report.output);
  ASSERT_EQ(list["items"].size(), 3U);
  const json& trn2 = list["items"][0];
  EXPECT_EQ(trn2["metadata"]["name"], "neuron-agent-trn2.48xlarge");
  EXPECT_EQ(
      trn2["spec"]["requirements"],
      json::parse(R"([{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["trn2.48xlarge"]}])"));
  const auto capacity = [](const json& of, std::size_t i) { return of["items"][i]["spec"]["capacity"].dump(); };
  EXPECT_EQ(capacity(list, 0),
            R"({"aws.amazon.com/neuron":"16","aws.amazon.com/neuroncore":"64","vpc.amazonaws.com/efa":"16"})");
  EXPECT_EQ(capacity(list, 1), R"({"aws.amazon.com/neuron":"1","aws.amazon.com/neuroncore":"2"})");
  EXPECT_EQ(capacity(list, 2), R"({"vpc.amazonaws.com/efa":"1"})");
  options.offer.core_devices_said = options.neurondevice = true;
  options.offer.core_devices = core::CoreDevices{};
  options.offer.resources = *core::parse_resource_list("neuron,neuroncore");
  options.lnc = 1;
  options.types = {"trn2.48xlarge"};
  EXPECT_EQ(capacity(json::parse(catalogue(options).report.output), 0),
            R"({"aws.amazon.com/neuron":"16","aws.amazon.com/neuroncore":"0","aws.amazon.com/neurondevice":"16"})");
  options.lnc.reset();
  options.types = {"p5.4xlarge"};
  EXPECT_EQ(json::parse(catalogue(options).report.output)["items"], json::array());
}

TEST(Catalogue, TagsCountWhatIsOffered) {
  Options options;
  options.types = {"trn2.48xlarge", "p5.4xlarge"};
  options.output = ReportForm::tags;
  const auto tags = [&] { return json::parse(catalogue(options).report.output); };
  const std::string prefix = "k8s.io/cluster-autoscaler/node-template/resources/";
  EXPECT_EQ(tags(), (json{{"trn2.48xlarge",
                           {{prefix + "aws.amazon.com/neuron", "16"},
                            {prefix + "aws.amazon.com/neuroncore", "64"},
                            {prefix + "vpc.amazonaws.com/efa", "16"}}},
                          {"p5.4xlarge", {{prefix + "vpc.amazonaws.com/efa", "1"}}}}));
  options.offer.resources = *core::parse_resource_list("neuroncore");
  EXPECT_EQ(tags(), (json{{"trn2.48xlarge", {{prefix + "aws.amazon.com/neuroncore", "64"}}}}));
}

TEST(Catalogue, SlicesOfSeveralTypesAreOneListWithTheirNames) {
  const Catalogue two = catalogue_of({"trn1.2xlarge", "trn3.48xlarge", "trn1.2xlarge"}, ReportForm::slices);
  const json list = json::parse(two.report.output);
  ASSERT_EQ(list["items"].size(), 2U);
  EXPECT_EQ(list["items"][0]["spec"]["nodeName"], "trn1.2xlarge");
  EXPECT_EQ(list["items"][1]["spec"]["pool"]["name"], "trn3.48xlarge");
  EXPECT_THAT(two.notes, ElementsAre("trn3.48xlarge: PCI addresses that are not public are made up"));
}

TEST(Catalogue, AnUnknownNumberOfInterfacesIsNotZero) {
  const auto type_of = [](const char* name) {
    return json::parse(catalogue_of({name}, ReportForm::json).report.output)["types"][0];
  };
  EXPECT_EQ(type_of("trn3n.48xlarge")["interfaces"], nullptr);
  EXPECT_EQ(type_of("trn3.3xlarge")["interfaces"]["count"], 0);
  EXPECT_EQ(type_of("trn3.48xlarge")["interfaces"]["count"], 16);
  EXPECT_THAT(catalogue_of({"trn3n.48xlarge"}, ReportForm::slices).notes,
              testing::Contains("trn3n.48xlarge: without interfaces, whose number is not public"));
  for (const ReportForm form : {ReportForm::overlays, ReportForm::tags}) {
    Options options;
    options.types = {"trn3n.48xlarge", "trn2p.48xlarge", "trn3.3xlarge", "trn2.48xlarge"};
    options.output = form;
    EXPECT_THAT(catalogue(options).notes,
                ElementsAre("trn3n.48xlarge: without interfaces, whose number is not public",
                            "trn2p.48xlarge: without interfaces, whose number is not public"));
    options.offer.resources = *core::parse_resource_list("neuron,neuroncore");
    EXPECT_THAT(catalogue(options).notes, IsEmpty()) << "interfaces are not asked for";
  }
  const std::string table = catalogue_of({"trn3n.48xlarge", "trn3.3xlarge"}, ReportForm::text).report.output;
  EXPECT_THAT(table, testing::ContainsRegex("trn3n.48xlarge .* 144  *-  *-  "));
  EXPECT_THAT(table, testing::ContainsRegex("trn3.3xlarge .* 144  *0  *-  "));
}

TEST(Catalogue, TheTableHasALineForEachType) {
  const std::string table = catalogue_of({"inf2.48xlarge", "trn2u.48xlarge"}, ReportForm::text).report.output;
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 3);
  EXPECT_THAT(table, HasSubstr("ring                2-12    192"));
  EXPECT_THAT(table, HasSubstr("64 (LNC 1: 128)"));
  EXPECT_THAT(table, HasSubstr("torus, UltraServer"));
}

TEST(Yaml, ScalarsAreQuotedAndListsOfThemInline) {
  const ordered_json document = {{"a", {1, 2}},
                                 {"1", "1"},
                                 {"on", true},
                                 {"x.y/z", nullptr},
                                 {"none", ordered_json::array()},
                                 {"empty", ordered_json::object()},
                                 {"list", {{{"k", "a: \"b\"\n"}, {"l", {{1}, {2}}}}}}};
  EXPECT_EQ(yaml_of(document),
            "a: [1, 2]\n"
            "\"1\": \"1\"\n"
            "\"on\": true\n"
            "x.y/z: null\n"
            "none: []\n"
            "empty: {}\n"
            "list:\n"
            "  - k: \"a: \\\"b\\\"\\n\"\n"
            "    l:\n"
            "      - [1]\n"
            "      - [2]\n");
  EXPECT_EQ(yaml_of("text"), "\"text\"\n");
}

}  // namespace
}  // namespace neuron::agent
