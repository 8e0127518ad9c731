#include "agent/core/health_policy.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "agent/core/health_efa.h"

namespace neuron::core {
namespace {

using model::CoreSignals;
using model::DeviceSignals;
using model::Health;
using model::HealthState;
using model::HostScan;
using model::NeuronDevice;
using model::Presence;
using model::ScanPart;

constexpr std::string_view kReplace = "replace the instance (terminate, or stop and start)";
constexpr std::string_view kReload = "drain the node, then reload the Neuron driver or reboot";
constexpr std::uint64_t kAllOnes = 65535;  // what a 16-bit register reads as when the device left the bus

// A count that must be zero on a sound device (neuron-driver.md §6, §7, §16).
struct EccRule {
  std::optional<std::uint64_t> DeviceSignals::*field;
  std::string_view reason;
  std::string_view what;  // one of them; more take an "s"
  std::string_view path;
  std::string_view action;
  bool in_every_new_layout = false;  // every driver from 2.28 on shows it
};

constexpr std::array<EccRule, 6> kEccRules = {{
    {&DeviceSignals::sram_ecc_uncorrected, "sram_ecc_uncorrected", "uncorrected SRAM error",
     "stats/hardware/sram_ecc_uncorrected", kReplace, true},
    {&DeviceSignals::sram_ecc_errors, "sram_ecc_uncorrected", "uncorrected SRAM error",
     "stats/hardware/health_status/sram_ecc_err_count", kReplace},
    {&DeviceSignals::mem_ecc_uncorrected, "mem_ecc_uncorrected", "uncorrected HBM error",
     "stats/hardware/mem_ecc_uncorrected", kReplace, true},
    {&DeviceSignals::hbm_ecc_errors, "mem_ecc_uncorrected", "uncorrected HBM error",
     "stats/hardware/health_status/hbm_ecc_err_count", kReplace},
    {&DeviceSignals::mem_ecc_repairable_uncorrected, "mem_ecc_repairable_uncorrected", "repairable HBM error",
     "stats/hardware/mem_ecc_repairable_uncorrected", kReload, true},
    {&DeviceSignals::repairable_hbm_ecc_errors, "mem_ecc_repairable_uncorrected", "repairable HBM error",
     "stats/hardware/health_status/repairable_hbm_ecc_err_count", kReload},
}};

// Per-core counters whose growth is a hardware fault (neuron-driver.md §8, §16), the gravest first.
struct CoreRule {
  std::optional<std::uint64_t> CoreSignals::*field;
  std::string_view name;
  std::string_view action;
};

constexpr std::array<CoreRule, 5> kCoreRules = {{
    {&CoreSignals::hw_nc_ue_error, "hw_nc_ue_error", kReplace},
    {&CoreSignals::hw_hbm_ue_error, "hw_hbm_ue_error", kReplace},
    {&CoreSignals::hw_dma_abort_error, "hw_dma_abort_error", kReplace},
    {&CoreSignals::hw_error, "hw_error", kReplace},
    {&CoreSignals::hw_repairable_hbm_ue_error, "hw_repairable_hbm_ue_error", kReload},
}};

Health healthy() {
  return {HealthState::healthy, "", "", ""};
}

std::string join(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

std::string counted(std::uint64_t count, std::string_view noun) {
  return std::to_string(count) + ' ' + std::string(noun) + (count == 1 ? "" : "s");
}

std::optional<Health> judge_presence(const NeuronDevice& device, const std::string& name, bool nodes_seen) {
  if (!device.node_present && nodes_seen) {
    return make_verdict(HealthState::unhealthy, "device_node_missing", "dev/" + name + " does not exist",
                        "restart udev or reload the Neuron driver");
  }
  if (device.signals.unreachable.value_or(false)) {
    return make_verdict(HealthState::unhealthy, "device_unreachable",
                        name + ": stats/hardware/health_status says device_unreachable", kReplace);
  }
  if (device.signals.reset_state == 2) {
    return make_verdict(HealthState::unhealthy, "device_invalid",
                        name + ": reset reads 2, the driver gave the device up",
                        "reboot; if it stays, replace the instance");
  }
  return std::nullopt;
}

std::optional<Health> judge_device_counts(const NeuronDevice& device, const std::string& name) {
  for (const EccRule& rule : kEccRules) {
    const auto& count = device.signals.*rule.field;
    if (!count || *count == 0 || *count == kAllOnes) continue;
    return make_verdict(HealthState::unhealthy, rule.reason,
                        name + ": " + counted(*count, rule.what) + " (" + std::string(rule.path) + ")", rule.action);
  }
  const auto& components = device.signals.unhealthy_components;
  if (!components || components->empty()) return std::nullopt;
  return make_verdict(
      HealthState::unhealthy, "unhealthy_components",
      name + ": unhealthy " + join(*components) + " (stats/hardware/health_status/unhealthy_components)", kReplace);
}

// Compares with the first sight and moves the baseline down when a counter was cleared. Looks at every counter, so that
// no baseline is missed, and reports the first rule that broke.
std::optional<Health> judge_cores(const NeuronDevice& device, const std::string& name,
                                  std::map<int, HealthMemory::CoreBaseline>& baselines) {
  std::optional<Health> found;
  for (const CoreRule& rule : kCoreRules) {
    for (const CoreSignals& core : device.cores) {
      const auto& count = core.*rule.field;
      if (!count) continue;
      auto& counters = baselines[core.physical_index].counters;
      std::uint64_t& baseline = counters.try_emplace(std::string(rule.name), *count).first->second;
      baseline = std::min(baseline, *count);
      if (*count == baseline || found) continue;
      const std::string path =
          "neuron_core" + std::to_string(core.physical_index) + "/stats/status/" + std::string(rule.name) + "/total";
      found = make_verdict(HealthState::unhealthy, rule.name,
                           name + ": core " + std::to_string(core.physical_index) + " counted " +
                               counted(*count - baseline, "new hardware error") + " (" + path + ")",
                           rule.action);
    }
  }
  return found;
}

// Where the lines of NeuronDevice::problems about this device begin.
std::string folder_of(const NeuronDevice& device) {
  return "sys/class/neuron_device/neuron" + std::to_string(device.index) + '/';
}

// Whether a verdict rests on the file that a line of NeuronDevice::problems is about.
bool is_health_problem(std::string_view line, std::string_view folder) {
  if (!line.starts_with(folder)) return false;
  const std::string_view file = line.substr(folder.size());
  return file.starts_with("stats/hardware/") || file.starts_with("reset:") ||
         file.find("/stats/status/hw_") != std::string_view::npos;
}

// Of one driver, devices of one chip show the same files: what half of them have, each should have.
template <typename Has>
bool usual(const HostScan& scan, const NeuronDevice& device, Has has) {
  std::size_t alike = 0;
  std::size_t having = 0;
  for (const NeuronDevice& other : scan.devices) {
    if (other.family != device.family || other.presence != Presence::present) continue;
    ++alike;
    if (has(other)) ++having;
  }
  return having > 0 && 2 * having >= alike;
}

bool has_counter(const CoreSignals& core, const CoreRule& rule) {
  return (core.*rule.field).has_value();
}

// Files that this device should have, since devices of the same chip or all drivers of its layout have them, and that
// are not there.
std::vector<std::string> absent_files(const HostScan& scan, const NeuronDevice& device) {
  std::vector<std::string> paths;
  const bool new_layout =
      scan.layout == model::DriverLayout::health_v1 || scan.layout == model::DriverLayout::health_v2;
  for (const EccRule& rule : kEccRules) {
    if (device.signals.*rule.field) continue;
    const auto has = [&](const NeuronDevice& other) { return (other.signals.*rule.field).has_value(); };
    if ((rule.in_every_new_layout && new_layout) || usual(scan, device, has)) paths.emplace_back(rule.path);
  }
  const auto has_components = [](const NeuronDevice& other) { return other.signals.unhealthy_components.has_value(); };
  if (!has_components(device) && usual(scan, device, has_components)) {
    paths.emplace_back("stats/hardware/health_status/unhealthy_components");
  }
  for (const CoreRule& rule : kCoreRules) {
    const auto has = [&](const CoreSignals& core) { return has_counter(core, rule); };
    const bool expected =
        std::any_of(device.cores.begin(), device.cores.end(), has) || usual(scan, device, [&](const auto& other) {
          return std::any_of(other.cores.begin(), other.cores.end(), has);
        });
    if (expected && device.cores.empty()) paths.push_back("neuron_core*/stats/status/" + std::string(rule.name));
    for (const CoreSignals& core : device.cores) {
      if (!expected || has(core)) continue;
      paths.push_back("neuron_core" + std::to_string(core.physical_index) + "/stats/status/" + std::string(rule.name) +
                      "/total");
    }
  }
  return paths;
}

std::optional<Health> judge_unread(const HostScan& scan, const NeuronDevice& device, const std::string& name) {
  constexpr std::size_t kMaxNamed = 3;
  const auto lines = unread_signals(scan, device);
  if (lines.empty()) return std::nullopt;
  const std::size_t start = folder_of(device).size();
  std::vector<std::string> named;
  for (std::size_t i = 0; i < lines.size() && i < kMaxNamed; ++i) {
    named.push_back(lines[i].substr(start, lines[i].find(": ") - start));
  }
  const std::string more = lines.size() > kMaxNamed ? " and " + std::to_string(lines.size() - kMaxNamed) + " more" : "";
  return make_verdict(HealthState::unknown, kSignalUnreadable, name + ": no usable value in " + join(named) + more,
                      "look at the kernel log; if it stays, reload the Neuron driver");
}

bool reads_all_ones(const NeuronDevice& device) {
  return std::any_of(kEccRules.begin(), kEccRules.end(),
                     [&](const EccRule& rule) { return device.signals.*rule.field == kAllOnes; });
}

bool says_nothing(const NeuronDevice& device) {
  if (device.signals != DeviceSignals{}) return false;
  return std::none_of(device.cores.begin(), device.cores.end(), [](const CoreSignals& core) {
    return std::any_of(kCoreRules.begin(), kCoreRules.end(),
                       [&](const CoreRule& rule) { return (core.*rule.field).has_value(); });
  });
}

Health judge_device(const NeuronDevice& device, const HostScan& scan, HealthMemory& memory) {
  const std::string name = "neuron" + std::to_string(device.index);
  if (device.presence == Presence::vanished) {
    return make_verdict(HealthState::unhealthy, "device_vanished", name + " left sys/class/neuron_device",
                        "look at the kernel log; reboot or replace the instance");
  }
  if (device.presence == Presence::not_answering) {
    const ScanPart folder{ScanPart::Kind::device, device.index};
    return silent_verdict(scan, name, {folder, {ScanPart::Kind::driver, device.index}, {ScanPart::Kind::devices}});
  }
  const auto cores = judge_cores(device, name, memory.cores[device.index]);
  if (auto health = judge_presence(device, name, memory.device_nodes_seen)) return *std::move(health);
  if (auto health = judge_device_counts(device, name)) return *std::move(health);
  if (cores) return *cores;
  if (scan.layout == model::DriverLayout::unknown) {
    return make_verdict(HealthState::unknown, "unknown_layout",
                        name + ": driver " + scan.driver_version + " has a sysfs layout this agent does not know",
                        "update the agent");
  }
  if (reads_all_ones(device)) {
    return make_verdict(HealthState::unknown, "reads_all_ones",
                        name + ": error counts read 65535, as of a device that left the bus", "look at the kernel log");
  }
  if (says_nothing(device)) {
    return make_verdict(HealthState::unknown, "no_signals", name + ": the driver shows no health files", "");
  }
  if (device.signals.reset_state == 0) {
    return make_verdict(HealthState::degraded, "resetting", name + ": the device is being reset (reset reads 0)", "");
  }
  if (auto health = judge_unread(scan, device, name)) return *std::move(health);
  return healthy();
}

// What a device that left the bus reads as is no count, for whoever looks at the scan next.
void forget_all_ones(NeuronDevice& device) {
  const auto forget = [](std::optional<std::uint64_t>& count) {
    if (count == kAllOnes) count.reset();
  };
  for (const EccRule& rule : kEccRules) forget(device.signals.*rule.field);
  forget(device.signals.sram_ecc_corrected);
  forget(device.signals.mem_ecc_corrected);
  forget(device.signals.hw_error_events);
}

void judge_devices(HostScan& scan, HealthMemory& memory, std::vector<Health>& out) {
  for (const NeuronDevice& device : scan.devices) {
    memory.device_nodes_seen = memory.device_nodes_seen || device.node_present;
  }
  for (const NeuronDevice& device : scan.devices) out.push_back(judge_device(device, scan, memory));
  for (NeuronDevice& device : scan.devices) forget_all_ones(device);
}

}  // namespace

std::vector<std::string> unread_signals(const HostScan& scan, const NeuronDevice& device) {
  const std::string folder = folder_of(device);
  std::vector<std::string> lines;
  for (const std::string& line : device.problems) {
    if (is_health_problem(line, folder)) lines.push_back(line);
  }
  for (const std::string& path : absent_files(scan, device)) {
    const std::string start = folder + path + ':';
    const bool told =
        std::any_of(lines.begin(), lines.end(), [&](const auto& line) { return line.starts_with(start); });
    if (!told) lines.push_back(start + " not there");
  }
  return lines;
}

HealthResult judge(HostScan& scan, HealthMemory& memory) {
  HealthResult result;
  judge_devices(scan, memory, result.devices);
  result.efas = judge_efas(scan, memory);
  return result;
}

}  // namespace neuron::core
