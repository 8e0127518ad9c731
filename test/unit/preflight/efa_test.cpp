// Interfaces, libfabric, huge pages, other plugins.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/preflight/preflight_host.h"

namespace neuron::test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

CheckedHost blind_host(const std::string& type, const std::string& version) {
  CheckedHost host = sound_host(type);
  host.facts.fabric.version = version;
  host.facts.fabric.interfaces.clear();
  host.facts.fabric.error_code = 61;
  host.facts.fabric.message = "No data available";
  return host;
}

TEST(PreflightEfa, OneFindingForOneCause) {
  CheckedHost host = sound_host("p5.48xlarge");
  for (auto& efa : host.scan.efas) efa.driver_bound = false;
  const auto findings = check(host);
  ASSERT_THAT(codes_of(findings), ElementsAre("efa_driver_unbound"));
  EXPECT_THAT(findings[0].sentence, HasSubstr("all 32 EFA interfaces"));
  EXPECT_THAT(findings[0].subjects, SizeIs(32));
  EXPECT_THAT(findings[0].evidence, SizeIs(9));
  EXPECT_EQ(findings[0].evidence.back().value, "the same for 24 more");
}

TEST(PreflightEfa, LoadedModuleWithoutVerbsDevicesIsSaidSo) {
  CheckedHost host = sound_host("trn1.32xlarge");
  for (auto& efa : host.scan.efas) {
    efa.uverbs.reset();
    efa.node_present = false;
  }
  EXPECT_THAT(finding_of(host, "verbs_devices_missing").sentence, HasSubstr("is loaded, but shows no verbs device"));
  host.facts.uverbs_module = host.facts.verbs_class = preflight::PathState::absent;
  const preflight::Finding finding = finding_of(host, "ib_uverbs_not_loaded");
  EXPECT_THAT(finding.sentence, HasSubstr("module ib_uverbs is not loaded"));
  EXPECT_THAT(finding.fix, HasSubstr("modprobe ib_uverbs"));
}

TEST(PreflightEfa, ADeadInterfaceIsAnErrorAtFirstSight) {
  CheckedHost host = sound_host("trn1.32xlarge");
  host.scan.efas[2].no_completion_cmds = 1;
  host.scan.efas[5].no_completion_cmds = 4;
  const auto findings = check(host);
  ASSERT_THAT(codes_of(findings), ElementsAre("efa_commands_lost"));
  EXPECT_EQ(findings[0].severity, preflight::Severity::error);
  EXPECT_THAT(findings[0].subjects, ElementsAre(host.scan.efas[2].name, host.scan.efas[5].name));
  ASSERT_THAT(findings[0].evidence, SizeIs(2));
  EXPECT_THAT(findings[0].evidence[0].path, HasSubstr("hw_counters/no_completion_cmds"));
  EXPECT_EQ(findings[0].evidence[0].value, "1");
  EXPECT_THAT(findings[0].fix, HasSubstr("bind"));
}

TEST(PreflightEfa, AMissingInterfaceIsNamedByAddressAndPlace) {
  CheckedHost host = sound_host("trn1.32xlarge");
  const std::string bdf = model::to_string(host.scan.efas[0].bdf);
  host.scan.efas.erase(host.scan.efas.begin());
  const preflight::Evidence seen = finding_of(host, "efas_missing").evidence.back();
  EXPECT_EQ(seen.path, "sys/bus/pci/devices/" + bdf);
  EXPECT_THAT(seen.value, HasSubstr("nearest to neuron"));
  host.scan.efas[0].bdf = {0, 0xfe, 1, 0};  // other addresses than the table's: it says nothing about this machine
  EXPECT_THAT(finding_of(host, "efas_missing").evidence, SizeIs(2));
}

TEST(PreflightEfa, PeerMemoryMattersOnlyBesideNeuron) {
  CheckedHost gpu = sound_host("p5.48xlarge");
  for (auto& efa : gpu.scan.efas) efa.p2p = "";
  EXPECT_THAT(check(gpu), IsEmpty());
  CheckedHost host = sound_host("trn1.32xlarge");
  host.scan.efas[3].p2p = "NVIDIA";
  const preflight::Finding finding = finding_of(host, "p2p_not_neuron");
  EXPECT_THAT(finding.evidence,
              ElementsAre(preflight::Evidence{"sys/bus/pci/devices/" + model::to_string(host.scan.efas[3].bdf) + "/p2p",
                                              "NVIDIA"}));
  host.scan.efas[3].p2p.reset();  // the kernel's own driver has no such file
  EXPECT_THAT(codes_of(check(host)), ElementsAre("not_checked"));
}

TEST(PreflightEfa, ForeignDeviceThatDisablesOldLibfabricIsNamed) {
  CheckedHost host = blind_host("p6-b200.48xlarge", "1.17");
  host.facts.foreign_rdma = {{"ibp115s0f0", "mlx5_core", true}, {"rxe0", "", false}};
  const preflight::Finding finding = finding_of(host, "fabric_blind");
  EXPECT_EQ(finding.severity, preflight::Severity::warning);
  EXPECT_THAT(finding.sentence, HasSubstr("the RDMA device ibp115s0f0 is not an EFA device"));
  EXPECT_THAT(finding.evidence,
              Contains(preflight::Evidence{"libfabric 1.17, provider efa", "fi_getinfo: -61 (No data available)"}));
  EXPECT_THAT(finding.evidence, Contains(preflight::Evidence{"sys/class/infiniband/ibp115s0f0/device/driver",
                                                             "mlx5_core, not an EFA device"}));
  for (const char* fixed : {"2.2", "2.10", "3.0"}) {
    host.facts.fabric.version = fixed;
    EXPECT_EQ(finding_of(host, "fabric_blind").severity, preflight::Severity::error) << fixed;
  }
}

TEST(PreflightEfa, LibfabricsOwnWordsAreEvidence) {
  CheckedHost host = blind_host("trn1.32xlarge", "1.17");
  host.facts.fabric.log = {"efa: efa_device_list_initialize(): ibv_get_device_list failed"};
  const preflight::Finding finding = finding_of(host, "fabric_blind");
  EXPECT_EQ(finding.severity, preflight::Severity::error);
  EXPECT_THAT(finding.evidence, Contains(preflight::Evidence{"libfabric's log", host.facts.fabric.log[0]}));
}

TEST(PreflightEfa, OnlyUsableInterfacesAreMissed) {
  CheckedHost host = sound_host("trn1.32xlarge");
  const std::string broken = host.scan.efas[1].name;
  const std::string unseen = host.scan.efas[2].name;
  host.scan.efas[1].node_present = false;
  std::erase_if(host.facts.fabric.interfaces, [&](const auto& name) { return name == broken || name == unseen; });
  EXPECT_THAT(finding_of(host, "fabric_blind").subjects, ElementsAre(unseen));
}

TEST(PreflightEfa, WhatWasNotTriedIsSaid) {
  CheckedHost host = sound_host("trn1.32xlarge");
  host.facts.fabric = {};
  host.facts.fabric.message = "the root is a captured or simulated machine";
  const preflight::Finding finding = finding_of(host, "not_checked");
  EXPECT_THAT(finding.evidence,
              ElementsAre(preflight::Evidence{"libfabric", "not tried: the root is a captured or simulated machine"}));
  host.facts.fabric.state = preflight::FabricFacts::State::no_library;
  host.facts.fabric.message = "libfabric.so.1: cannot open shared object file";
  EXPECT_THAT(finding_of(host, "not_checked").evidence, SizeIs(1));
}

TEST(PreflightEfa, HugePagesMatterOnlyBesideEfa) {
  CheckedHost host = sound_host("inf2.48xlarge");
  host.facts.huge_pages.reserved_2m = 0;
  EXPECT_THAT(check(host), IsEmpty());
  CheckedHost trn1 = sound_host("trn1.32xlarge");
  trn1.facts.huge_pages.reserved_2m.reset();  // unknown is not zero
  EXPECT_THAT(codes_of(check(trn1)), ElementsAre("not_checked"));
  trn1.facts.huge_pages = {0, std::uint64_t{1} << 30U};  // 1 GiB by default: the installer reserves none either
  EXPECT_THAT(check(trn1), IsEmpty());
  trn1.facts.huge_pages = {110 * 128, 2U << 20U};
  EXPECT_THAT(finding_of(trn1, "huge_pages_few").sentence, HasSubstr("14081 for 128 CPUs"));
}

TEST(PreflightEfa, NvidiaPluginIsAProofOrASuspicion) {
  CheckedHost host = sound_host("p5.48xlarge");
  host.facts.kubelet.plugin_sockets = {"nvidia-gpu.sock"};
  EXPECT_EQ(finding_of(host, "nvidia_takes_verbs").severity, preflight::Severity::warning);
  host.facts.kubelet.verbs_takers = {"nvidia.com/gpu pod 1-2/main"};
  EXPECT_EQ(finding_of(host, "nvidia_takes_verbs").severity, preflight::Severity::error);
  EXPECT_THAT(finding_of(host, "nvidia_takes_verbs").fix, HasSubstr("--mofed-enabled=false"));
  host.scan.efas.clear();  // nothing to take
  EXPECT_THAT(codes_of(check(host)), ElementsAre("nothing_to_serve", "efas_none_attached"));
}

}  // namespace
}  // namespace neuron::test
