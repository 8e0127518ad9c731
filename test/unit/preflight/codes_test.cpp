// Every code: what provokes it, alone and in its severity, and that docs/checks.md and the source name the same ones.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <regex>
#include <set>

#include "test/fakes/paths.h"
#include "test/unit/preflight/preflight_host.h"

namespace neuron::test {
namespace {

struct Case {
  std::string code;
  preflight::Severity severity;
  std::string type;
  std::function<void(CheckedHost&)> breaks;
};

using Host = CheckedHost&;
constexpr auto kError = preflight::Severity::error;
constexpr auto kWarning = preflight::Severity::warning;
constexpr auto kInfo = preflight::Severity::info;
constexpr const char* kTrn1 = "trn1.32xlarge";

void take_driver(Host h) {
  h.scan.devices.clear();
  h.scan.driver_version.clear();
  h.scan.layout = model::DriverLayout::none;
  h.facts.neuron_class = preflight::PathState::absent;
}

void blind_libfabric(Host h) {
  h.facts.fabric.interfaces.clear();
  h.facts.fabric.error_code = 61;
  h.facts.fabric.message = "No data available";
}

std::vector<Case> neuron_cases() {
  return {
      {"driver_missing", kError, kTrn1, take_driver},
      {"driver_wrong_for_chip", kError, "inf1.6xlarge", [](Host h) { h.scan.driver_version = "2.27.4.0"; }},
      {"driver_shows_no_device", kError, kTrn1,
       [](Host h) {
         h.scan.devices.clear();
         h.scan.layout = model::DriverLayout::none;
       }},
      {"layout_unknown", kWarning, kTrn1, [](Host h) { h.scan.layout = model::DriverLayout::unknown; }},
      {"driver_old", kWarning, "trn1.2xlarge",
       [](Host h) {
         h.scan.layout = model::DriverLayout::bare;
         h.scan.driver_version = "2.6.0.0";
         h.scan.devices[0].signals = {};
         h.scan.devices[0].cores.clear();
       }},
      {"instance_type_unknown", kWarning, kTrn1, [](Host h) { h.scan.instance_type = "trn9.48xlarge"; }},
      {"nothing_to_serve", kInfo, "trn1.2xlarge",
       [](Host h) {
         h.scan = {};
         h.scan.instance_type = "m7i.large";
       }},
      {"devices_missing", kError, kTrn1, [](Host h) { h.scan.devices.erase(h.scan.devices.begin() + 3); }},
      {"devices_unexpected", kWarning, "trn1.2xlarge",
       [](Host h) {
         h.scan.devices.push_back(h.scan.devices[0]);
         h.scan.devices[1].index = 1;
         h.scan.devices[1].serial = "19fcda00f5ff6eb9";
         h.scan.devices[1].bdf->value.slot = 1;
       }},
      {"ultraserver_busy", kInfo, "trn2u.48xlarge", [](Host h) { h.scan.ultraserver.emplace().busy = true; }},
      {"ultraserver_alone", kInfo, "trn2u.48xlarge", [](Host h) { h.scan.ultraserver.emplace().modes = {4}; }},
      {"device_node_missing", kError, kTrn1, [](Host h) { h.scan.devices[4].node_present = false; }},
      {"devices_differ", kError, kTrn1, [](Host h) { h.scan.devices[4].arch = "NDv3"; }},
      {"chip_unexpected", kError, kTrn1,
       [](Host h) {
         for (auto& device : h.scan.devices) device.family = model::Family::inferentia2;
       }},
      {"address_twice", kWarning, kTrn1, [](Host h) { h.scan.devices[4].bdf = h.scan.devices[7].bdf; }},
      {"serial_twice", kWarning, kTrn1, [](Host h) { h.scan.devices[4].serial = h.scan.devices[7].serial; }},
      {"resets_failed", kWarning, kTrn1,
       [](Host h) {
         h.facts.failed_resets = {{4, 1, 3, ""}};
       }},
  };
}

std::function<void(Host)> logs(model::KernelErrorKind kind, std::optional<int> device, const std::string& action = "") {
  return [=](Host h) {
    h.scan.kernel_log.state = model::KernelLogState::reading;
    model::KernelLogError& error = h.scan.kernel_log.errors.emplace_back();
    error.kind = kind;
    error.name = "NAME";
    error.device = device;
    error.action = action;
    error.lines = 2;
  };
}

std::vector<Case> kernel_log_cases() {
  using Kind = model::KernelErrorKind;
  return {
      {"hw_nc_ue_error", kError, kTrn1, logs(Kind::core, 4)},
      {"hw_dma_abort_error", kError, kTrn1, logs(Kind::dma, std::nullopt)},
      {"hw_error", kError, kTrn1, logs(Kind::other, 4, "TERMINATE_INSTANCE")},
      {"hang_on_collectives", kWarning, kTrn1, logs(Kind::collectives, 4)},
      {"kernel_log_error", kWarning, kTrn1, logs(Kind::other, std::nullopt)},
  };
}

std::vector<Case> health_cases() {
  return {
      {"sram_ecc_uncorrected", kError, kTrn1, [](Host h) { h.scan.devices[4].signals.sram_ecc_uncorrected = 2; }},
      {"mem_ecc_uncorrected", kError, kTrn1, [](Host h) { h.scan.devices[4].signals.mem_ecc_uncorrected = 1; }},
      {"mem_ecc_repairable_uncorrected", kError, kTrn1,
       [](Host h) { h.scan.devices[4].signals.mem_ecc_repairable_uncorrected = 1; }},
      {"unhealthy_components", kError, kTrn1,
       [](Host h) {
         h.scan.devices[4].signals.unhealthy_components = {{"hbm", "link_efa"}};
       }},
      {"nothing_readable", kError, kTrn1,
       [](Host h) {
         model::NeuronDevice& silent = h.scan.devices[4];
         silent.arch.clear();
         silent.serial.reset();
         silent.physical_cores->origin = model::Origin::assumed;
         silent.cores.clear();
         silent.signals = {};
         silent.problems = {{model::ProblemKind::health_file,
                             "sys/class/neuron_device/neuron4/stats/hardware/sram_ecc_uncorrected",
                             "Input/output error"}};
       }},
      {"device_unreachable", kError, kTrn1, [](Host h) { h.scan.devices[4].signals.unreachable = true; }},
      {"device_invalid", kError, kTrn1, [](Host h) { h.scan.devices[4].signals.reset_state = 2; }},
      {"resetting", kWarning, kTrn1, [](Host h) { h.scan.devices[4].signals.reset_state = 0; }},
      {"reads_all_ones", kWarning, kTrn1, [](Host h) { h.scan.devices[4].signals.mem_ecc_uncorrected = 65535; }},
      {"reads_all_ones", kError, kTrn1,
       [](Host h) {
         h.scan.devices[4].serial_all_ones = true;
         h.scan.devices[4].signals.sram_ecc_uncorrected = 65535;
         h.scan.devices[4].signals.mem_ecc_uncorrected = 30;
       }},
      {"health_not_measured", kWarning, "trn2.48xlarge",
       [](Host h) {
         h.scan.driver_settings.posts_metrics = false;
         for (auto& device : h.scan.devices) device.signals.heartbeat = 0;
       }},
      {"signal_unreadable", kWarning, kTrn1, [](Host h) { h.scan.devices[4].signals.sram_ecc_uncorrected.reset(); }},
      {"signals_missing", kWarning, kTrn1,
       [](Host h) {
         for (auto& device : h.scan.devices) device.signals.sram_ecc_uncorrected.reset();
       }},
      {"core_missing", kWarning, kTrn1, [](Host h) { h.scan.devices[4].cores.pop_back(); }},
      {"no_signals", kWarning, kTrn1,
       [](Host h) {
         h.scan.devices[4].signals = {};
         h.scan.devices[4].cores.clear();
       }},
      {"core_errors", kWarning, kTrn1, [](Host h) { h.scan.devices[4].cores[1].hw_dma_abort_error = 7; }},
  };
}

std::vector<Case> efa_cases() {
  return {
      {"efas_missing", kWarning, kTrn1, [](Host h) { h.scan.efas.pop_back(); }},
      {"efas_none_attached", kInfo, kTrn1, [](Host h) { h.scan.efas.clear(); }},
      {"efa_driver_unbound", kError, kTrn1, [](Host h) { h.scan.efas[2].driver_bound = false; }},
      {"rdma_device_missing", kError, kTrn1, [](Host h) { h.scan.efas[2].name.clear(); }},
      {"ib_uverbs_not_loaded", kError, kTrn1,
       [](Host h) {
         for (auto& efa : h.scan.efas) {
           efa.uverbs.reset();
           efa.node_present = false;
         }
         h.facts.verbs_class = h.facts.uverbs_module = preflight::PathState::absent;
       }},
      {"verbs_devices_missing", kError, kTrn1,
       [](Host h) {
         for (auto& efa : h.scan.efas) {
           efa.uverbs.reset();
           efa.node_present = false;
         }
       }},
      {"verbs_missing", kError, kTrn1,
       [](Host h) {
         h.scan.efas[2].uverbs.reset();
         h.scan.efas[2].node_present = false;
       }},
      {"verbs_node_missing", kError, kTrn1, [](Host h) { h.scan.efas[2].node_present = false; }},
      {"p2p_not_neuron", kError, kTrn1, [](Host h) { h.scan.efas[2].p2p = ""; }},
      {"efa_commands_lost", kError, kTrn1, [](Host h) { h.scan.efas[2].no_completion_cmds = 1; }},
      {"fabric_blind", kError, kTrn1, blind_libfabric},
      {"fabric_timeout", kWarning, kTrn1,
       [](Host h) { h.facts.fabric.state = preflight::FabricFacts::State::timed_out; }},
      {"fabric_died", kWarning, kTrn1, [](Host h) { h.facts.fabric.state = preflight::FabricFacts::State::died; }},
      {"fabric_failed", kWarning, kTrn1, [](Host h) { h.facts.fabric.state = preflight::FabricFacts::State::failed; }},
  };
}

std::vector<Case> node_cases() {
  return {
      {"lnc_file_malformed", kError, kTrn1,
       [](Host h) {
         h.facts.lnc_file = {preflight::PathState::present, "LNC=two", "no line NEURON_LOGICAL_NC_CONFIG=", {}};
       }},
      {"lnc_unsupported", kError, kTrn1,
       [](Host h) {
         h.facts.lnc_file = {preflight::PathState::present, "NEURON_LOGICAL_NC_CONFIG=2", "", 2};
       }},
      {"lnc_changed_while_held", kWarning, "trn2.48xlarge",
       [](Host h) {
         h.facts.kubelet.numbering.given = {{{8, 9}, {1}}};
       }},
      {"huge_pages_none", kWarning, kTrn1, [](Host h) { h.facts.huge_pages.reserved_2m = 0; }},
      {"huge_pages_few", kInfo, kTrn1, [](Host h) { h.facts.huge_pages.reserved_2m = 5128; }},
      {"two_names", kInfo, kTrn1,
       [](Host h) {
         h.facts.kubelet.listed_devices = {3, 4};
         h.facts.kubelet.listed_cores = {0, 1, 9, 10};
       }},
      {"cdi_off", kInfo, kTrn1,
       [](Host h) {
         h.facts.cdi = {preflight::CdiFacts::State::off, {"etc/containerd/config.toml", "enable_cdi = false"}};
       }},
      {"nvidia_takes_verbs", kError, "p5.48xlarge",
       [](Host h) { h.facts.kubelet.verbs_takers = {"nvidia.com/gpu pod 1-2/main"}; }},
      {"rival_plugin", kWarning, kTrn1,
       [](Host h) { h.facts.kubelet.plugin_sockets = {"aws-efa-device-plugin.sock"}; }},
      {"kubelet_dir_missing", kError, kTrn1, [](Host h) { h.facts.kubelet.itself = preflight::PathState::absent; }},
      {"device_plugins_dir_missing", kError, kTrn1,
       [](Host h) { h.facts.kubelet.device_plugins = preflight::PathState::absent; }},
      {"kubelet_socket_missing", kWarning, kTrn1,
       [](Host h) { h.facts.kubelet.kubelet_socket = preflight::PathState::absent; }},
      {"pod_resources_missing", kWarning, kTrn1,
       [](Host h) { h.facts.kubelet.pod_resources_socket = preflight::PathState::absent; }},
      {"unreadable", kWarning, kTrn1,
       [](Host h) {
         h.scan.devices[1].problems = {{model::ProblemKind::file, "core_count", "not a number"}};
       }},
      {"not_checked", kInfo, kTrn1, [](Host h) { h.facts.kubelet.not_looked = "not looked at: no kubelet here"; }},
  };
}

using SocketState = preflight::ClaimFacts::SocketState;

Case of_claims(const std::string& code, preflight::Severity severity,
               std::function<void(preflight::ClaimFacts&)> breaks) {
  return {code, severity, kTrn1, [breaks](Host h) {
            add_claims(h);
            breaks(h.facts.claims);
          }};
}

std::vector<Case> claim_cases() {
  constexpr auto kAbsent = preflight::PathState::absent;
  using Claims = preflight::ClaimFacts;
  return {
      of_claims("plugins_registry_missing", kError, [](Claims& claims) { claims.registry = kAbsent; }),
      of_claims("cdi_dir_missing", kWarning, [](Claims& claims) { claims.cdi_directory = kAbsent; }),
      of_claims("cdi_dir_read_only", kError, [](Claims& claims) { claims.cdi_read_only = true; }),
      {"cdi_off_for_claims", kError, kTrn1,
       [](Host h) {
         add_claims(h);
         h.facts.cdi = {preflight::CdiFacts::State::off, {"etc/containerd/config.toml", "enable_cdi = false"}, true};
       }},
      of_claims("claims_gate_off", kError,
                [](Claims& claims) {
                  claims.gates_off = {{"config.yaml", "DynamicResourceAllocation"}};
                }),
      of_claims("extended_claims_gate_off", kWarning,
                [](Claims& claims) {
                  claims.gates_off = {{"config.yaml", "DRAExtendedResource"}};
                }),
      of_claims("claims_not_listed", kInfo,
                [](Claims& claims) {
                  claims.gates_off = {{"config.yaml", "KubeletPodResourcesDynamicResources"}};
                }),
      of_claims("kubelet_too_old_for_claims", kError, [](Claims& claims) { claims.kubelet_version = "1.34.1-1.1"; }),
      of_claims("kubelet_without_extended_claims", kInfo, [](Claims& claims) { claims.kubelet_version = "1.35.4"; }),
      of_claims("other_mode", kError,
                [](Claims& claims) {
                  claims.lock = Claims::Lock{false, "4242"};
                }),
      of_claims("both_modes", kError,
                [](Claims& claims) {
                  claims.device_plugins = {"/var/lib/kubelet/device-plugins/neuron-agent-efa-1-0.sock"};
                }),
      of_claims("driver_gone", kWarning, [](Claims& claims) { claims.driver_sockets.clear(); }),
      of_claims(
          "dead_driver_sockets", kInfo,
          [](Claims& claims) {
            claims.driver_sockets.push_back({"/var/lib/kubelet/plugins/neuron.aws.com/dra.sock", SocketState::dead});
          }),
      of_claims("claims_file_damaged", kWarning, [](Claims& claims) { claims.claims_file_problem = "no JSON object"; }),
      of_claims("stale_cdi_files", kWarning, [](Claims& claims) { claims.prepared.pop_back(); }),
  };
}

const std::vector<Case>& cases() {
  static const std::vector<Case> kCases = [] {
    std::vector<Case> all;
    for (auto* part : {&neuron_cases, &health_cases, &kernel_log_cases, &efa_cases, &node_cases, &claim_cases}) {
      for (Case& one : part()) all.push_back(std::move(one));
    }
    return all;
  }();
  return kCases;
}

std::string text_of(const std::string& path) {
  std::ifstream file(fakes::source_dir() + "/" + path);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

std::set<std::string> provoked() {
  std::set<std::string> codes;
  for (const Case& one : cases()) codes.insert(one.code);
  return codes;
}

TEST(PreflightCodes, SoundHostsHaveNone) {
  for (const char* type : {"trn1.32xlarge", "trn2.48xlarge", "inf2.48xlarge", "trn1.2xlarge", "p5.48xlarge"}) {
    EXPECT_THAT(codes_of(check(sound_host(type))), ::testing::IsEmpty()) << type;
  }
}

TEST(PreflightCodes, EachIsProvokedAlone) {
  for (const Case& one : cases()) {
    CheckedHost host = sound_host(one.type);
    one.breaks(host);
    EXPECT_THAT(codes_of(check(host)), ::testing::ElementsAre(one.code));
    const preflight::Finding finding = finding_of(host, one.code);
    EXPECT_EQ(finding.severity, one.severity) << one.code;
    EXPECT_THAT(finding.evidence, ::testing::Not(::testing::IsEmpty())) << one.code;
    for (const preflight::Evidence& evidence : finding.evidence) {
      EXPECT_NE(evidence.path, "") << one.code;
      EXPECT_NE(evidence.value, "") << one.code << ' ' << evidence.path;
    }
    EXPECT_TRUE(finding.severity == preflight::Severity::info || !finding.fix.empty()) << one.code << " has no fix";
  }
}

// - `code`, `code` (severity): …
TEST(PreflightCodes, AreDocumented) {
  const std::string page = text_of("docs/checks.md");
  std::set<std::string> documented;
  const std::regex row(R"(\n- ((?:`[a-z0-9_]+`[ ,\n]+)+)\()");
  const std::regex code("`([a-z0-9_]+)`");
  for (std::sregex_iterator at(page.begin(), page.end(), row), end; at != end; ++at) {
    const std::string codes = (*at)[1];
    for (std::sregex_iterator one(codes.begin(), codes.end(), code); one != end; ++one) documented.insert((*one)[1]);
  }
  EXPECT_EQ(documented, provoked());
}

TEST(PreflightCodes, OfTheSourceAreAllProvoked) {
  const std::regex literal(R"re((?:report\.(?:error|warning)\(|[Ss]everity(?:::info)?, )\s*"([a-z0-9_]+)")re");
  for (const char* part : {"preflight", "devices", "efa", "health", "neuron", "node", "claims"}) {
    const std::string source = text_of(std::string("agent/preflight/") + part + ".cpp");
    int found = 0;
    for (std::sregex_iterator at(source.begin(), source.end(), literal), end; at != end; ++at, ++found) {
      EXPECT_TRUE(provoked().contains((*at)[1])) << (*at)[1];
    }
    EXPECT_GT(found, 0) << part;
  }
}

}  // namespace
}  // namespace neuron::test
