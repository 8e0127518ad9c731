#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "agent/kube/answers.h"
#include "plugin/dra/slices/publisher.h"
#include "test/unit/dra/pools.h"

namespace neuron::plugin::dra {
namespace {

using nlohmann::json;
using testing::IsEmpty;
using testing::SizeIs;

const PoolIdentity kIdentity{"neuron.aws.com", "n1", {"n1", "uid-of-n1"}};

std::vector<Slice> slices_of(const TestNode& node) {
  std::vector<SliceContent> contents = lay_out(node.pool(), {}).slices;
  return whole_slices(contents, kIdentity);
}

TEST(SliceText, IsReadBackAsItWasWritten) {
  TestNode node("trn2.48xlarge");
  node.make_ill(3);
  for (const Slice& slice : slices_of(node)) {
    const auto back = parse_slice(slice_text(slice));
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(back->name, slice.name);
    EXPECT_EQ(spec_text(*back, "driver"), "neuron.aws.com");
    EXPECT_EQ(spec_text(*back, "nodeName"), "n1");
    EXPECT_EQ(pool_of(*back), "n1");
    EXPECT_EQ(generation_of(*back), 1);
    EXPECT_TRUE(is_same(*back, slice));
    EXPECT_EQ(slice_text(*back), slice_text(slice));
  }
}

// A claim that selects by an attribute which a device lacks is never scheduled.
TEST(SliceText, WhatAwsSaysOfANodeIsThereAlsoWhereItIsUnknown) {
  PoolIdentity identity = kIdentity;
  identity.node.network_layers = {{"networkNodeLayer2", "nn-2"}};
  const std::vector<Slice> slices = whole_slices(lay_out(TestNode("trn2.48xlarge").pool(), {}).slices, identity);
  const auto first =
      std::ranges::find_if(slices, [](const Slice& slice) { return slice.json["spec"].contains("devices"); });
  ASSERT_NE(first, slices.end());
  const json device = first->json["spec"]["devices"][0];
  EXPECT_EQ(device["attributes"]["networkNodeLayer2"]["string"], "nn-2");
  for (const char* name : {"networkNodeLayer1", "networkNodeLayer3", "capacityBlockId", "workloadId"}) {
    EXPECT_EQ(device["attributes"][name]["string"], "") << name;
  }
}

// docs/reference/dra.md#limits: the server refuses a slice of which one device has more than 32.
TEST(SliceText, OnAnUltraServerEveryDeviceKeepsToTheLimit) {
  TestNode node("trn2u.48xlarge");
  node.snapshot->host.ultraserver =
      model::UltraServer{false, {1, 2, 4}, {{2, "4d2a71c09be3f652", 0}, {4, "8f10b6e35a7c92d4", 3}}};
  for (model::NeuronDevice& device : node.snapshot->host.devices) {
    device.bdf = model::Sourced<model::Bdf>{*model::parse_bdf("0000:10:1c.0")};
    device.pcie_root = "pci0000:10";
  }
  PoolOptions options;
  options.ultraserver = UltraServer::devices;
  for (const bool shares : {false, true}) {
    options.shares = shares ? Shares::on : Shares::off;
    options.partitions = shares ? Partitions::none : Partitions::all;
    for (const Slice& slice : whole_slices(lay_out(node.pool(options), {}).slices, kIdentity)) {
      for (const json& device : slice.json["spec"].value("devices", json::array())) {
        EXPECT_LE(device.at("attributes").size() + device.value("capacity", json::object()).size(), 32U)
            << device["name"];
        EXPECT_TRUE(device.at("attributes").contains("instanceType"));
      }
    }
  }
}

// Where AWS has no group ids claims are aligned by these, shared or not.
TEST(SliceText, TheAttributesThatAlignClaimsAreKeptFirst) {
  TestNode node("trn2p.48xlarge", 2);
  node.snapshot->host.ultraserver =
      model::UltraServer{false, {1, 2, 4}, {{2, "4d2a71c09be3f652", 0}, {4, "8f10b6e35a7c92d4", 3}}};
  for (model::NeuronDevice& device : node.snapshot->host.devices) {
    device.bdf = model::Sourced<model::Bdf>{*model::parse_bdf("0000:10:1c.0")};
    device.pcie_root = "pci0000:10";
    device.numa_node = model::Sourced<int>{0};
  }
  PoolOptions options;
  options.ultraserver = UltraServer::devices;
  const Layout layout = lay_out(node.pool(options), {});
  const json device = whole_slices(layout.slices, kIdentity).front().json["spec"]["devices"][0];
  EXPECT_EQ(device["allowMultipleAllocations"], true);
  EXPECT_TRUE(device["attributes"].contains("topology8_id")) << device["attributes"].dump();
  EXPECT_TRUE(device["attributes"].contains("topology4_id"));
}

// docs/reference/dra.md#shares
TEST(SliceText, ASharedDeviceHasPolicies) {
  PoolOptions options;
  options.shares = Shares::on;
  const Layout layout = lay_out(TestNode("trn2.3xlarge", 2).pool(options), {});
  Slice slice = whole_slices(layout.slices, kIdentity).front();
  const json& device = slice.json["spec"]["devices"][0];
  EXPECT_EQ(device["allowMultipleAllocations"], true);
  EXPECT_EQ(device["capacity"]["cores"],
            (json{{"value", "4"},
                  {"requestPolicy", {{"default", "4"}, {"validRange", {{"min", "0"}, {"max", "4"}, {"step", "1"}}}}}}));
  EXPECT_EQ(device["capacity"]["memory"]["requestPolicy"],
            (json{{"default", "0"}, {"validRange", {{"min", "0"}, {"max", device["capacity"]["memory"]["value"]}}}}));
  EXPECT_TRUE(has_shares(slice));
  // The server writes quantities its own way.
  Slice stored = slice;
  stored.json["spec"]["devices"][0]["capacity"]["cores"]["requestPolicy"]["validRange"]["max"] = "4000m";
  EXPECT_TRUE(is_same(stored, slice));
  stored.json["spec"]["devices"][0]["capacity"]["cores"]["requestPolicy"]["default"] = "3";
  EXPECT_FALSE(is_same(stored, slice));
}

TEST(SliceText, IsTheJsonThatTheServerDocuments) {
  TestNode node("inf2.xlarge");
  node.make_ill(0);
  const auto slices = slices_of(node);
  ASSERT_THAT(slices, SizeIs(2));
  const json counters = json::parse(slice_text(slices[0])), devices = json::parse(slice_text(slices[1]));
  EXPECT_EQ(counters["apiVersion"], "resource.k8s.io/v1");
  EXPECT_EQ(counters["kind"], "ResourceSlice");
  EXPECT_EQ(counters["metadata"]["name"], "00000-neuron.aws.com-n1");
  EXPECT_EQ(counters["metadata"]["ownerReferences"][0],
            (json{{"apiVersion", "v1"}, {"kind", "Node"}, {"name", "n1"}, {"uid", "uid-of-n1"}, {"controller", true}}));
  EXPECT_EQ(counters["spec"],
            (json{{"driver", "neuron.aws.com"},
                  {"nodeName", "n1"},
                  {"pool", {{"name", "n1"}, {"generation", 1}, {"resourceSliceCount", 2}}},
                  {"sharedCounters", {{{"name", "cores"}, {"counters", {{"device-0", {{"value", "2"}}}}}}}}}));
  const json device = devices["spec"]["devices"][0];
  EXPECT_EQ(device["name"], "neuron-device-0");
  EXPECT_EQ(device["attributes"]["deviceId"], (json{{"int", 0}}));
  EXPECT_EQ(device["attributes"]["instanceType"], (json{{"string", "inf2.xlarge"}}));
  EXPECT_TRUE(device["attributes"]["draDriverVersion"].contains("version"));
  EXPECT_EQ(device["capacity"], (json{{"cores", {{"value", "2"}}}, {"memory", {{"value", "32Gi"}}}}));
  EXPECT_EQ(device["consumesCounters"],
            (json{{{"counterSet", "cores"}, {"counters", {{"device-0", {{"value", "2"}}}}}}}));
  EXPECT_EQ(device["taints"],
            (json{{{"key", "neuron.aws.com/unhealthy"}, {"value", "sram_ecc_uncorrected"}, {"effect", "NoSchedule"}}}));
}

TEST(SliceText, AListIsForKubectl) {
  const json list = json::parse(published_text(lay_out(TestNode("trn1.32xlarge").pool(), {}), kIdentity));
  EXPECT_EQ(list["kind"], "List");
  EXPECT_EQ(list["apiVersion"], "v1");
  ASSERT_THAT(list["items"], SizeIs(2));
  EXPECT_EQ(list["items"][1]["metadata"]["name"], "00001-neuron.aws.com-n1");
  const auto ownerless = whole_slices({SliceContent{}}, {"neuron.aws.com", "n1", {"n1", ""}});
  EXPECT_FALSE(json::parse(slice_text(ownerless[0]))["metadata"].contains("ownerReferences"));
}

// What a server adds to an object, and what others may have written under our driver's name.
TEST(SliceText, WhatWeDoNotWriteIsSeen) {
  const Slice wanted = slices_of(TestNode("inf2.xlarge"))[1];
  json object = wanted.json;
  object["metadata"]["managedFields"] = json::array({{{"manager", "x"}}});
  object["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z";
  object["metadata"]["labels"] = {{"a", "b"}};
  EXPECT_TRUE(is_same(*parse_slice(object.dump()), wanted));
  const auto with = [&](auto change) {
    json changed = object;
    change(changed);
    const auto slice = parse_slice(changed.dump());
    EXPECT_TRUE(slice) << changed.dump();
    return slice && is_same(*slice, wanted);
  };
  EXPECT_TRUE(with([](json& o) { o["spec"]["devices"][0]["capacity"]["memory"]["value"] = "34359738368"; }));
  EXPECT_TRUE(with([](json& o) { o["spec"]["devices"][0]["capacity"]["cores"]["value"] = "2000m"; }));
  EXPECT_FALSE(with([](json& o) { o["spec"]["allNodes"] = true; }));
  EXPECT_FALSE(with([](json& o) { o["spec"]["devices"][0]["bindsToNode"] = true; }));
  EXPECT_FALSE(with([](json& o) { o["spec"]["devices"][0]["attributes"]["deviceId"] = {{"ints", {1, 2}}}; }));
  EXPECT_FALSE(with([](json& o) { o["spec"]["devices"][0]["attributes"]["deviceId"]["string"] = "x"; }));
  EXPECT_FALSE(with([](json& o) { o["spec"]["devices"][0]["capacity"]["cores"]["value"] = "1.5"; }));
  EXPECT_FALSE(with([](json& o) { o["spec"]["devices"][0]["capacity"]["cores"]["requestPolicy"] = json::object(); }));
  EXPECT_FALSE(with([](json& o) { o["spec"]["devices"] = "none"; }));
  EXPECT_FALSE(with([](json& o) { o["spec"]["devices"] = json::array({1}); }));
  EXPECT_FALSE(with([](json& o) { o["spec"]["pool"]["generation"] = 1e300; }));
  EXPECT_FALSE(with([](json& o) { o["spec"]["pool"]["generation"] = ~std::uint64_t{0}; }));
  EXPECT_FALSE(with([](json& o) { o["metadata"]["ownerReferences"][0]["kind"] = "Pod"; }));
  EXPECT_FALSE(with([](json& o) { o["metadata"]["ownerReferences"].push_back(o["metadata"]["ownerReferences"][0]); }));
  EXPECT_FALSE(with([](json& o) {
    for (int i = 0; i < 200; ++i) o["spec"]["devices"].push_back(o["spec"]["devices"][0]);
  }));
}

TEST(SliceText, WhatIsNoSliceIsRefused) {
  for (const char* text :
       {"", "{", "[]", "null", "1", R"("x")", R"({"kind":"ResourceSlice"})",
        R"({"kind":"ResourceSlice","metadata":{"name":""}})", R"({"kind":"Node","metadata":{"name":"n1"}})"}) {
    const auto slice = parse_slice(text);
    ASSERT_FALSE(slice) << text;
    EXPECT_EQ(slice.error().code, ErrorCode::data_corrupt);
  }
  for (const char* text : {"", "{}", R"({"metadata":1})", R"({"metadata":{},"items":{}})",
                           R"({"metadata":{},"items":[{}]})", R"({"metadata":{},"items":[1]})"}) {
    EXPECT_FALSE(parse_slices(text)) << text;
  }
  EXPECT_THAT(parse_slices(R"({"metadata":{"resourceVersion":"7"},"items":null})")->objects, IsEmpty());
  json many = {{"metadata", {{"resourceVersion", "7"}}}, {"items", json::array()}};
  for (int i = 0; i < 512; ++i) many["items"].push_back({{"metadata", {{"name", "x"}, {"resourceVersion", "7"}}}});
  EXPECT_THAT(parse_slices(many.dump())->objects, SizeIs(512));
  many["items"].push_back(many["items"][0]);
  EXPECT_FALSE(parse_slices(many.dump()));
}

TEST(SliceText, QuantitiesAreReadInAnyFormThatTheServerMayGiveThem) {
  const std::map<std::string, std::int64_t> known = {
      {"0", 0},
      {"8", 8},
      {"-3", -3},
      {"2k", 2000},
      {"96Gi", std::int64_t{96} << 30U},
      {"1e3", 1000},
      {"1E3", 1000},
      {"1E", 1'000'000'000'000'000'000},
      {"4000m", 4},
      {"9223372036854775807", std::numeric_limits<std::int64_t>::max()},
      {"-9223372036854775807", -std::numeric_limits<std::int64_t>::max()},
      {"+3", 3},
      {"0.0", 0},
      {".0", 0},
      {"0.", 0},
      {"0n", 0},
      {"1.5k", 1500},
      {"5000e-3", 5},
      {"1e+3", 1000},
      {"0e999", 0},
      {"0.5Ki", 512},
      {"7000000000n", 7}};
  for (const auto& [text, value] : known) EXPECT_EQ(kube::parse_quantity(text), value) << text;
  for (const char* bad : {"",
                          "x",
                          "1.5",
                          "1500m",
                          "k",
                          "1kk",
                          "1e",
                          "1e99",
                          "9223372036854775808",
                          "8Ei",
                          "1 k",
                          " 1",
                          "1e-3",
                          "0x10",
                          "--1",
                          "1-1",
                          ".",
                          "+",
                          "m",
                          "1e999",
                          "1e-999",
                          "10000000000000000000000",
                          "1.5.1",
                          "1e+",
                          "1E5m"}) {
    EXPECT_FALSE(kube::parse_quantity(bad)) << bad;
  }
  for (const std::int64_t value : {std::int64_t{0}, std::int64_t{1}, std::int64_t{1000}, std::int64_t{1} << 40U,
                                   std::int64_t{154618822656}, std::numeric_limits<std::int64_t>::max()}) {
    EXPECT_EQ(kube::parse_quantity(kube::quantity_text(value)), value);
  }
  EXPECT_EQ(kube::quantity_text(std::int64_t{96} << 30U), "96Gi");
}

TEST(SliceText, FractionsOfQuantitiesAreThousandthsRoundedUp) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const std::map<std::string, std::int64_t> known = {
      {"0", 0},         {"8", 8000},      {"1.5", 1500},      {".5", 500},    {"2.", 2000},
      {"500m", 500},    {"0.5m", 1},      {"10n", 1},         {"1500u", 2},   {"1.0005", 1001},
      {"1e3", 1000000}, {"1Ki", 1024000}, {"1.5Ki", 1536000}, {"8E", kMost},  {"9223372036854775808", kMost},
      {"0.1", 100},     {"+1", 1000},     {"-1", -1000},      {"-0.5", -500}, {"-1n", 0},
      {"1e-999", 1},    {"1e999", kMost}, {"-1e999", -kMost}, {"0e9", 0}};
  for (const auto& [text, value] : known) EXPECT_EQ(kube::parse_thousandths(text), value) << text;
  for (const char* bad : {"", ".", "x", "-", "1.5.", "1..5", "1.x", "1kk", "m", "1 ", "+-1"}) {
    EXPECT_FALSE(kube::parse_thousandths(bad)) << bad;
  }
}

}  // namespace
}  // namespace neuron::plugin::dra
