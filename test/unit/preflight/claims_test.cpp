// What claims need: when it is looked at, and what tells one case from the next.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/preflight/preflight_host.h"

namespace neuron::test {
namespace {

using preflight::CdiFacts;
using preflight::Severity;
using SocketState = preflight::ClaimFacts::SocketState;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

CheckedHost with_claims() {
  CheckedHost host = sound_host("trn1.32xlarge");
  add_claims(host);
  return host;
}

TEST(PreflightClaims, AreLookedAtOnlyWhereTheyAreAskedForOrWereServed) {
  CheckedHost host = with_claims();
  EXPECT_THAT(codes_of(check(host)), IsEmpty());
  host.facts.claims.registry = preflight::PathState::absent;
  host.facts.claims.kubelet_version = "1.33.0";
  host.facts.claims.asked = false;
  EXPECT_THAT(codes_of(check(host)), ElementsAre("kubelet_too_old_for_claims", "plugins_registry_missing"));
  host.facts.claims.found = false;
  EXPECT_THAT(codes_of(check(host)), IsEmpty());
}

TEST(PreflightClaims, CdiThatIsOffCountsOnceAndByWhatIsKnown) {
  CheckedHost host = with_claims();
  host.facts.cdi = {CdiFacts::State::off, {"etc/containerd/config.toml", "version = 2"}, false};
  EXPECT_THAT(codes_of(check(host)), ElementsAre("cdi_off_for_claims"));
  EXPECT_EQ(finding_of(host, "cdi_off_for_claims").severity, Severity::warning) << "containerd 2 reads that format too";
  host.facts.cdi.state = CdiFacts::State::unknown;
  EXPECT_THAT(codes_of(check(host)), ElementsAre("not_checked"));
  host.facts.cdi.state = CdiFacts::State::off;
  host.facts.claims.asked = host.facts.claims.found = false;
  EXPECT_THAT(codes_of(check(host)), ElementsAre("cdi_off")) << "which device plugins do without";
}

TEST(PreflightClaims, VersionsOfTheKubelet) {
  CheckedHost host = with_claims();
  const auto codes = [&](const std::string& version) {
    host.facts.claims.kubelet_version = version;
    return codes_of(check(host));
  };
  EXPECT_THAT(codes("1.34.0"), ElementsAre("kubelet_too_old_for_claims"));
  EXPECT_THAT(codes("1.9.11-00"), ElementsAre("kubelet_too_old_for_claims"));
  EXPECT_THAT(codes("v1.34.2+k3s1"), ElementsAre("kubelet_without_extended_claims"));
  EXPECT_THAT(codes("1.36.0-2.1"), IsEmpty());
  EXPECT_THAT(codes("2.0.0"), IsEmpty());
  for (const char* odd : {"", "one", "1.36", "1..3", "1.36.x", "99999.1.1"}) {
    EXPECT_THAT(codes(odd), ElementsAre("not_checked")) << odd;
  }
}

TEST(PreflightClaims, AConfigurationThatNobodyCanReadIsSaid) {
  CheckedHost host = with_claims();
  host.facts.claims.config_read = false;
  EXPECT_THAT(codes_of(check(host)), ElementsAre("not_checked"));
}

TEST(PreflightClaims, BothModesNameEveryListener) {
  CheckedHost host = with_claims();
  host.facts.claims.device_plugins = {"/k/device-plugins/neuron-devplugin.sock"};
  auto finding = finding_of(host, "both_modes");
  EXPECT_THAT(finding.sentence, HasSubstr("two pods can get the same ones"));
  ASSERT_EQ(finding.evidence.size(), 2U);
  EXPECT_EQ(finding.evidence[0].path, "/k/device-plugins/neuron-devplugin.sock");
  host.facts.claims.prepared = host.facts.claims.described = {};
  host.facts.claims.driver_sockets.clear();
  EXPECT_THAT(finding_of(host, "both_modes").sentence, HasSubstr("which claims should serve"));
  host.facts.claims.asked = false;
  EXPECT_THAT(codes_of(check(host)), IsEmpty()) << "a node that has changed over, with nothing left";
}

// Said is what counts: the default is no wish, so that a node for claims is sound without the option.
TEST(PreflightClaims, AnAgentOfTheOtherModeIsNamedToWhoeverMeansThisOne) {
  CheckedHost host = with_claims();
  preflight::ClaimFacts& claims = host.facts.claims;
  claims.lock = preflight::ClaimFacts::Lock{true, "4242"};
  EXPECT_THAT(codes_of(check(host)), IsEmpty()) << "the mode that is asked for";
  claims.asked = false;
  EXPECT_THAT(codes_of(check(host)), IsEmpty());
  claims.plugin_asked = true;
  auto finding = finding_of(host, "other_mode");
  EXPECT_THAT(finding.sentence, HasSubstr("another agent, in DRA mode, holds this node"));
  EXPECT_THAT(finding.evidence.at(0).value, HasSubstr("locked by pid 4242"));
  claims.lock.reset();  // it is of a pod that cannot be seen from here, but it listens
  EXPECT_EQ(finding_of(host, "other_mode").evidence.at(0).value, "the driver listens");
  claims.found = false;
  EXPECT_THAT(codes_of(check(host)), ElementsAre("other_mode")) << "whatever the driver is called";

  host = with_claims();
  claims.driver_sockets.clear();
  claims.prepared = claims.described = {};
  claims.lock = preflight::ClaimFacts::Lock{false, "4242"};
  claims.device_plugins = {"/k/device-plugins/neuron-agent-neuron-1-0.sock"};
  EXPECT_THAT(codes_of(check(host)), ElementsAre("other_mode")) << "which says it all";
  EXPECT_EQ(finding_of(host, "other_mode").evidence.size(), 2U);
}

TEST(PreflightClaims, ANodeThatLeftClaimsBehindSaysSo) {
  CheckedHost host = with_claims();
  host.facts.claims.asked = false;
  host.facts.claims.driver_sockets[0].state = SocketState::dead;
  host.facts.claims.device_plugins = {"/k/device-plugins/neuron-agent-neuron-1-0.sock"};
  EXPECT_THAT(codes_of(check(host)), ElementsAre("driver_gone", "dead_driver_sockets"));
  EXPECT_THAT(finding_of(host, "driver_gone").evidence[0].value, HasSubstr("1111-aa, 2222-bb"));
  host.facts.claims.driver_sockets[0].state = SocketState::unknown;
  EXPECT_THAT(codes_of(check(host)), IsEmpty()) << "nobody can tell";
}

TEST(PreflightClaims, CdiFilesAreStaleByTheRecordAlone) {
  CheckedHost host = with_claims();
  host.facts.claims.described = {"1111-aa"};
  EXPECT_THAT(codes_of(check(host)), IsEmpty()) << "the driver writes it again";
  host.facts.claims.described = {"1111-aa", "3333-cc"};
  const auto finding = finding_of(host, "stale_cdi_files");
  EXPECT_EQ(finding.evidence[0].path, "var/run/cdi/k8s.neuron.aws.com-claim_3333-cc.json");
  host.facts.claims.claims_file_problem = "no JSON object";
  host.facts.claims.prepared.clear();
  EXPECT_THAT(codes_of(check(host)), ElementsAre("claims_file_damaged")) << "what it would say is not known";
}

TEST(PreflightClaims, WithoutTheKubeletsDirectoryTheRestIsLookedAt) {
  CheckedHost host = with_claims();
  host.facts.kubelet.not_looked = "not examined: the root is not this machine, and --kubelet-dir is not given";
  host.facts.claims.registry = preflight::PathState::unknown;
  host.facts.claims.cdi_directory = preflight::PathState::absent;
  EXPECT_THAT(codes_of(check(host)), ElementsAre("cdi_dir_missing", "not_checked"));
}

}  // namespace
}  // namespace neuron::test
