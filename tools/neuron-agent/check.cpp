#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "agent/base/parse.h"
#include "agent/host/fabric_probe.h"
#include "agent/host/preflight_facts.h"
#include "agent/host/scanner.h"
#include "agent/preflight/preflight.h"
#include "plugin/kubelet/checkpoint.h"
#include "plugin/kubelet/socket_file.h"
#include "tools/neuron-agent/reports.h"

namespace neuron::agent {
namespace {

using preflight::Finding;
using preflight::Severity;
using json = nlohmann::ordered_json;
using SocketState = preflight::ClaimFacts::SocketState;

const ReportWords kWords = {.schema = kCheckSchema,
                            .work = "reading the machine",
                            .may_hang = "a driver may hang; inspect the kernel log",
                            .killed = "the check",
                            .output = "the report",
                            .no_root = "; set --root to a directory or an archive of a machine"};

constexpr std::size_t kMostSockets = 64;
constexpr std::size_t kMaxShownName = 120;
// Of AWS's device plugins (docs/reference/kubernetes-stack.md); this agent's have other names.
constexpr std::array<std::string_view, 3> kOtherPlugins = {"aws-efa-device-plugin.sock", "neuron-devplugin.sock",
                                                           "neuroncore-devplugin.sock"};

json json_of(const Finding& finding) {
  json evidence = json::array();
  for (const preflight::Evidence& seen : finding.evidence)
    evidence.push_back({{"path", seen.path}, {"value", seen.value}});
  return {{"code", finding.code},         {"severity", preflight::to_string(finding.severity)},
          {"sentence", finding.sentence}, {"evidence", std::move(evidence)},
          {"fix", finding.fix},           {"subjects", finding.subjects}};
}

json json_of(const model::HostScan& scan) {
  return {{"instance_type", scan.instance_type},   {"instance_id", scan.instance_id},
          {"neuron_devices", scan.devices.size()}, {"efa_interfaces", scan.efas.size()},
          {"neuron_driver", scan.driver_version},  {"efa_driver", scan.efa_driver_version}};
}

bool knows_kubelet(const Options& options, const host::FsRoot& root) {
  return root.is_live() || options.kubelet_dir_set;
}

preflight::KubeletFacts kubelet_facts(const Options& options, const host::FsRoot& root) {
  preflight::KubeletFacts facts;
  if (knows_kubelet(options, root)) {
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

SocketState state_of(const std::string& path) {
  switch (plugin::socket_state(path)) {
    case plugin::SocketState::listening:
      return SocketState::listening;
    case plugin::SocketState::dead:
      return SocketState::dead;
    default:
      return SocketState::unknown;
  }
}

void add_driver_sockets(const std::string& directory, std::string_view prefix, preflight::ClaimFacts& facts) {
  for (const std::string& name : plugin::sockets_in(directory)) {
    if (!name.starts_with(prefix) || facts.driver_sockets.size() == kMostSockets) continue;
    facts.driver_sockets.push_back(
        {directory + "/" + printable(name, kMaxShownName), state_of(directory + "/" + name)});
  }
}

preflight::ClaimFacts claim_facts(const Options& options, const host::FsRoot& root) {
  const std::string& driver = options.dra.pool.driver;
  const bool knows = knows_kubelet(options, root);
  preflight::ClaimFacts facts =
      host::gather_claim_facts(root, knows ? options.kubelet_dir : "", driver, options.claims_cdi_dir);
  facts.asked = options.intended_mode == Mode::dra;
  facts.plugin_asked = options.intended_mode == Mode::device_plugin;
  if (!knows) return facts;
  add_driver_sockets(options.kubelet_dir + "/plugins/" + driver, "", facts);
  add_driver_sockets(options.kubelet_dir + "/plugins_registry", driver + "-", facts);
  const std::string plugins = options.kubelet_dir + "/device-plugins";
  if (const auto holder = plugin::lock_holder(plugins)) {
    facts.lock = preflight::ClaimFacts::Lock{holder->mode == plugin::InstanceLock::Mode::claims, holder->pid};
  }
  for (const std::string& name : plugin::sockets_in(plugins)) {
    const bool rival = std::ranges::find(kOtherPlugins, name) != kOtherPlugins.end();
    if (!rival && !plugin::is_agent_socket(name)) continue;
    if (facts.device_plugins.size() == kMostSockets) break;
    const std::string path = plugins + "/" + name;
    if (state_of(path) == SocketState::listening) {
      facts.device_plugins.push_back(plugins + "/" + printable(name, kMaxShownName));
    }
  }
  return facts;
}

preflight::FabricFacts fabric_facts(const Options& options, const host::FsRoot& root, const model::HostScan& scan) {
  preflight::FabricFacts facts;
  const bool usable = std::ranges::any_of(scan.efas, [](const model::EfaInterface& efa) {
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

// No part of a machine is below the root.
bool is_no_machine(const model::HostScan& scan, const host::FsRoot& root) {
  return scan.instance_type.empty() && scan.devices.empty() && scan.efas.empty() && !root.exists("sys/bus/pci") &&
         !root.exists("sys/class");
}

Report make_report(const Options& options, const std::string& directory) {
  const auto root = host::FsRoot::open(directory);
  if (!root) return cannot_tell(root.error().message);
  host::Scanner scanner(
      *root, {.with_topology = true, .with_processes = false, .kernel_log = host::KernelLogUse::where_allowed});
  const model::HostScan scan = scanner.scan();
  if (is_no_machine(scan, *root)) return cannot_tell(directory + ": contains no sys/ of a machine; set --root");
  preflight::PreflightFacts facts = host::gather_preflight_facts(*root);
  facts.kubelet = kubelet_facts(options, *root);
  facts.claims = claim_facts(options, *root);
  facts.fabric = fabric_facts(options, *root, scan);
  const auto findings = preflight::preflight(scan, facts);
  return report_findings(findings, preflight::describe_node(scan), json_of(scan), options.output);
}

}  // namespace

Report report_findings(const std::vector<Finding>& findings, const std::string& examined, const json& node,
                       ReportForm form) {
  const int errors = preflight::count_severity(findings, Severity::error);
  const int warnings = preflight::count_severity(findings, Severity::warning);
  const Verdict verdict = errors + warnings > 0 ? Verdict::findings : Verdict::good;
  if (form == ReportForm::text) return {verdict, preflight::preflight_text(findings, examined), ""};
  json list = json::array();
  for (const Finding& finding : findings) list.push_back(json_of(finding));
  json document = {{"schema", kCheckSchema},
                   {"verdict", verdict == Verdict::good ? "nothing_wrong" : "findings"},
                   {"errors", errors},
                   {"warnings", warnings}};
  if (!node.is_null()) document["node"] = node;
  document["findings"] = std::move(list);
  return {verdict, dump(document), ""};
}

Report check_node(const Options& options) {
  return report_in_child(options, kWords,
                         [&](const std::string& directory) { return make_report(options, directory); });
}

}  // namespace neuron::agent
