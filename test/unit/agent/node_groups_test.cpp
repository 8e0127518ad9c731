#include "tools/neuron-agent/node_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tools/neuron-agent/options.h"

namespace neuron::agent {
namespace {

using testing::HasSubstr;

constexpr const char* kThree = R"({"groups": [
  {"name": "notebooks", "node-names": ["ip-10-1-*", "gpu?"], "resources": "neuroncore,efa"},
  {"name": "inference", "instance-types": ["inf2.*", "inf1.6xlarge"], "core-devices": "0-3,8"},
  {"name": "rest", "core-devices": "off", "resources": "neuron"}]})";

std::string group_of(const char* text, const NodeIdentity& node) {
  const auto groups = parse_node_groups(text);
  if (!groups) return groups.error().message;
  const auto found = find_group(*groups, node);
  return !found ? found.error().message : *found == nullptr ? "none" : (*found)->name;
}

TEST(NodeGroups, TheFirstThatMatchesCounts) {
  EXPECT_EQ(group_of(kThree, {"inf2.48xlarge", "ip-10-1-7"}), "notebooks");
  EXPECT_EQ(group_of(kThree, {"inf2.48xlarge", "gpu7"}), "notebooks");
  EXPECT_EQ(group_of(kThree, {"inf2.48xlarge", "gpu77"}), "inference");
  EXPECT_EQ(group_of(kThree, {"inf1.6xlarge", "x"}), "inference");
  EXPECT_EQ(group_of(kThree, {"trn1.32xlarge", "x"}), "rest");
  EXPECT_EQ(group_of(kThree, {"", "x"}), "rest") << "no pattern matches what is not known";
  EXPECT_EQ(group_of(R"({"groups": [{"name": "a", "instance-types": ["trn*"], "node-names": ["b*"]}]})", {"trn1", "c"}),
            "none")
      << "both have to match";
}

TEST(NodeGroups, AGroupByNodeNameNeedsTheName) {
  EXPECT_EQ(group_of(kThree, {"inf2.48xlarge", ""}),
            "group \"notebooks\" uses node-names, but the name of this node is unknown; set NODE_NAME from the pod's "
            "spec.nodeName, or --node-name");
}

TEST(NodeGroups, ValuesAreReadAsTheOptionsAre) {
  const auto groups = *parse_node_groups(kThree);
  EXPECT_EQ(groups[0].offer.resources, (std::vector{model::Resource::neuroncore, model::Resource::efa}));
  EXPECT_FALSE(groups[0].offer.core_devices_said);
  EXPECT_EQ(groups[1].offer.core_devices, (core::CoreDevices{false, {0, 1, 2, 3, 8}}));
  EXPECT_FALSE(groups[1].offer.resources);
  EXPECT_TRUE(groups[2].offer.core_devices_said);
  EXPECT_FALSE(groups[2].offer.core_devices);
}

TEST(NodeGroups, PatternsAreStarsAndQuestionMarks) {
  for (const auto& [text, pattern] : {std::pair("abc", "abc"),
                                      {"abc", "a*"},
                                      {"abc", "*c"},
                                      {"abc", "a?c"},
                                      {"", "*"},
                                      {"aXbXc", "a*b*c"},
                                      {"aab", "*ab"},
                                      {"abab", "*ab"},
                                      {"a*c", "a*c"}}) {
    EXPECT_TRUE(matches_pattern(text, pattern)) << text << " " << pattern;
  }
  for (const auto& [text, pattern] : {std::pair("abc", "ab"),
                                      {"abc", "bc"},
                                      {"abc", "a?"},
                                      {"", "?"},
                                      {"abc", ""},
                                      {"aXbXcd", "a*b*c"},
                                      {"ABC", "abc"},
                                      {"inf2x48", "inf2.*"}}) {
    EXPECT_FALSE(matches_pattern(text, pattern)) << text << " " << pattern;
  }
  EXPECT_FALSE(matches_pattern(std::string(253, 'a'), std::string(120, '*') + "b")) << "in no time";
}

TEST(NodeGroups, WhatIsWrongIsNamedWithItsPlace) {
  const auto error = [](const std::string& text) {
    const auto groups = parse_node_groups(text);
    return groups ? "accepted" : groups.error().message;
  };
  EXPECT_EQ(error("{"), "the text: is not valid JSON; use a JSON validator");
  EXPECT_EQ(error("[]"), "the document: is not an object with the keys groups");
  EXPECT_EQ(error("{}"), "groups: is not a list of 1 to 256 groups");
  EXPECT_EQ(error(R"({"groups": []})"), "groups: is not a list of 1 to 256 groups");
  EXPECT_EQ(error(R"({"groups": [{"resources": "efa"}]})"),
            "groups[0]: has no \"name\"; add one, the log names the group that applies");
  EXPECT_EQ(error(R"({"groups": [{"name": "a", "instance-type": ["b"]}]})"),
            "groups[0]: \"instance-type\" is not a key; valid keys are core-devices, instance-types, name, node-names, "
            "resources");
  EXPECT_EQ(error(R"({"groups": [{"name": "a", "name": "b"}]})"), "\"name\": appears twice in one object; keep one");
  EXPECT_EQ(error(R"({"groups": [{"name": "a", "instance-types": "inf2.*"}]})"),
            "groups[0].instance-types: is not a list of 1 to 256 strings; omit the key to match every node");
  EXPECT_EQ(error(R"({"groups": [{"name": "a", "node-names": ["b", 3]}]})"),
            "groups[0].node-names[1]: is not a string; write it in double quotes");
  EXPECT_EQ(error(R"({"groups": [{"name": "a", "node-names": ["b"], "core-devices": "0..3"}]})"),
            "groups[0].core-devices: \"0..3\" is neither a list of device indices from 0 to 63 such as 0-3,8 nor one "
            "of all, none, off");
  EXPECT_EQ(error(R"({"groups": [{"name": "a", "node-names": ["b"]}, {"name": "c", "resources": "cores"}]})"),
            "groups[1].resources: \"cores\" is not a resource; valid are neuron, neuroncore, neurondevice, efa, or all "
            "alone");
  EXPECT_EQ(
      error(R"({"groups": [{"name": "a"}, {"name": "b"}]})"),
      "groups[1]: is never reached: \"a\" before it has no patterns and matches every node; move that one to the end");
  EXPECT_EQ(error(R"({"groups": [{"name": "a", "node-names": ["b"]}, {"name": "a", "node-names": ["c"]}]})"),
            "groups[1]: an earlier group is named \"a\" too; use another name, the log names the group that applies");
  EXPECT_THAT(error("{\"groups\": [{\"name\": \"" + std::string(254, 'a') + "\"}]}"),
              HasSubstr("longer than 253 bytes"));
  EXPECT_THAT(error(R"({"groups": [{"name": "a\u0007"}]})"), HasSubstr("non-printable"));
  EXPECT_THAT(error(std::string(100000, '[')), HasSubstr("is not valid JSON"));
}

struct GroupFile : testing::Test {
  std::filesystem::path path = std::filesystem::temp_directory_path() / ("groups-" + std::to_string(::getpid()));
  ~GroupFile() override { std::filesystem::remove_all(path); }
  void write(const std::string& text) { std::ofstream(path) << text; }
  Result<void> apply(Options& options) {
    options.node_groups = path.string();
    options.node_name = "ip-10-2-3";
    return settle_offer(options, "inf2.48xlarge");
  }
};

TEST_F(GroupFile, CompletesWhatTheCommandLineLeavesOpen) {
  write(kThree);
  Options options;
  ASSERT_TRUE(apply(options));
  EXPECT_EQ(options.node_group, "inference");
  EXPECT_THAT(describe(options), testing::IsSupersetOf({"core-devices=0-3,8", "resources=neuroncore,neuron,efa"}));
  Options flagged;
  flagged.offer.core_devices_said = true;  // --core-devices off
  flagged.offer.resources = std::vector{model::Resource::efa};
  ASSERT_TRUE(apply(flagged));
  EXPECT_THAT(describe(flagged), testing::IsSupersetOf({"core-devices=off", "resources=efa"}));
}

TEST_F(GroupFile, AGroupThatOffersNothingOnAnyNodeIsRefused) {
  write(R"({"groups": [{"name": "a", "instance-types": ["inf2.*"], "core-devices": "all"}]})");
  Options options;
  options.offer.resources = std::vector{model::Resource::neuron};
  const auto refused = apply(options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(refused.error().message, HasSubstr("(group \"a\" of " + path.string() + ")"));
}

TEST_F(GroupFile, AnErrorNamesTheFile) {
  Options options;
  EXPECT_EQ(apply(options).error().message, "--node-groups: " + path.string() +
                                                ": No such file or directory; give a readable file, such as one from a "
                                                "mounted config map, or omit the option");
  write("nonsense");
  EXPECT_EQ(apply(options).error().message,
            "--node-groups: " + path.string() + ": the text: is not valid JSON; use a JSON validator");
  write(std::string((256U << 10U) + 1, ' '));
  EXPECT_EQ(apply(options).error().message, "--node-groups: " + path.string() + ": is larger than 256 KiB");
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  EXPECT_THAT(apply(options).error().message, HasSubstr("Is a directory; give a readable file"));
}

TEST_F(GroupFile, WhatMatchesNothingIsTold) {
  write(R"({"groups": [{"name": "a", "instance-types": ["TRN*", "trn?.*"], "node-names": ["ip 1"]}]})");
  Options options;
  ASSERT_TRUE(apply(options));
  EXPECT_EQ(options.node_group, "");
  EXPECT_THAT(
      options.doubts,
      testing::ElementsAre(
          path.string() + ": group \"a\": the pattern \"TRN*\" of instance-types matches no node: node names have "
                          "lower case letters, digits, '-' and '.' only",
          HasSubstr("the pattern \"ip 1\" of node-names"),
          path.string() + ": no group matches this node, of instance type \"inf2.48xlarge\" and name \"ip-10-2-3\": "
                          "the other options apply; a last group without patterns matches all nodes"));
  write(kThree);
  Options matched;
  ASSERT_TRUE(apply(matched));
  EXPECT_THAT(matched.doubts, testing::IsEmpty());
}

TEST(Offer, FlagsAndEnvironment) {
  Options options;
  EXPECT_EQ(options.offer_policy().resources.size(), 3U);
  options.neurondevice = true;
  EXPECT_TRUE(options.offer_policy().serves(model::Resource::neurondevice));
  options.offer.resources = std::vector{model::Resource::neuroncore};
  EXPECT_TRUE(options.offer_policy().serves(model::Resource::neurondevice)) << "--neurondevice adds to any list";
}

}  // namespace
}  // namespace neuron::agent
