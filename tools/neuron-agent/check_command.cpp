#include "tools/neuron-agent/check_command.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "agent/base/child_process.h"
#include "agent/base/fd.h"
#include "agent/base/parse.h"
#include "agent/host/fabric_probe.h"
#include "agent/host/preflight_facts.h"
#include "agent/host/root_source.h"
#include "agent/host/scanner.h"
#include "agent/preflight/preflight.h"
#include "plugin/kubelet/checkpoint.h"
#include "tools/neuron-agent/check_claims.h"

namespace neuron::agent {
namespace {

using preflight::Finding;
using preflight::Severity;
using json = nlohmann::ordered_json;

constexpr const char* kSchema = "neuron-check/1";  // docs/checks.md
constexpr std::size_t kMaxOutput = std::size_t{4} << 20U;

std::string dump(const json& document) {
  return document.dump(2, ' ', false, json::error_handler_t::replace) + '\n';
}

json json_of(const Finding& finding) {
  json evidence = json::array();
  for (const preflight::Evidence& seen : finding.evidence)
    evidence.push_back({{"path", seen.path}, {"value", seen.value}});
  return {{"code", finding.code},         {"severity", preflight::to_string(finding.severity)},
          {"sentence", finding.sentence}, {"evidence", std::move(evidence)},
          {"fix", finding.fix},           {"subjects", finding.subjects}};
}

std::string json_text(const std::vector<Finding>& findings, const model::HostScan& scan) {
  const int errors = preflight::count_severity(findings, Severity::error);
  const int warnings = preflight::count_severity(findings, Severity::warning);
  json list = json::array();
  for (const Finding& finding : findings) list.push_back(json_of(finding));
  return dump({{"schema", kSchema},
               {"verdict", errors + warnings > 0 ? "findings" : "nothing_wrong"},
               {"errors", errors},
               {"warnings", warnings},
               {"node",
                {{"instance_type", scan.instance_type},
                 {"instance_id", scan.instance_id},
                 {"neuron_devices", scan.devices.size()},
                 {"efa_interfaces", scan.efas.size()},
                 {"neuron_driver", scan.driver_version},
                 {"efa_driver", scan.efa_driver_version}}},
               {"findings", std::move(list)}});
}

CheckReport cannot_tell(const CheckOptions& options, const std::string& reason) {
  CheckReport report;
  report.error = reason;
  if (options.output == ReportForm::json) {
    report.output = dump({{"schema", kSchema}, {"verdict", "cannot_tell"}, {"reason", reason}});
  }
  return report;
}

preflight::KubeletFacts look_at_kubelet(const CheckOptions& options, const host::FsRoot& root) {
  preflight::KubeletFacts facts;
  if (root.is_live() || options.kubelet_dir_set) {
    facts = host::gather_kubelet_facts(options.kubelet_dir);
    if (auto checkpoint =
            plugin::read_checkpoint(options.kubelet_dir + "/device-plugins/" + std::string(plugin::kCheckpointName))) {
      facts.numbering = std::move(checkpoint->numbering);
      facts.listed_devices = std::move(checkpoint->listed_devices);
      facts.listed_cores = std::move(checkpoint->listed_cores);
      facts.verbs_takers = std::move(checkpoint->verbs_takers);
    }
    return facts;
  }
  facts.not_looked = "not examined: the root is not this machine, and --kubelet-dir is not given";
  return facts;
}

preflight::FabricFacts ask_fabric(const CheckOptions& options, const host::FsRoot& root, const model::HostScan& scan) {
  preflight::FabricFacts facts;
  const bool usable = std::any_of(scan.efas.begin(), scan.efas.end(), [](const model::EfaInterface& efa) {
    return efa.driver_bound && efa.node_present && !efa.name.empty();
  });
  if (scan.efas.empty()) return facts;
  if (options.no_fabric) {
    facts.message = "--no-fabric is given";
  } else if (!root.is_live()) {
    facts.message = "the root is a captured or simulated machine";
  } else if (!usable) {
    facts.message = "no EFA interface has a verbs node here";
  } else {
    host::FabricRequest request;
    request.budget = options.timeout / 2;
    return host::probe_fabric(request);
  }
  return facts;
}

bool says_nothing(const model::HostScan& scan, const host::FsRoot& root) {
  return scan.instance_type.empty() && scan.devices.empty() && scan.efas.empty() && !root.exists("sys/bus/pci") &&
         !root.exists("sys/class");
}

// The whole check, in the child. The status is the verdict; the text is its output, or the reason of an undetermined
// one.
int check_in_child(const CheckOptions& options, const std::string& directory, int output) {
  const auto say = [&](CheckVerdict verdict, const std::string& text) {
    return static_cast<int>(write_all(output, text, "the report") ? verdict : CheckVerdict::cannot_tell);
  };
  const auto root = host::FsRoot::open(directory);
  if (!root) return say(CheckVerdict::cannot_tell, root.error().message);
  host::Scanner scanner(
      *root, {.with_topology = true, .with_processes = false, .kernel_log = host::KernelLogUse::where_allowed});
  const model::HostScan scan = scanner.scan();
  if (says_nothing(scan, *root)) {
    return say(CheckVerdict::cannot_tell, directory + ": contains no sys/ of a machine; set --root");
  }
  preflight::PreflightFacts facts = host::gather_preflight_facts(*root);
  facts.kubelet = look_at_kubelet(options, *root);
  facts.claims = look_at_claims(options, *root);
  facts.fabric = ask_fabric(options, *root, scan);
  const auto findings = preflight::preflight(scan, facts);
  const bool wrong =
      preflight::count_severity(findings, Severity::error) + preflight::count_severity(findings, Severity::warning) > 0;
  return say(
      wrong ? CheckVerdict::findings : CheckVerdict::nothing_wrong,
      options.output == ReportForm::json ? json_text(findings, scan) : preflight::preflight_text(findings, scan));
}

}  // namespace

CheckReport check_node(const CheckOptions& options) {
  using End = ChildOutcome::End;
  const auto source = host::RootSource::open(options.root);
  if (!source) {
    const bool absent = source.error().code == ErrorCode::not_found;
    return cannot_tell(
        options, source.error().message + (absent ? "; set --root to a directory or an archive of a machine" : ""));
  }
  const auto outcome = run_in_child([&](int output) { return check_in_child(options, source->directory(), output); },
                                    options.timeout, kMaxOutput);
  if (!outcome) return cannot_tell(options, outcome.error().message);
  const std::string limit = std::to_string(options.timeout.count()) + " ms";
  if (outcome->end == End::out_of_time) {
    return cannot_tell(options, "reading the machine took longer than " + limit +
                                    ": a driver may hang; inspect the kernel log, or raise --timeout");
  }
  if (outcome->end == End::killed) {
    return cannot_tell(options, "the check died of signal " + std::to_string(outcome->status) + "; please report it");
  }
  if (outcome->end == End::cut) return cannot_tell(options, "the report is too long; please report it");
  if (outcome->status != 0 && outcome->status != 1) return cannot_tell(options, outcome->output);
  CheckReport report;
  report.verdict = outcome->status == 0 ? CheckVerdict::nothing_wrong : CheckVerdict::findings;
  report.output = outcome->output;
  return report;
}

}  // namespace neuron::agent
