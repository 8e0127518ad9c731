// The real program: `neuron-agent check`, its output, exit status and environment.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "test/fakes/fake_host.h"
#include "test/fakes/paths.h"
#include "test/integration/shell.h"

namespace neuron::fakes {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// Through the shell, as people call it. `before` stands in front of the program: variables.
Ended run_check(const std::string& arguments, const std::string& before = "") {
  return run_line("env -u NEURON_AGENT_ROOT " + before + " " + bin_dir() + "/neuron-agent check " + arguments);
}

TEST(Check, SoundNodeIsZero) {
  FakeHost host("trn1.32xlarge");
  host.write();
  const Ended ended = run_check("--root " + host.path() + " 2>&1");
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_THAT(ended.output,
              EndsWith("\nnothing wrong: trn1.32xlarge, 16 devices, 8 EFA interfaces, driver 2.30.2.0\n"));
}

TEST(Check, FindingsAreOne) {
  FakeHost host("trn1.32xlarge");
  host.missing({3}).write();
  const Ended ended = run_check("--root " + host.path() + " 2>&1");
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.output,
              StartsWith("error: 15 of 16 Neuron devices of a trn1.32xlarge are there; missing: neuron3"));
  EXPECT_THAT(ended.output, EndsWith("\n1 error, 0 warnings\n"));
}

TEST(Check, CannotTellIsTwo) {
  const Ended text = run_check("--root /no/such/root");
  EXPECT_EQ(text.status, 2);
  EXPECT_THAT(text.output, IsEmpty());
  EXPECT_THAT(run_check("--root /no/such/root 2>&1").output, StartsWith("neuron-agent: "));
  const Ended json = run_check("--root /no/such/root --output json 2>/dev/null");
  EXPECT_EQ(json.status, 2);
  EXPECT_EQ(nlohmann::json::parse(json.output).at("verdict"), "cannot_tell");
}

TEST(Check, WrongUsageIsTwo) {
  EXPECT_EQ(run_check("--output yaml 2>/dev/null").status, 2);
  EXPECT_EQ(run_check("--timeout never 2>/dev/null").status, 2);
  EXPECT_EQ(run_check("--no-such-flag 2>/dev/null").status, 2);
}

TEST(Check, FlagOverEnvironmentOverDefault) {
  FakeHost host("trn1.2xlarge");
  host.write();
  const std::string variables = "NEURON_AGENT_ROOT=" + host.path() + " NEURON_AGENT_OUTPUT=json";
  const Ended json = run_check("", variables);
  EXPECT_EQ(json.status, 0);
  EXPECT_EQ(nlohmann::json::parse(json.output).at("node").at("instance_type"), "trn1.2xlarge");
  EXPECT_THAT(run_check("--output text", variables).output, HasSubstr("nothing wrong"));
  EXPECT_EQ(run_check("--root /no/such/root 2>/dev/null", variables).status, 2);
  EXPECT_EQ(run_check("2>/dev/null", variables + " NEURON_AGENT_TIMEOUT=soon").status, 2);
}

TEST(Check, FullDiskIsNotSilence) {
  FakeHost host("trn1.2xlarge");
  host.write();
  const Ended ended = run_check("--root " + host.path() + " 2>&1 >/dev/full");
  EXPECT_EQ(ended.status, 2);
  EXPECT_EQ(ended.output, "neuron-agent: cannot write to standard output\n");
}

// The program with the host as its "/sys" and "/dev", in a mount namespace of its own: a live root, on which libfabric
// is asked. Nothing when that is not allowed here.
std::optional<Ended> run_live_check(const FakeHost& host) {
  if (std::system("unshare -m true 2>/dev/null") != 0) return std::nullopt;
  const std::string nodes = host.path() + "/live-dev";
  const std::string inside = "mount --bind " + host.path() + "/sys /sys && mkdir " + nodes +
                             " && mount -t tmpfs none " + nodes + " && cp -a " + host.path() + "/dev/. " + nodes +
                             " && rm -f " + nodes + "/kmsg && mknod " + nodes + "/null c 1 3 && mknod " + nodes +
                             "/kmsg c 1 3 && mount --bind " + nodes + " /dev && exec " + bin_dir() +
                             "/neuron-agent check";
  return run_line("unshare -m sh -c '" + inside + "' 2>&1");
}

TEST(Check, LibfabricIsAskedOnALiveNode) {
  FakeHost host("trn1.32xlarge");
  host.write();
  const auto ended = run_live_check(host);
  if (!ended) GTEST_SKIP() << "no mount namespaces here";
  EXPECT_EQ(ended->status, 1);
  EXPECT_THAT(ended->output, HasSubstr("libfabric does not see all 8 EFA interfaces"));
  EXPECT_THAT(ended->output, HasSubstr(", provider efa: fi_getinfo: -61 (No data available)"));
}

TEST(Check, ForeignRdmaDeviceIsNamedOnALiveNode) {
  FakeHost host("p6-b200.48xlarge");
  host.write();
  const auto ended = run_live_check(host);
  if (!ended) GTEST_SKIP() << "no mount namespaces here";
  EXPECT_THAT(ended->output, HasSubstr("ibp115s0f0, ibp116s0f0 are not EFA"));
}

TEST(Check, ClaimsComeFromAFileOrStandardInput) {
  const std::string table = source_dir() + "/test/fixtures/claims/configs.json";
  const std::string wrong =
      R"({"kind": "DeviceClass", "spec": {"config": [{"opaque": {"driver": "neuron.aws.com", "parameters": {}}}]}})";
  const Ended refused = run_line("echo '" + wrong + "' | " + bin_dir() + "/neuron-agent check --claim - 2>&1");
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.output, HasSubstr("apiVersion is null"));
  const std::string right = R"({"kind": "ResourceClaim", "spec": {"devices": {}}})";
  for (const char* name : {"-", "/dev/stdin"}) {
    EXPECT_EQ(run_line("echo '" + right + "' | " + bin_dir() + "/neuron-agent check --claim " + name).status, 0)
        << name;
  }
  EXPECT_EQ(run_check("--claim " + table + " 2>/dev/null").status, 2);
  EXPECT_EQ(run_check("--claim 2>/dev/null").status, 2);
}

// In a locale with decimal commas and in an empty environment.
TEST(Check, SameInEveryEnvironment) {
  FakeHost host("trn2.3xlarge");
  host.write();
  const std::string plain = run_check("--root " + host.path()).output;
  EXPECT_EQ(run_check("--root " + host.path(), "-i LC_ALL=de_DE.UTF-8").output, plain);
}

}  // namespace
}  // namespace neuron::fakes
