#include "agent/core/health_policy.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace neuron::core {
namespace {

using model::CoreSignals;
using model::DeviceSignals;
using model::EfaInterface;
using model::Health;
using model::HealthState;
using model::HostScan;
using model::NeuronDevice;

constexpr std::string_view kReplace = "replace the instance (terminate, or stop and start)";
constexpr std::string_view kReload = "drain the node, then reload the Neuron driver or reboot";
constexpr std::uint64_t kAllOnes = 65535;  // what a 16-bit register reads as when the device left the bus

// A count that must be zero on a sound device (neuron-driver.md §6, §7, §16).
struct EccRule {
  std::optional<std::uint64_t> DeviceSignals::*field;
  std::string_view reason;
  std::string_view what;
  std::string_view path;
  std::string_view action;
};

constexpr std::array<EccRule, 6> kEccRules = {{
    {&DeviceSignals::sram_ecc_uncorrected, "sram_ecc_uncorrected", "uncorrected SRAM errors",
     "stats/hardware/sram_ecc_uncorrected", kReplace},
    {&DeviceSignals::sram_ecc_errors, "sram_ecc_uncorrected", "uncorrected SRAM errors",
     "stats/hardware/health_status/sram_ecc_err_count", kReplace},
    {&DeviceSignals::mem_ecc_uncorrected, "mem_ecc_uncorrected", "uncorrected HBM errors",
     "stats/hardware/mem_ecc_uncorrected", kReplace},
    {&DeviceSignals::hbm_ecc_errors, "mem_ecc_uncorrected", "uncorrected HBM errors",
     "stats/hardware/health_status/hbm_ecc_err_count", kReplace},
    {&DeviceSignals::mem_ecc_repairable_uncorrected, "mem_ecc_repairable_uncorrected", "repairable HBM errors",
     "stats/hardware/mem_ecc_repairable_uncorrected", kReload},
    {&DeviceSignals::repairable_hbm_ecc_errors, "mem_ecc_repairable_uncorrected", "repairable HBM errors",
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

Health verdict(HealthState state, std::string_view reason, std::string sentence, std::string_view action) {
  return {state, std::string(reason), std::move(sentence), std::string(action)};
}

Health healthy() {
  return {HealthState::healthy, "", "", ""};
}

std::string join(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

std::optional<Health> judge_presence(const NeuronDevice& device, const std::string& name, bool nodes_seen) {
  if (!device.node_present && nodes_seen) {
    return verdict(HealthState::unhealthy, "device_node_missing", "dev/" + name + " does not exist",
                   "restart udev or reload the Neuron driver");
  }
  if (device.signals.unreachable.value_or(false)) {
    return verdict(HealthState::unhealthy, "device_unreachable",
                   name + ": stats/hardware/health_status says device_unreachable", kReplace);
  }
  if (device.signals.reset_state == 2) {
    return verdict(HealthState::unhealthy, "device_invalid", name + ": reset reads 2, the driver gave the device up",
                   "reboot; if it stays, replace the instance");
  }
  return std::nullopt;
}

std::optional<Health> judge_device_counts(const NeuronDevice& device, const std::string& name) {
  for (const EccRule& rule : kEccRules) {
    const auto& count = device.signals.*rule.field;
    if (!count || *count == 0 || *count == kAllOnes) continue;
    return verdict(
        HealthState::unhealthy, rule.reason,
        name + ": " + std::to_string(*count) + " " + std::string(rule.what) + " (" + std::string(rule.path) + ")",
        rule.action);
  }
  const auto& components = device.signals.unhealthy_components;
  if (!components || components->empty()) return std::nullopt;
  return verdict(HealthState::unhealthy, "unhealthy_components",
                 name + ": unhealthy " + join(*components) + " (stats/hardware/health_status/unhealthy_components)",
                 kReplace);
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
      found = verdict(HealthState::unhealthy, rule.name,
                      name + ": core " + std::to_string(core.physical_index) + " counted " +
                          std::to_string(*count - baseline) + " new hardware errors (" + path + ")",
                      rule.action);
    }
  }
  return found;
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
  const auto cores = judge_cores(device, name, memory.cores[device.index]);
  if (auto health = judge_presence(device, name, memory.device_nodes_seen)) return *std::move(health);
  if (auto health = judge_device_counts(device, name)) return *std::move(health);
  if (cores) return *cores;
  if (scan.layout == model::DriverLayout::unknown) {
    return verdict(HealthState::unknown, "unknown_layout",
                   name + ": driver " + scan.driver_version + " has a sysfs layout this agent does not know",
                   "update the agent");
  }
  if (reads_all_ones(device)) {
    return verdict(HealthState::unknown, "reads_all_ones",
                   name + ": error counts read 65535, as of a device that left the bus", "look at the kernel log");
  }
  if (says_nothing(device)) {
    return verdict(HealthState::unknown, "no_signals", name + ": the driver shows no health files", "");
  }
  if (device.signals.reset_state == 0) {
    return verdict(HealthState::degraded, "resetting", name + ": the device is being reset (reset reads 0)", "");
  }
  return healthy();
}

// A device that is gone keeps its place, without values that nobody reads any more.
NeuronDevice ghost_of(const NeuronDevice& device) {
  NeuronDevice ghost = device;
  ghost.node_present = false;
  ghost.signals = {};
  ghost.cores.clear();
  ghost.processes.reset();
  ghost.problems.clear();
  return ghost;
}

void judge_devices(HostScan& scan, HealthMemory& memory, std::vector<Health>& out) {
  std::map<int, NeuronDevice> gone = memory.last_seen;
  for (const NeuronDevice& device : scan.devices) {
    memory.device_nodes_seen = memory.device_nodes_seen || device.node_present;
    gone.erase(device.index);
    memory.last_seen[device.index] = device;
  }
  for (const auto& [index, device] : gone) scan.devices.push_back(ghost_of(device));
  std::sort(scan.devices.begin(), scan.devices.end(),
            [](const NeuronDevice& a, const NeuronDevice& b) { return a.index < b.index; });
  for (const NeuronDevice& device : scan.devices) {
    if (gone.contains(device.index)) {
      out.push_back(verdict(HealthState::unhealthy, "device_vanished",
                            "neuron" + std::to_string(device.index) + " left sys/class/neuron_device",
                            "look at the kernel log; reboot or replace the instance"));
    } else {
      out.push_back(judge_device(device, scan, memory));
    }
  }
}

std::string label_of(const EfaInterface& efa) {
  return efa.name.empty() ? model::to_string(efa.bdf) : efa.name + " (" + model::to_string(efa.bdf) + ")";
}

Health judge_verbs(const EfaInterface& efa, bool none_has_verbs) {
  if (efa.uverbs) {
    return verdict(HealthState::unhealthy, "verbs_node_missing",
                   label_of(efa) + ": dev/infiniband/" + *efa.uverbs + " does not exist",
                   "restart udev or reload ib_uverbs");
  }
  if (none_has_verbs) {
    return verdict(HealthState::unhealthy, "ib_uverbs_not_loaded",
                   label_of(efa) + ": EFA is present but unusable: ib_uverbs is not loaded", "modprobe ib_uverbs");
  }
  return verdict(HealthState::unhealthy, "verbs_missing",
                 label_of(efa) + ": no entry in sys/class/infiniband_verbs names it", "reload the efa driver");
}

Health judge_efa(const EfaInterface& efa, bool none_has_verbs, bool nodes_seen, bool neuron_node) {
  if (!efa.driver_bound) {
    return verdict(HealthState::unhealthy, "efa_driver_unbound", label_of(efa) + ": no efa driver is bound to it",
                   "load the efa driver, or bind it to the function");
  }
  if (efa.name.empty()) {
    return verdict(HealthState::unhealthy, "rdma_device_missing",
                   label_of(efa) + ": the driver is bound but shows no RDMA device", "look at the kernel log");
  }
  if (!efa.uverbs || (!efa.node_present && nodes_seen)) return judge_verbs(efa, none_has_verbs);
  if (neuron_node && efa.p2p && efa.p2p->empty()) {
    return verdict(HealthState::degraded, "no_peer_memory",
                   label_of(efa) + ": p2p is empty, no RDMA to and from Neuron memory",
                   "load the Neuron driver, or update the efa driver");
  }
  return healthy();
}

void judge_efas(HostScan& scan, HealthMemory& memory, std::vector<Health>& out) {
  std::map<model::Bdf, EfaInterface> gone = memory.last_efas;
  for (EfaInterface& efa : scan.efas) {
    memory.verbs_nodes_seen = memory.verbs_nodes_seen || efa.node_present;
    const auto known = gone.extract(efa.bdf);
    if (!efa.name.empty()) {
      memory.last_efas[efa.bdf] = efa;
    } else if (known) {
      efa.name = known.mapped().name;
    }
  }
  const bool none_has_verbs =
      std::none_of(scan.efas.begin(), scan.efas.end(), [](const EfaInterface& efa) { return efa.uverbs.has_value(); });
  for (auto& [bdf, efa] : gone) {
    efa.driver_bound = false;
    efa.node_present = false;
    efa.uverbs.reset();
    efa.p2p.reset();
    efa.problems.clear();
    scan.efas.push_back(efa);
  }
  std::sort(scan.efas.begin(), scan.efas.end(),
            [](const EfaInterface& a, const EfaInterface& b) { return a.bdf < b.bdf; });
  for (const EfaInterface& efa : scan.efas) {
    if (gone.contains(efa.bdf)) {
      out.push_back(verdict(HealthState::unhealthy, "efa_vanished", label_of(efa) + " left the PCI bus",
                            "look at the kernel log; reboot or replace the instance"));
    } else {
      out.push_back(judge_efa(efa, none_has_verbs, memory.verbs_nodes_seen, !scan.devices.empty()));
    }
  }
}

}  // namespace

HealthResult judge(HostScan& scan, HealthMemory& memory) {
  HealthResult result;
  judge_devices(scan, memory, result.devices);
  judge_efas(scan, memory, result.efas);
  return result;
}

}  // namespace neuron::core
