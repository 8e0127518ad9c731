// What claims need of a node and have left on it, read from files.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/host/preflight_facts.h"
#include "test/unit/host/small_host.h"

namespace neuron::host {
namespace {

using preflight::CdiFacts;
using preflight::Evidence;
using preflight::PathState;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kDriver = "neuron.aws.com";

TEST(ClaimFacts, AnEmptyNodeHasNothing) {
  TempTree tree;
  const auto facts = gather_claim_facts(tree.root(), tree.at("kubelet"), kDriver);
  EXPECT_FALSE(facts.found);
  EXPECT_EQ(facts.cdi_directory, PathState::absent);
  EXPECT_EQ(facts.registry, PathState::unknown) << "there is no kubelet's directory";
  EXPECT_THAT(facts.gates_off, IsEmpty());
  EXPECT_FALSE(facts.config_read);
  EXPECT_EQ(facts.kubelet_version, "");
  tree.folder("kubelet");
  EXPECT_EQ(gather_claim_facts(tree.root(), tree.at("kubelet"), kDriver).registry, PathState::absent);
  EXPECT_EQ(gather_claim_facts(tree.root(), "", kDriver).registry, PathState::unknown) << "not examined";
}

TEST(ClaimFacts, ANodeThatServesClaims) {
  TempTree tree;
  tree.folder("kubelet/plugins_registry");
  tree.write("kubelet/plugins/neuron.aws.com/claims.json",
             R"({"checksum":"0","bootID":"b","claims":[{"uid":"u2"},{"uid":"u1","more":1},{},7,{"uid":3}]})");
  tree.write("var/run/cdi/k8s.neuron.aws.com-claim_u3.json", "{}");
  tree.write("var/run/cdi/k8s.neuron.aws.com-claim_u1.json", "{}");
  tree.write("var/run/cdi/k8s.gpu.example.com-claim_u4.json", "{}");
  tree.write("var/run/cdi/aws.amazon.com-neuron.json", "{}");
  tree.write("var/run/cdi/k8s.neuron.aws.com-claim_u5.json.new", "{}");
  tree.write(
      "var/lib/dpkg/status",
      "Package: kube\nStatus: install ok installed\nVersion: 9\n\nPackage: kubelet\nStatus: install ok installed\n"
      "Version: 1.35.1-1.1\n");
  const auto facts = gather_claim_facts(tree.root(), tree.at("kubelet"), kDriver);
  EXPECT_TRUE(facts.found);
  EXPECT_EQ(facts.registry, PathState::present);
  EXPECT_EQ(facts.cdi_directory, PathState::present);
  EXPECT_EQ(facts.claims_file, PathState::present);
  EXPECT_EQ(facts.claims_file_problem, "");
  EXPECT_THAT(facts.prepared, ElementsAre("u1", "u2"));
  EXPECT_THAT(facts.described, ElementsAre("u1", "u3"));
  EXPECT_EQ(facts.kubelet_version, "1.35.1-1.1");
}

TEST(ClaimFacts, ARecordThatIsDamagedIsSaidToBe) {
  TempTree tree;
  tree.write("plugins/neuron.aws.com/claims.json", "{\"claims\":[{\"uid\"");
  auto facts = gather_claim_facts(tree.root(), tree.path(), kDriver);
  EXPECT_EQ(facts.claims_file, PathState::present);
  EXPECT_NE(facts.claims_file_problem, "");
  EXPECT_THAT(facts.prepared, IsEmpty());
  tree.remove("plugins/neuron.aws.com/claims.json");
  tree.folder("plugins/neuron.aws.com/claims.json");
  facts = gather_claim_facts(tree.root(), tree.path(), kDriver);
  EXPECT_EQ(facts.claims_file, PathState::unknown);
  EXPECT_NE(facts.claims_file_problem, "");
  for (const char* text : {"", "[]", "7", "{}", R"({"claims":{}})", "\xff"})
    EXPECT_FALSE(prepared_claims_in(text)) << text;
  EXPECT_THAT(prepared_claims_in(R"({"claims":[{"uid":"\u001b[31m"}]})").value(), ElementsAre("\\x1b[31m"));
}

TEST(ClaimFacts, GatesInYamlAndJson) {
  constexpr std::string_view kGate = "DynamicResourceAllocation";
  EXPECT_EQ(gate_in("featureGates:\n  DynamicResourceAllocation: false\n", kGate), false);
  EXPECT_EQ(gate_in("featureGates: {A: true, DynamicResourceAllocation: true}\n", kGate), true);
  EXPECT_EQ(gate_in("{\"featureGates\":{\"DynamicResourceAllocation\" : false}}", kGate), false);
  EXPECT_EQ(gate_in("  'DynamicResourceAllocation': false # why\n", kGate), false);
  EXPECT_EQ(gate_in("  # DynamicResourceAllocation: false\n", kGate), std::nullopt);
  EXPECT_EQ(gate_in("  MyDynamicResourceAllocation: false\n  DynamicResourceAllocationX: false\n", kGate),
            std::nullopt);
  EXPECT_EQ(gate_in("DynamicResourceAllocation: maybe\nDynamicResourceAllocation", kGate), std::nullopt);
  EXPECT_EQ(gate_in("", kGate), std::nullopt);
}

TEST(ClaimFacts, TheLastFileThatNamesAGateCounts) {
  TempTree tree;
  tree.write("kubelet/config.yaml",
             "featureGates:\n  DynamicResourceAllocation: false\n  DRAExtendedResource: false\n");
  auto facts = gather_claim_facts(tree.root(), tree.at("kubelet"), kDriver);
  EXPECT_TRUE(facts.config_read);
  EXPECT_THAT(facts.gates_off, ElementsAre(Evidence{tree.at("kubelet/config.yaml"), "DynamicResourceAllocation"},
                                           Evidence{tree.at("kubelet/config.yaml"), "DRAExtendedResource"}));
  tree.write("etc/kubernetes/kubelet/config.json", R"({"featureGates":{"DRAExtendedResource":true}})");
  tree.write("etc/kubernetes/kubelet/config.json.d/40-nodeadm.conf",
             R"({"featureGates":{"DynamicResourceAllocation":false}})");
  facts = gather_claim_facts(tree.root(), tree.at("kubelet"), kDriver);
  EXPECT_THAT(facts.gates_off, ElementsAre(Evidence{"etc/kubernetes/kubelet/config.json.d/40-nodeadm.conf",
                                                    "DynamicResourceAllocation"}));
}

TEST(ClaimFacts, VersionsOfPackages) {
  EXPECT_EQ(kubelet_version_in("Package: kubelet\nStatus: deinstall ok config-files\nVersion: 1.2.3\n"), "");
  EXPECT_EQ(kubelet_version_in("Package: other\nDepends: kubelet\nVersion: 1.2.3\n"), "");
  EXPECT_EQ(kubelet_version_in("Package: kubelet\nVersion: 1.2.3"), "1.2.3");
  EXPECT_EQ(kubelet_version_in("Package: kubelet\n\nVersion: 1.2.3"), "");
  EXPECT_EQ(kubelet_version_in(""), "");
}

TEST(ClaimFacts, CdiInAFileThatContainerdImports) {
  TempTree tree;
  tree.write("etc/containerd/config.toml", "version = 2\nimports = [\"/etc/containerd/conf.d/*.toml\"]\n");
  tree.write("etc/containerd/conf.d/a.toml", "version = 2\n");
  tree.write("etc/containerd/conf.d/b.toml", "version = 2\n[plugins.x]\nenable_cdi = true\n");
  tree.write("etc/containerd/conf.d/c.conf", "enable_cdi = false\n");
  auto cdi = gather_preflight_facts(tree.root()).cdi;
  EXPECT_EQ(cdi.state, CdiFacts::State::on);
  EXPECT_TRUE(cdi.is_said);
  EXPECT_THAT(cdi.evidence.path, HasSubstr("conf.d/b.toml"));
  tree.write("etc/containerd/config.toml", "version = 2\n");
  cdi = gather_preflight_facts(tree.root()).cdi;
  EXPECT_EQ(cdi.state, CdiFacts::State::off) << "nobody imports it";
  EXPECT_FALSE(cdi.is_said);
}

}  // namespace
}  // namespace neuron::host
