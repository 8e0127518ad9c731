// Verdicts of the health policy on a single scan, as findings.

#include <algorithm>
#include <optional>
#include <set>

#include "agent/health/assess.h"
#include "agent/health/signals.h"
#include "agent/preflight/rules.h"

namespace neuron::preflight::rules {
namespace {

using model::CoreSignals;
using model::Health;
using model::HealthState;
using model::HostScan;
using model::NeuronDevice;
namespace reason = model::reason;

// Lines of the kernel log, with or without a device.
std::vector<Evidence> kernel_lines(const HostScan& scan, std::optional<int> device) {
  constexpr std::size_t kMaxShown = 8;
  std::vector<Evidence> evidence;
  for (const model::KernelLogError& error : scan.kernel_log.errors) {
    if (error.device != device || evidence.size() == kMaxShown) continue;
    evidence.push_back({"dev/kmsg", "NEURON_HW_ERR=" + error.name + ", " + counted(error.lines, "line")});
  }
  return evidence;
}

// A count of HBM errors as in its file, which packs two counts.
Evidence packed_evidence(const std::string& base, const model::DeviceSignals& signals) {
  const std::string file = signals.hbm_packed->as_repairable ? "mem_ecc_repairable_uncorrected" : "mem_ecc_uncorrected";
  return {base + "stats/hardware/" + file,
          std::to_string(signals.hbm_packed->value) + ", which is " +
              std::to_string(signals.mem_ecc_uncorrected.value_or(0)) + " uncorrectable and " +
              std::to_string(signals.mem_ecc_repairable_uncorrected.value_or(0)) + " repairable"};
}

// The device's files behind the verdict.
std::vector<Evidence> evidence_in_files(const NeuronDevice& device, const health::DeviceBasis& basis,
                                        const std::string& reason) {
  const std::string base = health::folder_of(device);
  std::vector<Evidence> evidence;
  for (const health::DeviceSignal& signal : health::device_signals()) {
    if (signal.reason == nullptr || signal.reason->code != reason) continue;
    const std::string path = base + std::string(signal.path);
    if (signal.kind == health::SignalKind::components && device.signals.unhealthy_components) {
      evidence.push_back({path, joined(*device.signals.unhealthy_components)});
    }
    if (signal.value == nullptr) continue;
    const auto& count = device.signals.*signal.value;
    if (!count || *count == 0) continue;
    const bool is_packed = signal.kind == health::SignalKind::hbm && device.signals.hbm_packed;
    evidence.push_back(is_packed ? packed_evidence(base, device.signals) : Evidence{path, std::to_string(*count)});
  }
  if (reason == reason::kReadsAllOnes) {
    for (const auto& [path, text] : basis.all_ones) evidence.push_back({base + path, text});
  }
  if (reason == reason::kDeviceUnreachable) {
    evidence.push_back({base + "stats/hardware/health_status", "device_unreachable"});
  }
  if (device.signals.reset_state && (reason == reason::kDeviceInvalid || reason == reason::kResetting)) {
    evidence.push_back({base + "reset", std::to_string(*device.signals.reset_state)});
  }
  return evidence;
}

// The evidence of the verdict; never empty.
std::vector<Evidence> evidence_of(const HostScan& scan, const NeuronDevice& device, const health::DeviceBasis& basis) {
  std::vector<Evidence> evidence = evidence_in_files(device, basis, device.health.reason);
  if (evidence.empty()) evidence = kernel_lines(scan, device.index);
  if (evidence.empty()) evidence.push_back({health::folder_of(device) + "stats", device.health.reason});
  return evidence;
}

// Lines of the kernel log that name no device.
void report_node(const HostScan& scan, Report& report) {
  const Health& health = scan.kernel_log.node_health;
  if (health.reason.empty()) return;
  const Severity severity = health.state == HealthState::unhealthy ? Severity::error : Severity::warning;
  report.add(severity, health.reason, health.sentence, kernel_lines(scan, std::nullopt), health.action, {});
}

// Verdicts that are findings of the node or of the cores elsewhere.
bool has_own_finding(const std::string& reason) {
  return reason == reason::kUnknownLayout || reason == reason::kDeviceNodeMissing ||
         reason == reason::kSignalsMissing || reason == reason::kCoreMissing || reason == reason::kHealthNotMeasured;
}

// Signals that the driver should have and no device of a family shows. A single device reports these as unreadable.
void report_missing(const health::Assessment& node, Report& report) {
  const HostScan& scan = node.host;
  for (const health::MissingFiles& missing : node.missing) {
    if (missing.devices.size() < 2) continue;
    const std::string where = "missing on any of " + std::to_string(missing.devices.size()) + " devices";
    Shown evidence;
    for (const std::string& path : missing.paths) evidence.add({"sys/class/neuron_device/neuron*/" + path, where});
    const std::string driver = scan.driver_version.empty() ? "this driver" : "driver " + scan.driver_version;
    report.warning(reason::kSignalsMissing,
                   "no " + std::string(model::to_string(missing.family)) + " device has the health files that " +
                       driver + " should have: their health is unknown",
                   evidence.take(), health::action_for_missing(scan), missing.devices);
  }
}

// One finding for all devices, which share the driver's parameters.
void report_unmeasured(const HostScan& scan, Report& report) {
  const Health* first = nullptr;
  std::vector<std::string> names;
  for (const NeuronDevice& device : scan.devices) {
    if (device.health.reason != reason::kHealthNotMeasured) continue;
    if (first == nullptr) first = &device.health;
    names.push_back(name_of(device));
  }
  if (first == nullptr) return;
  const std::string parameters = "sys/module/neuron/parameters/";
  std::vector<Evidence> evidence;
  if (scan.driver_settings.shows_health_files == false) {
    evidence.push_back({parameters + "enable_sysfs_health_status_nodes", "off"});
  }
  if (scan.driver_settings.posts_metrics == false) evidence.push_back({parameters + "nmetric_log_posts", "off"});
  evidence.push_back({"sys/class/neuron_device/" + names.front() + "/stats/hardware/health_status",
                      "missing, or as before the first reading"});
  report.warning(reason::kHealthNotMeasured, first->sentence, std::move(evidence), first->action, names);
}

// Cores of all devices that the driver counts without showing a folder.
void report_missing_cores(const HostScan& scan, Report& report) {
  std::vector<Evidence> evidence;
  std::vector<std::string> names;
  for (const NeuronDevice& device : scan.devices) {
    const std::string name = name_of(device);
    for (std::size_t core = 0; core < device.core_health.size(); ++core) {
      if (device.core_health[core].reason != reason::kCoreMissing) continue;
      evidence.push_back({"sys/class/neuron_device/" + name + "/neuron_core" + std::to_string(core), "missing"});
      if (names.empty() || names.back() != name) names.push_back(name);
    }
  }
  if (evidence.empty()) return;
  const std::string cores = counted(evidence.size(), "core");
  report.warning(reason::kCoreMissing,
                 cores + " of " + joined(names) + " cannot be used: core_count exceeds the number of core directories",
                 std::move(evidence),
                 "none if they were masked out (module parameter dev_nc_map); else reload the Neuron driver", names);
}

// One finding for all devices, since a cause such as missing rights is common.
void report_unread(const health::Assessment& node, const std::vector<std::size_t>& positions, Report& report) {
  Shown evidence;
  std::vector<std::string> names;
  for (const std::size_t i : positions) {
    names.push_back(name_of(node.host.devices[i]));
    for (const model::ReadProblem& problem : node.bases[i].unread) evidence.add(rules::evidence_of(problem));
  }
  report.warning(reason::kSignalUnreadable,
                 "health files of " + joined(names) +
                     " are missing or malformed: " + (names.size() == 1 ? "its" : "their") + " health is unknown",
                 evidence.take(), "inspect the kernel log; if that does not help, reload the Neuron driver", names);
}

// One finding per device; "no_signals" and "signal_unreadable", with a common cause, as one for all.
void add_verdicts(const health::Assessment& node, Report& report) {
  const HostScan& scan = node.host;
  std::vector<std::string> silent;
  std::vector<std::size_t> unread;
  for (std::size_t i = 0; i < scan.devices.size(); ++i) {
    const Health& health = scan.devices[i].health;
    if (health.state == HealthState::healthy || has_own_finding(health.reason)) continue;
    const std::string name = name_of(scan.devices[i]);
    if (health.reason == reason::kNoSignals) {
      silent.push_back(name);
      continue;
    }
    if (health.reason == reason::kSignalUnreadable) {
      unread.push_back(i);
      continue;
    }
    const Severity severity = health.state == HealthState::unhealthy ? Severity::error : Severity::warning;
    report.add(severity, health.reason, health.sentence, evidence_of(scan, scan.devices[i], node.bases[i]),
               health.action.empty() ? "wait: it ends by itself" : health.action, {name});
  }
  if (!unread.empty()) report_unread(node, unread, report);
  if (silent.empty() || scan.layout == model::DriverLayout::bare) return;
  report.warning(reason::kNoSignals, "no health file of " + joined(silent) + " could be read: their health is unknown",
                 {{"sys/class/neuron_device/" + silent.front() + "/stats", "nothing readable"}},
                 "inspect the kernel log; as root more files can be read on drivers up to 2.27", silent);
}

// The running agent watches growth; a check reads the counters once and can only report that they are not zero.
void check_core_counters(const NeuronDevice& device, Report& report) {
  constexpr std::size_t kMaxShown = 8;
  std::vector<Evidence> evidence;
  std::set<int> cores;
  for (const CoreSignals& core : device.cores) {
    for (const health::CoreSignal& signal : health::core_signals()) {
      const auto& count = core.*signal.value;
      if (signal.weight != health::Weight::required || !count || *count == 0) continue;
      cores.insert(core.physical_index);
      if (evidence.size() >= kMaxShown) continue;
      evidence.push_back({health::folder_of(device) + "neuron_core" + std::to_string(core.physical_index) + '/' +
                              std::string(signal.path),
                          std::to_string(*count)});
    }
  }
  if (evidence.empty()) return;
  const std::string name = name_of(device);
  report.warning(
      "core_errors",
      name + ": executions met hardware errors since the driver was loaded, on " + counted(cores.size(), "core"),
      std::move(evidence),
      "if they grow, replace the instance; the running agent withdraws the affected units when they do", {name});
}

}  // namespace

void check_health(const health::Assessment& node, Report& report) {
  report_missing(node, report);
  report_unmeasured(node.host, report);
  report_missing_cores(node.host, report);
  report_node(node.host, report);
  add_verdicts(node, report);
  for (const NeuronDevice& device : node.host.devices) check_core_counters(device, report);
}

}  // namespace neuron::preflight::rules
