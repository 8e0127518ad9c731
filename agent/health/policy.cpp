#include "agent/health/policy.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "agent/health/cores.h"
#include "agent/health/efa.h"
#include "agent/health/missing.h"
#include "agent/health/signals.h"

namespace neuron::health {
namespace {

using model::DeviceSignals;
using model::Health;
using model::HealthState;
using model::HostScan;
using model::NeuronDevice;
using model::Presence;
using model::ScanPart;

constexpr std::uint64_t kAllOnes = 65535;  // what a 16-bit register reads as when the device left the bus

// What a scan says about all of its devices.
struct Scene {
  const HostScan& scan;
  std::vector<MissingFiles> missing;
  std::map<int, Heartbeat> heartbeats;
  bool nodes_seen = false;
};

std::string join(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

std::string counted(std::uint64_t count, std::string_view noun) {
  return std::to_string(count) + ' ' + std::string(noun) + (count == 1 ? "" : "s");
}

bool is_count(const DeviceSignal& signal) {
  return signal.value != nullptr && !signal.what.empty();
}

// Not even what every driver since the first shows of a device: its cores, or how many.
bool shows_nothing(const NeuronDevice& device) {
  const bool has_count = device.physical_cores && device.physical_cores->origin == model::Origin::live;
  return !has_count && device.cores.empty() && device.arch.empty() && !device.serial &&
         device.signals == DeviceSignals{};
}

std::optional<Health> judge_presence(const NeuronDevice& device, const std::string& name, const Scene& scene) {
  if (device.presence == Presence::vanished) {
    return make_verdict(HealthState::unhealthy, "device_vanished", name + " left sys/class/neuron_device",
                        "look at the kernel log; reboot or replace the instance");
  }
  if (device.presence == Presence::not_answering) {
    const ScanPart folder{ScanPart::Kind::device, device.index};
    return silent_verdict(scene.scan, name,
                          {folder, {ScanPart::Kind::driver, device.index}, {ScanPart::Kind::devices}});
  }
  if (shows_nothing(device) && !device.problems.empty()) {
    return make_verdict(HealthState::unhealthy, kNothingReadable,
                        name + ": nothing of it can be read (" + device.problems.front() + ')',
                        "look at the kernel log; reload the Neuron driver, or replace the instance");
  }
  if (!device.node_present && scene.nodes_seen) {
    return make_verdict(HealthState::unhealthy, "device_node_missing", "dev/" + name + " does not exist",
                        "restart udev or reload the Neuron driver");
  }
  if (device.signals.unreachable.value_or(false)) {
    return make_verdict(HealthState::unhealthy, "device_unreachable",
                        name + ": stats/hardware/health_status says device_unreachable", action_of(Remedy::replace));
  }
  if (device.signals.reset_state == 2) {
    return make_verdict(HealthState::unhealthy, "device_invalid",
                        name + ": reset reads 2, the driver gave the device up",
                        "reboot; if it stays, replace the instance");
  }
  return std::nullopt;
}

std::optional<Health> judge_counts(const NeuronDevice& device, const std::string& name) {
  for (const DeviceSignal& signal : device_signals()) {
    if (signal.kind == SignalKind::components) {
      const auto& components = device.signals.unhealthy_components;
      if (!components || components->empty()) continue;
      return make_verdict(HealthState::unhealthy, signal.reason,
                          name + ": unhealthy " + join(*components) + " (" + std::string(signal.path) + ")",
                          action_of(signal.remedy));
    }
    if (!is_count(signal)) continue;
    const auto& count = device.signals.*signal.value;
    if (!count || *count == 0 || *count == kAllOnes) continue;
    return make_verdict(HealthState::unhealthy, signal.reason,
                        name + ": " + counted(*count, signal.what) + " (" + std::string(signal.path) + ")",
                        action_of(signal.remedy));
  }
  return std::nullopt;
}

std::optional<Health> judge_heartbeat(const NeuronDevice& device, const std::string& name, const Scene& scene,
                                      Heartbeat which) {
  const auto state = scene.heartbeats.find(device.index);
  if (state == scene.heartbeats.end() || state->second != which) return std::nullopt;
  const std::string seen = name + ": its heartbeat stands still at " + std::to_string(*device.signals.heartbeat) +
                           " (stats/hardware/health_status/healthcheck_heartbeat)";
  if (which == Heartbeat::alone) {
    return make_verdict(HealthState::unhealthy, "heartbeat_stuck",
                        seen + " while those of other devices go on: its firmware is stuck",
                        "drain the node and reboot; if it stays, replace the instance");
  }
  return make_verdict(HealthState::degraded, "heartbeat_stuck",
                      seen + " and no other device's goes on: the firmware or the driver's health thread is stuck",
                      action_of(Remedy::reload));
}

std::optional<Health> judge_unread(const NeuronDevice& device, const std::string& name, const Scene& scene) {
  constexpr std::size_t kMaxNamed = 3;
  const auto lines = unread_signals(scene.scan, device);
  if (lines.empty()) return std::nullopt;
  const std::size_t start = std::string("sys/class/neuron_device/").size() + name.size() + 1;
  std::vector<std::string> named;
  for (std::size_t i = 0; i < lines.size() && i < kMaxNamed; ++i) {
    named.push_back(lines[i].substr(start, lines[i].find(": ") - start));
  }
  const std::string more = lines.size() > kMaxNamed ? " and " + std::to_string(lines.size() - kMaxNamed) + " more" : "";
  return make_verdict(HealthState::unknown, kSignalUnreadable, name + ": no usable value in " + join(named) + more,
                      "look at the kernel log; if it stays, reload the Neuron driver");
}

// Names no device, so that all say the same and whoever lists verdicts says it once.
std::optional<Health> judge_missing(const NeuronDevice& device, const Scene& scene) {
  for (const MissingFiles& missing : scene.missing) {
    if (missing.family != device.family || missing.devices.size() < 2) continue;
    return make_verdict(HealthState::unknown, kSignalsMissing, problem_line(scene.scan, missing),
                        action_for_missing(scene.scan));
  }
  return std::nullopt;
}

bool reads_all_ones(const NeuronDevice& device) {
  return std::any_of(device_signals().begin(), device_signals().end(), [&](const DeviceSignal& signal) {
    return is_count(signal) && device.signals.*signal.value == kAllOnes;
  });
}

bool says_nothing(const NeuronDevice& device) {
  if (device.signals != DeviceSignals{}) return false;
  return std::none_of(core_signals().begin(), core_signals().end(), [&](const CoreSignal& signal) {
    return signal.weight == Weight::required && has_value(device, signal);
  });
}

// What keeps a device from being called healthy although nothing broken is seen; else healthy.
Health judge_doubts(const NeuronDevice& device, const std::string& name, const Scene& scene) {
  if (scene.scan.layout == model::DriverLayout::unknown) {
    return make_verdict(HealthState::unknown, "unknown_layout",
                        name + ": driver " + scene.scan.driver_version + " has a sysfs layout this agent does not know",
                        "update the agent");
  }
  if (reads_all_ones(device)) {
    return make_verdict(HealthState::unknown, "reads_all_ones",
                        name + ": error counts read 65535, as of a device that left the bus", "look at the kernel log");
  }
  if (says_nothing(device)) {
    if (auto health = judge_missing(device, scene)) return *std::move(health);
    return make_verdict(HealthState::unknown, "no_signals", name + ": the driver shows no health files", "");
  }
  if (device.signals.reset_state == 0) {
    return make_verdict(HealthState::degraded, "resetting", name + ": the device is being reset (reset reads 0)", "");
  }
  if (auto health = judge_heartbeat(device, name, scene, Heartbeat::with_all)) return *std::move(health);
  if (auto health = judge_unread(device, name, scene)) return *std::move(health);
  if (auto health = judge_missing(device, scene)) return *std::move(health);
  return {HealthState::healthy, "", "", ""};
}

void judge_device(const NeuronDevice& device, const Scene& scene, HealthMemory& memory, HealthResult& result) {
  const std::string name = "neuron" + std::to_string(device.index);
  const CoreFaults faults = judge_cores(device, name, memory.cores[device.index]);
  std::optional<Health> broken = judge_presence(device, name, scene);
  if (!broken) broken = judge_counts(device, name);
  if (!broken) broken = judge_heartbeat(device, name, scene, Heartbeat::alone);
  if (!broken) broken = faults.of_device;
  const Health own = broken ? *broken : judge_doubts(device, name, scene);
  const auto count = static_cast<std::size_t>(device.physical_cores ? device.physical_cores->value : 0);
  std::vector<Health>& cores = result.cores.emplace_back(count, own);
  // With a core the device as a whole is broken, not its other cores.
  if (!broken) {
    for (const auto& [core, health] : faults.of_cores) {
      if (core >= 0 && static_cast<std::size_t>(core) < count) cores[static_cast<std::size_t>(core)] = health;
    }
  }
  result.devices.push_back(broken || !faults.worst_core ? own : *faults.worst_core);
}

// What a device that left the bus reads as is no count, for whoever looks at the scan next.
void forget_all_ones(NeuronDevice& device) {
  for (const DeviceSignal& signal : device_signals()) {
    if (signal.value == nullptr) continue;
    std::optional<std::uint64_t>& count = device.signals.*signal.value;
    if (count == kAllOnes) count.reset();
  }
}

void judge_devices(HostScan& scan, HealthMemory& memory, SteadyTime now, HealthResult& result) {
  for (const NeuronDevice& device : scan.devices) {
    memory.device_nodes_seen = memory.device_nodes_seen || device.node_present;
  }
  const Scene scene{scan, missing_everywhere(scan), watch_heartbeats(scan, memory.heartbeats, now),
                    memory.device_nodes_seen};
  for (const NeuronDevice& device : scan.devices) judge_device(device, scene, memory, result);
  for (NeuronDevice& device : scan.devices) forget_all_ones(device);
}

}  // namespace

HealthResult judge(HostScan& scan, HealthMemory& memory, SteadyTime now) {
  HealthResult result;
  judge_devices(scan, memory, now, result);
  result.efas = judge_efas(scan, memory);
  return result;
}

}  // namespace neuron::health
