#include "tools/neuron-agent/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "test/unit/agent/parsed_options.h"

namespace neuron::agent {
namespace {

TEST(Options, DefaultsAreThoseOfANode) {
  const Options options = parse_options({}).options;
  EXPECT_EQ(options.root, "/");
  EXPECT_EQ(options.device_plugins_dir(), "/var/lib/kubelet/device-plugins");
  EXPECT_EQ(options.pod_resources_socket(), "/var/lib/kubelet/pod-resources/kubelet.sock");
  EXPECT_EQ(options.effective_host_path_prefix(), "");
  EXPECT_EQ(options.scan_interval, std::chrono::seconds(5));
  EXPECT_FALSE(options.neurondevice);
}

TEST(Options, DefaultsOfTheHelpAreThoseThatApply) {
  CLI::App app;
  Options options;
  add_options(app, Command::run, options);
  std::vector<std::string> words;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_default_str().empty()) continue;
    words.push_back(option->get_name());
    words.push_back(option->get_default_str());
  }
  EXPECT_GT(words.size(), 20U);
  Options said = parse_options(words).options;
  options.mode = said.mode = Mode::dra;  // which has most of them
  EXPECT_EQ(describe(said), describe(options));
}

TEST(Options, TheHostPathPrefixFollowsTheRootAndIsAbsolute) {
  EXPECT_EQ(parse_options({"--root", "/sim/trn1"}).options.effective_host_path_prefix(), "/sim/trn1");
  EXPECT_EQ(parse_options({"--root", "host"}).options.effective_host_path_prefix().front(), '/');
  EXPECT_EQ(parse_options({"--root", "/host", "--host-path-prefix", ""}).options.effective_host_path_prefix(), "");
}

TEST(Options, FlagBeatsEnvironmentBeatsDefault) {
  ::setenv("NEURON_AGENT_SCAN_INTERVAL", "7s", 1);
  EXPECT_EQ(parse_options({}).options.scan_interval, std::chrono::seconds(7));
  EXPECT_EQ(parse_options({"--scan-interval", "200ms"}).options.scan_interval, std::chrono::milliseconds(200));
  ::unsetenv("NEURON_AGENT_SCAN_INTERVAL");
}

TEST(Options, TakingOverIsAskedFor) {
  EXPECT_THAT(describe(parse_options({}).options), testing::Contains("take-over=false"));
  EXPECT_THAT(describe(parse_options({"--take-over"}).options), testing::Contains("take-over=true"));
  EXPECT_THAT(parse_options({"--take-over"}).options.doubts, testing::IsEmpty());
}

TEST(Options, TheKernelLogIsAskedForByAWord) {
  EXPECT_EQ(parse_options({}).options.kernel_log, host::KernelLogUse::none);
  EXPECT_EQ(parse_options({"--kernel-log", "on"}).options.kernel_log, host::KernelLogUse::wanted);
  EXPECT_EQ(parse_options({"--kernel-log", "off"}).options.kernel_log, host::KernelLogUse::none);
  EXPECT_THAT(describe(parse_options({"--kernel-log=on"}).options), testing::Contains("kernel-log=on"));
  EXPECT_THAT(describe(parse_options({}).options), testing::Contains("kernel-log=off"));
}

TEST(Options, TheMetricsAddressIsOffUnlessItIsSaid) {
  EXPECT_FALSE(parse_options({}).options.metrics_address);
  EXPECT_THAT(describe(parse_options({}).options), testing::Contains("metrics-address=off"));
  EXPECT_THAT(describe(parse_options({"--metrics-address", "[::1]:8000"}).options),
              testing::Contains("metrics-address=[::1]:8000"));
  EXPECT_THAT(parse_options({"--metrics-address", "localhost:http"}).error, testing::HasSubstr("--metrics-address"));
  ::setenv("NEURON_AGENT_METRICS_ADDRESS", ":9000", 1);
  EXPECT_EQ(parse_options({}).options.metrics_address, (ListenAddress{"", 9000}));
  EXPECT_FALSE(parse_options({"--metrics-address", "off"}).options.metrics_address);
  ::unsetenv("NEURON_AGENT_METRICS_ADDRESS");
}

TEST(Options, TheNodeDocumentIsOnUnlessItIsTurnedOff) {
  EXPECT_THAT(describe(parse_options({}).options), testing::Contains("node-document=on"));
  EXPECT_THAT(describe(parse_options({"--node-document", "off"}).options), testing::Contains("node-document=off"));
  EXPECT_THAT(parse_options({"--node-document", "maybe"}).error, testing::HasSubstr("--node-document"));
}

TEST(Options, TheFilesOfTlsGoTogetherAndWithAnAddress) {
  const auto checked = [](const std::vector<std::string>& words) {
    return check_metrics_options(parse_options(words).options);
  };
  EXPECT_TRUE(checked({}));
  EXPECT_TRUE(checked({"--metrics-address", ":8000", "--metrics-tls-cert", "c", "--metrics-tls-key", "k"}));
  EXPECT_FALSE(checked({"--metrics-address", ":8000", "--metrics-tls-cert", "c"}));
  EXPECT_FALSE(checked({"--metrics-address", ":8000", "--metrics-tls-key", "k"}));
  EXPECT_FALSE(checked({"--metrics-tls-cert", "c", "--metrics-tls-key", "k"}));
  EXPECT_THAT(describe(parse_options({}).options),
              testing::IsSupersetOf({"metrics-tls-cert=off", "metrics-tls-key=off"}));
  ::setenv("NEURON_AGENT_METRICS_TLS_CERT", "/tls/tls.crt", 1);
  ::setenv("NEURON_AGENT_METRICS_TLS_KEY", "/tls/tls.key", 1);
  EXPECT_THAT(describe(parse_options({}).options),
              testing::IsSupersetOf({"metrics-tls-cert=/tls/tls.crt", "metrics-tls-key=/tls/tls.key"}));
  ::unsetenv("NEURON_AGENT_METRICS_TLS_CERT");
  ::unsetenv("NEURON_AGENT_METRICS_TLS_KEY");
}

TEST(Options, WhatIsOfferedHasFlagsAndEnvironment) {
  ::setenv("NEURON_AGENT_RESOURCES", "neuron,efa", 1);
  ::setenv("NEURON_AGENT_CORE_DEVICES", "0-3", 1);
  ::setenv("NODE_NAME", "ip-10-1-2-3", 1);
  EXPECT_THAT(describe(parse_options({}).options),
              testing::IsSupersetOf({"resources=neuron,efa", "core-devices=0-3", "node-name=ip-10-1-2-3"}));
  EXPECT_THAT(describe(parse_options({"--resources", "all", "--core-devices", "off"}).options),
              testing::IsSupersetOf({"resources=neuroncore,neuron,efa", "core-devices=off"}));
  for (const char* name : {"NEURON_AGENT_RESOURCES", "NEURON_AGENT_CORE_DEVICES", "NODE_NAME"}) ::unsetenv(name);
}

TEST(Options, ABadValueIsNamedWithItsFlag) {
  EXPECT_THAT(parse_options({"--scan-interval", "5"}).error, testing::HasSubstr("--scan-interval"));
  EXPECT_THAT(parse_options({"--core-numbering", "both"}).error, testing::HasSubstr("--core-numbering"));
  EXPECT_THAT(parse_options({"--resources", "gpu"}).error,
              testing::AllOf(testing::HasSubstr("--resources"), testing::HasSubstr("neuron, neuroncore")));
  EXPECT_THAT(parse_options({"--core-devices", "4-2"}).error, testing::HasSubstr("--core-devices"));
  EXPECT_THAT(parse_options({"--log-level", "loud"}).error, testing::HasSubstr("--log-level"));
}

TEST(Options, ChoicesThatOfferNothingOnAnyNodeAreRefused) {
  const auto settled = [](const std::vector<std::string>& words) {
    Options options = parse_options(words).options;
    const auto result = settle_offer(options, "");
    return result ? std::string() : result.error().message;
  };
  EXPECT_EQ(settled({"--resources", "neuroncore", "--core-devices", "none"}),
            "--resources neuroncore with --core-devices none offers nothing on any node: no device is offered as "
            "cores; use --core-devices all or off, or add neuron to --resources");
  EXPECT_EQ(settled({"--resources", "neuron", "--neurondevice", "--core-devices", "all"}),
            "--resources neuron,neurondevice with --core-devices all offers nothing on any node: no device is offered "
            "whole; use --core-devices none or off, or add neuroncore to --resources");
  EXPECT_EQ(settled({"--resources", "neuroncore,efa", "--core-devices", "none"}), "") << "the node decides";
  EXPECT_EQ(settled({}), "");
}

TEST(Options, DescribeShowsEffectiveValues) {
  const auto lines = describe(parse_options({"--root", "/sim"}).options);
  EXPECT_THAT(lines, testing::Contains("host-path-prefix=/sim"));
  EXPECT_THAT(lines, testing::Contains("scan-interval=5000ms"));
}

}  // namespace
}  // namespace neuron::agent
