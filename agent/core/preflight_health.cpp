// The health policy's verdicts at first sight, as findings.

#include <algorithm>
#include <array>
#include <set>

#include "agent/core/health_policy.h"
#include "agent/core/preflight_rules.h"

namespace neuron::core::preflight_rules {
namespace {

using model::CoreSignals;
using model::DeviceSignals;
using model::Health;
using model::HealthState;
using model::HostScan;
using model::NeuronDevice;

constexpr std::string_view kHardware = "stats/hardware/";

struct CountFile {
  std::optional<std::uint64_t> DeviceSignals::*field;
  std::string_view reason;
  std::string_view path;  // below stats/hardware/
};
constexpr std::array<CountFile, 6> kCountFiles = {{
    {&DeviceSignals::sram_ecc_uncorrected, "sram_ecc_uncorrected", "sram_ecc_uncorrected"},
    {&DeviceSignals::sram_ecc_errors, "sram_ecc_uncorrected", "health_status/sram_ecc_err_count"},
    {&DeviceSignals::mem_ecc_uncorrected, "mem_ecc_uncorrected", "mem_ecc_uncorrected"},
    {&DeviceSignals::hbm_ecc_errors, "mem_ecc_uncorrected", "health_status/hbm_ecc_err_count"},
    {&DeviceSignals::mem_ecc_repairable_uncorrected, "mem_ecc_repairable_uncorrected",
     "mem_ecc_repairable_uncorrected"},
    {&DeviceSignals::repairable_hbm_ecc_errors, "mem_ecc_repairable_uncorrected",
     "health_status/repairable_hbm_ecc_err_count"},
}};

// What the verdict rests on; never empty.
std::vector<Evidence> evidence_of(const NeuronDevice& device, const std::string& reason) {
  const std::string base = "sys/class/neuron_device/neuron" + std::to_string(device.index) + '/';
  const std::string hardware = base + std::string(kHardware);
  std::vector<Evidence> evidence;
  for (const CountFile& file : kCountFiles) {
    const auto& count = device.signals.*file.field;
    const bool is_it = reason == file.reason || (reason == "reads_all_ones" && count == 65535U);
    if (is_it && count && *count != 0) evidence.push_back({hardware + std::string(file.path), std::to_string(*count)});
  }
  if (reason == "unhealthy_components" && device.signals.unhealthy_components) {
    evidence.push_back({hardware + "health_status/unhealthy_components", joined(*device.signals.unhealthy_components)});
  }
  if (reason == "device_unreachable") evidence.push_back({hardware + "health_status", "device_unreachable"});
  if (device.signals.reset_state && (reason == "device_invalid" || reason == "resetting")) {
    evidence.push_back({base + "reset", std::to_string(*device.signals.reset_state)});
  }
  if (evidence.empty()) evidence.push_back({base + "stats", reason});
  return evidence;
}

// Verdicts that are findings of the node elsewhere.
bool has_own_finding(const std::string& reason) {
  return reason == "unknown_layout" || reason == "device_node_missing";
}

// One finding for all devices, since a cause such as missing rights is one for all.
void report_unread(const HostScan& scan, const std::vector<const NeuronDevice*>& devices, Report& report) {
  constexpr std::size_t kMaxShown = 8;
  std::vector<Evidence> evidence;
  std::vector<std::string> names;
  std::size_t left = 0;
  for (const NeuronDevice* device : devices) {
    names.push_back("neuron" + std::to_string(device->index));
    for (const std::string& line : unread_signals(scan, *device)) {
      const auto colon = line.find(": ");
      if (evidence.size() == kMaxShown) {
        ++left;
      } else {
        evidence.push_back({line.substr(0, colon), line.substr(colon + 2)});
      }
    }
  }
  if (left > 0) evidence.push_back({"...", "and " + std::to_string(left) + " more"});
  report.warning("signal_unreadable",
                 "health files of " + joined(names) +
                     " are missing or make no sense: " + (names.size() == 1 ? "its" : "their") + " health is unknown",
                 std::move(evidence), "look at the kernel log; if it stays, reload the Neuron driver", names);
}

// One finding per device; "no_signals" and "signal_unreadable", which are one cause for all, as one.
void add_verdicts(const HostScan& scan, const std::vector<Health>& verdicts, Report& report) {
  std::vector<std::string> silent;
  std::vector<const NeuronDevice*> unread;
  for (std::size_t i = 0; i < scan.devices.size() && i < verdicts.size(); ++i) {
    const Health& health = verdicts[i];
    if (health.state == HealthState::healthy || has_own_finding(health.reason)) continue;
    const std::string name = "neuron" + std::to_string(scan.devices[i].index);
    if (health.reason == "no_signals") {
      silent.push_back(name);
      continue;
    }
    if (health.reason == kSignalUnreadable) {
      unread.push_back(&scan.devices[i]);
      continue;
    }
    const Severity severity = health.state == HealthState::unhealthy ? Severity::error : Severity::warning;
    report.add(severity, health.reason, health.sentence, evidence_of(scan.devices[i], health.reason),
               health.action.empty() ? "wait: it ends by itself" : health.action, {name});
  }
  if (!unread.empty()) report_unread(scan, unread, report);
  if (silent.empty() || scan.layout == model::DriverLayout::bare) return;
  report.warning("no_signals", "no health file of " + joined(silent) + " could be read: their health is unknown",
                 {{"sys/class/neuron_device/" + silent.front() + "/stats", "nothing readable"}},
                 "look at the kernel log; as root more files can be read on drivers up to 2.27", silent);
}

struct CoreFile {
  std::optional<std::uint64_t> CoreSignals::*field;
  std::string_view name;
};
constexpr std::array<CoreFile, 5> kCoreFiles = {{
    {&CoreSignals::hw_nc_ue_error, "hw_nc_ue_error"},
    {&CoreSignals::hw_hbm_ue_error, "hw_hbm_ue_error"},
    {&CoreSignals::hw_dma_abort_error, "hw_dma_abort_error"},
    {&CoreSignals::hw_error, "hw_error"},
    {&CoreSignals::hw_repairable_hbm_ue_error, "hw_repairable_hbm_ue_error"},
}};

// The running agent judges growth; a check sees the counters once and can only say that they are not zero.
void check_core_counters(const NeuronDevice& device, Report& report) {
  constexpr std::size_t kMaxShown = 8;
  std::vector<Evidence> evidence;
  std::set<int> cores;
  for (const CoreSignals& core : device.cores) {
    for (const CoreFile& file : kCoreFiles) {
      const auto& count = core.*file.field;
      if (!count || *count == 0) continue;
      cores.insert(core.physical_index);
      if (evidence.size() >= kMaxShown) continue;
      evidence.push_back({"sys/class/neuron_device/neuron" + std::to_string(device.index) + "/neuron_core" +
                              std::to_string(core.physical_index) + "/stats/status/" + std::string(file.name) +
                              "/total",
                          std::to_string(*count)});
    }
  }
  if (evidence.empty()) return;
  const std::string name = "neuron" + std::to_string(device.index);
  report.warning(
      "core_errors",
      name + ": executions met hardware errors since the driver was loaded, on " + counted(cores.size(), "core"),
      std::move(evidence), "if they grow, replace the instance; the running agent withdraws the device when they do",
      {name});
}

}  // namespace

void check_health(const HostScan& scan, Report& report) {
  HostScan judged = scan;
  HealthMemory memory;
  const HealthResult result = judge(judged, memory);
  add_verdicts(scan, result.devices, report);  // nothing vanishes at first sight, so that the two are parallel
  for (const NeuronDevice& device : scan.devices) check_core_counters(device, report);
}

}  // namespace neuron::core::preflight_rules
