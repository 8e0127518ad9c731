#include "agent/health/assess.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/base/parse.h"
#include "agent/health/kernel_errors.h"
#include "agent/health/reasons.h"
#include "agent/health/signals.h"

namespace neuron::health {
namespace {

using model::CoreSignals;
using model::DeviceSignals;
using model::Health;
using model::kSerialOfOnes;
using model::NeuronDevice;
using model::Presence;
using model::ScanPart;

struct CoreFaults {
  std::optional<model::Health> of_device;   // a core's fault in what all cores share
  std::map<int, model::Health> of_cores;    // physical core -> a fault of its own, or a missing folder
  std::optional<model::Health> worst_core;  // the gravest of `of_cores`
};

struct Subject {
  const NeuronDevice& device;
  std::string name;  // "neuron3"
};

bool is_count_of_faults(const DeviceSignal& signal) {
  return signal.value != nullptr && !signal.what.empty();
}

// Whether the value of that file is what a register of ones gives.
bool reads_ones(const DeviceSignals& signals, const DeviceSignal& signal) {
  if (signal.value == nullptr || signal.kind == SignalKind::counter || signal.kind == SignalKind::heartbeat)
    return false;
  const auto& count = signals.*signal.value;
  return count && (is_all_ones(*count) || (signal.kind == SignalKind::hbm && hbm_reads_ones(signals)));
}

// Not even what every driver since the first shows of a device: its cores, or how many.
bool shows_nothing(const NeuronDevice& device) {
  const bool has_count = device.physical_cores && device.physical_cores->origin == model::Origin::live;
  return !has_count && device.cores.empty() && device.arch.empty() && !device.serial &&
         device.signals == DeviceSignals{};
}

// Whether it is there and answers.
std::optional<Health> absence_fault(const Subject& subject, const DeviceContext& context) {
  using Kind = ScanPart::Kind;
  const auto& [device, name] = subject;
  switch (device.presence) {
    case Presence::present:
      return std::nullopt;
    case Presence::vanished:
      return verdict(reasons::kDeviceVanished, name + " vanished from sys/class/neuron_device");
    case Presence::unread:
      return verdict_on_unread_list(context.scan, name, "sys/class/neuron_device");
    case Presence::not_answering:
      return verdict_on_silence(context.scan, name,
                                {{Kind::device, device.index}, {Kind::driver, device.index}, {Kind::devices}});
  }
  return std::nullopt;
}

// Whether it can be read, opened and reached.
Health access_fault(const Subject& subject, const DeviceContext& context, const DeviceBasis& basis) {
  const auto& [device, name] = subject;
  if (shows_nothing(device) && !device.problems.empty()) {
    return verdict(reasons::kNothingReadable,
                   name + ": none of its files can be read (" + sentence(device.problems.front()) + ')');
  }
  if (basis.off_the_bus) {
    return verdict(reasons::kOffTheBus, name + " is off the bus: its registers read all ones (" +
                                            basis.all_ones.front().first + " shows " + basis.all_ones.front().second +
                                            ')');
  }
  Health fault = healthy();
  if (!device.node_present && context.nodes_seen) {
    keep_graver(fault, verdict(reasons::kDeviceNodeMissing, "dev/" + name + " does not exist"));
  }
  if (device.signals.unreachable.value_or(false)) {
    keep_graver(fault, verdict(reasons::kDeviceUnreachable,
                               name + ": stats/hardware/health_status reports device_unreachable"));
  }
  if (device.signals.reset_state == 2) {
    keep_graver(fault, verdict(reasons::kDeviceInvalid, name + ": reset reads 2, the driver gave up on the device"));
  }
  return fault;
}

// The file that the count is from, with the number that it shows where that is another.
std::string source_of(const NeuronDevice& device, const DeviceSignal& signal) {
  const auto& packed = device.signals.hbm_packed;
  if (signal.kind != SignalKind::hbm || !packed) return std::string(signal.path);
  return std::to_string(packed->value) + " in stats/hardware/mem_ecc" + (packed->as_repairable ? "_repairable" : "") +
         "_uncorrected, which packs both counts";
}

// Faults by counts and named components.
Health signal_fault(const Subject& subject) {
  const auto& [device, name] = subject;
  Health fault = healthy();
  for (const DeviceSignal& signal : device_signals()) {
    const std::string file = " (" + source_of(device, signal) + ")";
    if (signal.kind == SignalKind::components) {
      const auto& components = device.signals.unhealthy_components;
      if (!components || components->empty()) continue;
      keep_graver(fault, verdict(*signal.reason, name + ": unhealthy " + joined(*components) + file));
    }
    if (!is_count_of_faults(signal)) continue;
    const auto& count = device.signals.*signal.value;
    if (!count || *count == 0 || reads_ones(device.signals, signal)) continue;
    keep_graver(fault, verdict(*signal.reason, name + ": " + counted(*count, signal.what) + file));
  }
  return fault;
}

std::optional<Health> heartbeat_fault(const Subject& subject, const DeviceContext& context, Heartbeat which) {
  const auto& [device, name] = subject;
  const auto state = context.heartbeats.find(device.index);
  if (state == context.heartbeats.end() || state->second != which) return std::nullopt;
  const std::string seen = name + ": its heartbeat has stopped at " + std::to_string(*device.signals.heartbeat) +
                           " (stats/hardware/health_status/healthcheck_heartbeat)";
  if (which == Heartbeat::alone) {
    return verdict(reasons::kHeartbeatStuck, seen + " while those of other devices advance: its firmware is stuck");
  }
  return verdict(reasons::kHeartbeatsStuck,
                 seen + " and no other device's advances: the firmware or the driver's health thread is stuck");
}

std::optional<Health> verdict_on_unread(const Subject& subject, const DeviceBasis& basis) {
  constexpr std::size_t kMaxNamed = 3;
  if (basis.unread.empty()) return std::nullopt;
  std::vector<std::string> named;
  for (std::size_t i = 0; i < basis.unread.size() && i < kMaxNamed; ++i) {
    named.push_back(basis.unread[i].path.substr(folder_of(subject.device).size()));
  }
  const std::size_t left = basis.unread.size() - named.size();
  const std::string more = left > 0 ? " and " + std::to_string(left) + " more" : "";
  return verdict(reasons::kSignalUnreadable, subject.name + ": no usable value in " + joined(named) + more);
}

// Names no device, so that the verdicts are equal and lists show them once.
std::optional<Health> verdict_on_missing(const NeuronDevice& device, const DeviceContext& context) {
  for (const MissingFiles& missing : context.missing) {
    if (missing.family != device.family || missing.devices.size() < 2) continue;
    Health health = verdict(reasons::kSignalsMissing, sentence(problem_of(context.scan, missing)));
    health.action = action_for_missing(context.scan);
    return health;
  }
  return std::nullopt;
}

bool says_nothing(const NeuronDevice& device) {
  if (device.signals != DeviceSignals{}) return false;
  return std::ranges::none_of(core_signals(), [&](const CoreSignal& signal) {
    return signal.weight == Weight::required && has_value(device, signal);
  });
}

// Reason not to call a device healthy although no fault is seen; else healthy.
Health verdict_without_fault(const Subject& subject, const DeviceContext& context, const DeviceBasis& basis) {
  const auto& [device, name] = subject;
  if (device.signals.reset_state == 0) {
    return verdict(reasons::kResetting, name + ": the device is being reset (reset reads 0)");
  }
  if (auto health = heartbeat_fault(subject, context, Heartbeat::with_all)) return *std::move(health);
  if (context.scan.layout == model::DriverLayout::unknown) {
    return verdict(reasons::kUnknownLayout,
                   name + ": driver " + context.scan.driver_version + " has a sysfs layout unknown to this agent");
  }
  if (!basis.all_ones.empty()) {
    const auto& [path, text] = basis.all_ones.front();
    return verdict(reasons::kReadsAllOnes, name + ": " + path + " reads all ones (" + text +
                                               "), as if the device were off the bus, but other files do not");
  }
  const bool is_silent = says_nothing(device);
  if (auto health = is_silent ? std::nullopt : verdict_on_unread(subject, basis)) return *std::move(health);
  if (auto health = verdict_on_missing(device, context)) return *std::move(health);
  if (is_silent) return verdict(reasons::kNoSignals, name + ": the driver shows no health files");
  if (basis.unmeasured) return verdict(reasons::kHealthNotMeasured, *basis.unmeasured);
  return healthy();
}

// Registers of which the files show ones: two of them are no chance, as one error count may be at its limit.
int registers_of_ones(const NeuronDevice& device) {
  const auto any = [&](SignalKind kind, std::optional<std::uint64_t> DeviceSignals::*cached) {
    return std::ranges::any_of(device_signals(), [&](const DeviceSignal& signal) {
      const bool is_it = signal.kind == kind || (cached != nullptr && signal.value == cached);
      return is_it && is_count_of_faults(signal) && reads_ones(device.signals, signal);
    });
  };
  return static_cast<int>(device.serial_all_ones) +
         static_cast<int>(any(SignalKind::ecc, &DeviceSignals::sram_ecc_errors)) +
         static_cast<int>(any(SignalKind::hbm, nullptr));
}

// Growth of the counter since it was first seen.
std::uint64_t growth_of(const CoreSignals& core, const CoreSignal& signal,
                        std::map<int, HealthMemory::CoreBaseline>& baselines) {
  const auto& count = core.*signal.value;
  if (!count) return 0;
  auto& counters = baselines[core.physical_index].counters;
  std::uint64_t& baseline = counters.try_emplace(std::string(signal.reason->code), *count).first->second;
  baseline = std::min(baseline, *count);
  return *count - baseline;
}

Health fault_of(const std::string& name, int core, const CoreSignal& signal, std::uint64_t growth) {
  const std::string number = std::to_string(core);
  return verdict(*signal.reason, name + ": core " + number + " counted " + counted(growth, "new hardware error") +
                                     " (neuron_core" + number + '/' + std::string(signal.path) + ")");
}

// Cores in core_count without a folder: masked out (dev_nc_map), or not made yet. Without any folder the layout has
// none.
void add_missing(const NeuronDevice& device, const std::string& name, CoreFaults& faults) {
  if (device.cores.empty() || !device.physical_cores) return;
  for (int core = 0; core < device.physical_cores->value; ++core) {
    if (std::ranges::find(device.cores, core, &CoreSignals::physical_index) != device.cores.end()) continue;
    const std::string number = std::to_string(core);
    Health health =
        verdict(reasons::kCoreMissing,
                name + ": core " + number + " is included in core_count, but has no directory neuron_core" + number);
    if (!faults.worst_core) faults.worst_core = health;
    faults.of_cores.try_emplace(core, std::move(health));
  }
}

// Compares the counters of a completed device with `baselines`, the values first seen, by physical core. Adds baselines
// of new cores, and lowers those whose counter was cleared.
CoreFaults find_core_faults(const NeuronDevice& device, const std::string& name,
                            std::map<int, HealthMemory::CoreBaseline>& baselines) {
  CoreFaults faults;
  // Every counter, so that no baseline is missed.
  for (const CoreSignal& signal : core_signals()) {
    if (signal.weight != Weight::required) continue;
    for (const CoreSignals& core : device.cores) {
      const std::uint64_t growth = growth_of(core, signal, baselines);
      if (growth == 0) continue;
      Health health = fault_of(name, core.physical_index, signal, growth);
      if (signal.reach == Reach::device) {
        if (!faults.of_device) faults.of_device = std::move(health);
        continue;
      }
      if (!faults.worst_core) faults.worst_core = health;
      faults.of_cores.try_emplace(core.physical_index, std::move(health));
    }
  }
  add_missing(device, name, faults);
  return faults;
}

}  // namespace

DeviceVerdict verdict_on_device(const DeviceContext& context, const NeuronDevice& device, const DeviceBasis& basis,
                                std::map<int, HealthMemory::CoreBaseline>& baselines) {
  const Subject subject{device, "neuron" + std::to_string(device.index)};
  CoreFaults faults = find_core_faults(device, subject.name, baselines);
  KernelFaults logged = find_kernel_faults(context.scan, device, context.now);
  const auto count = static_cast<std::size_t>(device.physical_cores ? device.physical_cores->value : 0);
  if (auto absent = absence_fault(subject, context)) {
    for (const auto& [core, health] : logged.of_cores) keep_graver(logged.of_device, health);
    absent = with_known_fault(*std::move(absent), logged.of_device);
    return {*absent, std::vector<Health>(count, *absent)};
  }

  Health own = access_fault(subject, context, basis);
  if (!basis.off_the_bus) {
    keep_graver(own, signal_fault(subject));
    keep_graver(own, heartbeat_fault(subject, context, Heartbeat::alone));
  }
  keep_graver(own, std::move(faults.of_device));
  if (basis.off_the_bus) own = with_known_fault(std::move(own), logged.of_device);
  if (own.state == model::HealthState::healthy) own = verdict_without_fault(subject, context, basis);
  keep_graver(own, std::move(logged.of_device));

  // With a core the device as a whole is broken, not its other cores.
  DeviceVerdict result{own, std::vector<Health>(count, own)};
  keep_graver(result.whole, std::move(faults.worst_core));
  for (const auto* of_cores : {&faults.of_cores, &logged.of_cores}) {
    for (const auto& [core, health] : *of_cores) {
      const auto position = static_cast<std::size_t>(core);
      keep_graver(result.whole, health);
      if (position < count) keep_graver(result.cores[position], health);
    }
  }
  return result;
}

Health with_known_fault(Health absent, const Health& known) {
  const bool is_graver = known.state == model::HealthState::unhealthy && known.action == reasons::kReplace;
  if (!is_graver || absent.action == reasons::kReplace) return absent;
  return {known.state, known.reason, absent.sentence + "; before that: " + known.sentence, known.action};
}

DeviceBasis basis_of(const model::HostScan& scan, const NeuronDevice& device,
                     const std::map<int, Heartbeat>& heartbeats) {
  DeviceBasis basis{unread_signals(scan, device), {}, registers_of_ones(device) >= 2, std::nullopt};
  if (device.serial_all_ones) basis.all_ones.emplace_back("info/serial_number", kSerialOfOnes);
  for (const DeviceSignal& signal : device_signals()) {
    const bool is_one = is_count_of_faults(signal) && reads_ones(device.signals, signal);
    if (is_one) basis.all_ones.emplace_back(signal.path, std::to_string(*(device.signals.*signal.value)));
  }
  const auto beat = heartbeats.find(device.index);
  const bool never_beat = beat != heartbeats.end() && beat->second == Heartbeat::never;
  if (!basis.off_the_bus) basis.unmeasured = why_unmeasured(scan, device, never_beat);
  return basis;
}

void forget_no_measurements(NeuronDevice& device, const DeviceBasis& basis) {
  const DeviceSignals seen = device.signals;
  for (const DeviceSignal& signal : device_signals()) {
    const bool is_unmeasured = basis.unmeasured && is_cached(signal);
    const bool is_none = basis.off_the_bus || is_unmeasured || reads_ones(seen, signal);
    if (!is_none) continue;
    if (signal.kind == SignalKind::components) device.signals.unhealthy_components.reset();
    if (signal.value != nullptr) (device.signals.*signal.value).reset();
  }
  if (basis.off_the_bus) device.signals.hbm_packed.reset();
  if (device.serial_all_ones && device.serial == kSerialOfOnes) device.serial.reset();
}

}  // namespace neuron::health
