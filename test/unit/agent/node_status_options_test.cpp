#include "agent/status/node_object.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "test/unit/agent/parsed_options.h"

namespace neuron::agent {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;
using testing::StartsWith;

Parsed parse(std::vector<std::string> words) {
  Parsed parsed = parse_options(std::move(words));
  if (!parsed.error.empty()) return parsed;
  const auto settled = parsed.options.mode == Mode::dra ? settle_dra(parsed.options) : settle_offer(parsed.options, "");
  if (!settled) parsed.error = settled.error().message;
  return parsed;
}

TEST(NodeStatusOptions, OffByDefaultAndThenNoWordOfTheApiServer) {
  const Parsed parsed = parse({});
  EXPECT_FALSE(parsed.options.node_status.enabled);
  EXPECT_THAT(describe(parsed.options), IsSupersetOf({"node-status=off", "unhealthy-devices-for-node=half"}));
  EXPECT_THAT(describe(parsed.options), Not(Contains(StartsWith("api-"))));
}

TEST(NodeStatusOptions, EachHasAFlagInBothModes) {
  for (const char* mode : {"device-plugin", "dra"}) {
    const Parsed parsed = parse({"--mode", mode, "--node-name", "n1", "--node-status", "on",
                                 "--accelerated-hardware-ready", "--unhealthy-devices-for-node", "3", "--api-server",
                                 "https://10.0.0.1:6443", "--api-token-file", "/t", "--api-ca-file", "/c"});
    EXPECT_EQ(parsed.error, "");
    EXPECT_EQ(parsed.options.node_status.report.unhealthy_devices, 3);
    EXPECT_THAT(describe(parsed.options),
                IsSupersetOf({"node-status=on", "accelerated-hardware-ready=true", "unhealthy-devices-for-node=3",
                              "api-server=https://10.0.0.1:6443", "api-token-file=/t", "api-ca-file=/c"}));
  }
}

TEST(PlacementOptions, NeedTheNodesNameAndSayWhichServer) {
  EXPECT_THAT(describe(parse({}).options), Contains("honor-placement=off"));
  EXPECT_THAT(parse({"--honor-placement", "on"}).error, HasSubstr("--honor-placement on needs --node-name"));
  const Parsed parsed = parse({"--honor-placement", "on", "--node-name", "n1", "--api-server", "https://a"});
  EXPECT_EQ(parsed.error, "");
  EXPECT_THAT(describe(parsed.options), IsSupersetOf({"honor-placement=on", "api-server=https://a"}));
  EXPECT_THAT(parse({"--mode", "dra", "--honor-placement", "on", "--node-name", "n1"}).options.doubts,
              Contains(HasSubstr("--honor-placement has no effect")));
}

TEST(NodeStatusOptions, AStartupTaintNeedsTheWriter) {
  const Parsed parsed =
      parse({"--node-name", "n1", "--node-status", "on", "--startup-taint", "neuron-agent/b:NoSchedule"});
  EXPECT_EQ(parsed.error, "");
  EXPECT_THAT(describe(parsed.options), Contains("startup-taint=neuron-agent/b:NoSchedule"));
  EXPECT_THAT(describe(parse({}).options), Contains("startup-taint=off"));
  EXPECT_THAT(parse({"--startup-taint", "neuron-agent/b"}).error, HasSubstr("needs --node-status on"));
  EXPECT_THAT(parse({"--mode", "dra", "--node-name", "n1", "--startup-taint", "neuron-agent/b"}).error,
              HasSubstr("needs"));
  EXPECT_THAT(parse({"--startup-taint", "neuron-agent/b:Never"}).error, HasSubstr("effects are"));
}

TEST(NodeStatusOptions, EachHasAVariable) {
  const std::vector<std::pair<const char*, const char*>> variables = {
      {"NODE_NAME", "n1"},
      {"NEURON_AGENT_NODE_STATUS", "on"},
      {"NEURON_AGENT_ACCELERATED_HARDWARE_READY", "true"},
      {"NEURON_AGENT_UNHEALTHY_DEVICES_FOR_NODE", "2"},
      {"NEURON_AGENT_API_SERVER", "https://a"}};
  for (const auto& [name, value] : variables) ::setenv(name, value, 1);
  const Parsed parsed = parse({});
  for (const auto& [name, value] : variables) ::unsetenv(name);
  EXPECT_EQ(parsed.error, "");
  EXPECT_THAT(describe(parsed.options), IsSupersetOf({"node-status=on", "accelerated-hardware-ready=true",
                                                      "unhealthy-devices-for-node=2", "api-server=https://a"}));
}

TEST(NodeStatusOptions, WhatCannotBeMeantIsNamed) {
  EXPECT_THAT(parse({"--node-status", "on"}).error, HasSubstr("NODE_NAME"));
  EXPECT_THAT(parse({"--node-status", "on", "--node-name", "No_de"}).error, HasSubstr("not a node name"));
  EXPECT_THAT(parse({"--node-status", "on", "--node-name", "n1", "--api-server", "http://a"}).error,
              HasSubstr("--api-server"));
  EXPECT_THAT(parse({"--node-status", "yes"}).error, HasSubstr("--node-status"));
  EXPECT_THAT(parse({"--unhealthy-devices-for-node", "0"}).error, HasSubstr("--unhealthy-devices-for-node"));
  EXPECT_THAT(parse({"--unhealthy-devices-for-node", "65"}).error, HasSubstr("--unhealthy-devices-for-node"));
  EXPECT_EQ(parse({"--api-server", "http://a"}).error, "") << "nobody asks it";
}

TEST(Withdraw, SaysWhatIsMissing) {
  EXPECT_EQ(status::withdraw(kube::ApiFlags{}, "No_de").error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(status::withdraw(kube::ApiFlags{}, "n1").error().code, ErrorCode::failed_precondition);
  const auto nobody = status::withdraw(kube::ApiFlags{"https://127.0.0.1:1", "/nowhere/token", "/nowhere/ca"}, "n1");
  EXPECT_THAT(nobody.error().message, HasSubstr("/nowhere/"));
}

}  // namespace
}  // namespace neuron::agent
