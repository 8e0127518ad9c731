#include "tools/neuron-agent/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "test/unit/agent/parsed_options.h"

namespace neuron::agent {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsSupersetOf;

Parsed parse(std::vector<std::string> words) {
  Parsed parsed = parse_options(std::move(words));
  if (!parsed.error.empty()) return parsed;
  if (parsed.options.mode != Mode::dra) return parsed;
  if (const auto settled = settle_dra(parsed.options); !settled) parsed.error = settled.error().message;
  return parsed;
}

Parsed parse_dra(std::vector<std::string> words) {
  words.insert(words.begin(), {"--mode", "dra", "--node-name", "node-1"});
  return parse(std::move(words));
}

TEST(DraOptions, TheDevicePluginIsTheDefaultAndSaysNothingOfClaims) {
  const Parsed parsed = parse({});
  EXPECT_EQ(parsed.options.mode, Mode::device_plugin);
  EXPECT_THAT(describe(parsed.options), Contains("mode=device-plugin"));
  EXPECT_THAT(describe(parsed.options), testing::Not(Contains(testing::StartsWith("dra-"))));
}

TEST(DraOptions, DefaultsAreThoseOfAPod) {
  const Parsed parsed = parse_dra({});
  EXPECT_EQ(parsed.error, "");
  EXPECT_THAT(describe(parsed.options),
              IsSupersetOf({"mode=dra", "dra-claim-status=off", "dra-driver-name=neuron.aws.com", "dra-partitions=none",
                            "dra-pool=node-1", "dra-shares=auto", "dra-taint-effect=NoSchedule", "dra-ultraserver=node",
                            "api-server=in-cluster"}));
}

TEST(DraOptions, EachHasAFlag) {
  const Parsed parsed = parse_dra({"--dra-claim-status",
                                   "on",
                                   "--dra-driver-name",
                                   "neuron.example.org",
                                   "--dra-partitions",
                                   "cores",
                                   "--dra-pool",
                                   "row-1/node-1",
                                   "--dra-shares",
                                   "on",
                                   "--dra-taint-effect",
                                   "none",
                                   "--dra-ultraserver",
                                   "devices",
                                   "--dra-server",
                                   "1.35.2",
                                   "--once",
                                   "--pod-uid",
                                   "0a-1b",
                                   "--api-server",
                                   "https://10.0.0.1:6443",
                                   "--api-token-file",
                                   "/t",
                                   "--api-ca-file",
                                   "/c"});
  EXPECT_EQ(parsed.error, "");
  EXPECT_EQ(parsed.options.dra.pool.taint_effect, "");
  EXPECT_THAT(describe(parsed.options),
              IsSupersetOf({"dra-claim-status=on", "dra-driver-name=neuron.example.org", "dra-partitions=cores",
                            "dra-pool=row-1/node-1", "dra-shares=on", "dra-taint-effect=none",
                            "dra-ultraserver=devices", "dra-server=1.35.2", "pod-uid=0a-1b",
                            "api-server=https://10.0.0.1:6443", "api-token-file=/t", "api-ca-file=/c"}));
}

TEST(DraOptions, EachHasAVariable) {
  const std::vector<std::pair<const char*, const char*>> variables = {{"NEURON_AGENT_MODE", "dra"},
                                                                      {"NODE_NAME", "node-2"},
                                                                      {"POD_UID", "u-1"},
                                                                      {"NEURON_AGENT_DRA_CLAIM_STATUS", "on"},
                                                                      {"NEURON_AGENT_DRA_DRIVER_NAME", "a.b"},
                                                                      {"NEURON_AGENT_DRA_PARTITIONS", "groups"},
                                                                      {"NEURON_AGENT_DRA_POOL", "p"},
                                                                      {"NEURON_AGENT_DRA_SHARES", "on"},
                                                                      {"NEURON_AGENT_DRA_TAINT_EFFECT", "NoExecute"},
                                                                      {"NEURON_AGENT_DRA_ULTRASERVER", "devices"},
                                                                      {"NEURON_AGENT_DRA_SERVER", "1.36.3"},
                                                                      {"NEURON_AGENT_API_SERVER", "https://a"},
                                                                      {"NEURON_AGENT_API_TOKEN_FILE", "/t"},
                                                                      {"NEURON_AGENT_API_CA_FILE", "/c"}};
  for (const auto& [name, value] : variables) ::setenv(name, value, 1);
  const Parsed parsed = parse({});
  for (const auto& [name, value] : variables) ::unsetenv(name);
  EXPECT_EQ(parsed.error, "");
  EXPECT_THAT(describe(parsed.options),
              IsSupersetOf({"mode=dra", "node-name=node-2", "pod-uid=u-1", "dra-claim-status=on", "dra-driver-name=a.b",
                            "dra-partitions=groups", "dra-pool=p", "dra-shares=on", "dra-taint-effect=NoExecute",
                            "dra-ultraserver=devices", "dra-server=1.36.3", "api-server=https://a", "api-token-file=/t",
                            "api-ca-file=/c"}));
}

TEST(DraOptions, ABadValueIsNamedWithItsFlag) {
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"--dra-driver-name", "Neuron"}, {"--dra-driver-name", std::string(64, 'a')},
      {"--dra-driver-name", "a..b"},   {"--dra-partitions", "most"},
      {"--dra-pool", "a//b"},          {"--dra-taint-effect", "PreferNoSchedule"},
      {"--dra-claim-status", "yes"},   {"--dra-shares", "yes"},
      {"--dra-ultraserver", "both"},   {"--dra-server", "1.33.0"},
      {"--dra-server", "newest"},      {"--pod-uid", "../x"},
      {"--api-server", "http://a"}};
  for (const auto& [flag, value] : bad) {
    EXPECT_THAT(parse_dra({flag, value}).error, HasSubstr(flag)) << value;
  }
  EXPECT_THAT(parse({"--mode", "both"}).error, HasSubstr("--mode"));
}

TEST(DraOptions, TheNodesNameIsNeededAndChecked) {
  EXPECT_THAT(parse({"--mode", "dra"}).error, HasSubstr("NODE_NAME"));
  EXPECT_THAT(parse({"--mode", "dra", "--node-name", "No_de"}).error, HasSubstr("not a node name"));
  EXPECT_EQ(parse({"--node-name", "No_de"}).error, "") << "which device-plugin mode only compares";
}

TEST(DraOptions, WhatSaysNothingInThisModeIsDoubted) {
  EXPECT_THAT(parse_dra({}).options.doubts, testing::IsEmpty());
  EXPECT_THAT(parse_dra({"--resources", "neuron"}).options.doubts, Contains(HasSubstr("have no effect in DRA mode")));
  EXPECT_THAT(parse_dra({"--take-over"}).options.doubts, Contains(HasSubstr("--take-over has no effect in DRA mode")));
  const Parsed cores = parse_dra({"--core-devices", "0-3"});
  EXPECT_THAT(cores.options.doubts, testing::IsEmpty());
  EXPECT_TRUE(cores.options.dra.pool.core_devices && cores.options.dra.pool.core_devices->contains(3));
  EXPECT_THAT(parse_dra({"--core-devices", "0-3", "--dra-partitions", "cores"}).options.doubts,
              Contains(HasSubstr("no effect beside --dra-partitions")));
  EXPECT_THAT(parse_dra({"--dra-shares", "on", "--dra-partitions", "cores"}).options.doubts,
              Contains(HasSubstr("--dra-shares=on has no effect beside --dra-partitions")));
  EXPECT_THAT(parse_dra({"--dra-shares", "auto", "--dra-partitions", "cores"}).options.doubts, testing::IsEmpty());
  EXPECT_THAT(parse_dra({"--dra-server", "1.36.3"}).options.doubts, Contains(HasSubstr("only with --once")));
  EXPECT_THAT(parse_dra({"--dra-server", "1.36.3", "--once"}).options.doubts, testing::IsEmpty());
}

}  // namespace
}  // namespace neuron::agent
