#include "agent/health/assess.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "agent/base/parse.h"
#include "agent/core/catalogue.h"
#include "agent/health/kernel_errors.h"
#include "agent/health/reasons.h"

namespace neuron::health {
namespace {

using model::EfaInterface;
using model::Health;
using model::HostScan;
using model::NeuronDevice;
using model::Presence;
using model::ScanPart;

// A heartbeat that does not advance for so long has stopped.
SteadyTime::duration heartbeat_window(const HeartbeatMemory& memory) {
  constexpr std::chrono::seconds kLeast{60};
  constexpr int kTimes = 10;  // of the longest beat
  return std::max<SteadyTime::duration>(kLeast, kTimes * memory.longest);
}

bool has_stopped(const HeartbeatMemory& memory, const HeartbeatMemory::Beat& beat, SteadyTime now) {
  constexpr int kScans = 10;  // after a suspension few scans cover a long time
  return beat.scans >= kScans && now - beat.since >= heartbeat_window(memory);
}

// The firmware of a device in reset need not advance it.
bool is_watched(const NeuronDevice& device) {
  return device.presence == Presence::present && device.signals.heartbeat && device.signals.reset_state != 0;
}

void note_heartbeat(const NeuronDevice& device, HeartbeatMemory& memory, SteadyTime now) {
  const std::uint64_t value = *device.signals.heartbeat;
  const auto [at, is_new] = memory.devices.try_emplace(device.index);
  HeartbeatMemory::Beat& beat = at->second;
  if (!is_new && beat.value == value) {
    ++beat.scans;
    beat.last = now;
    return;
  }
  if (!is_new && !has_stopped(memory, beat, now)) memory.longest = std::max(memory.longest, beat.last - beat.since);
  beat = {value, now, now, 0, !is_new};
}

bool is_beyond_reach(const NeuronDevice& device, const DeviceBasis& basis) {
  return device.presence != Presence::present || basis.off_the_bus;
}

DeviceVerdict verdict_in(const DeviceContext& context, const NeuronDevice& device, const DeviceBasis& basis,
                         std::map<int, HealthMemory::CoreBaseline>& baselines) {
  DeviceVerdict verdict = verdict_on_device(context, device, basis, baselines);
  if (is_beyond_reach(device, basis)) {  // its health is the last verdict on it
    verdict.whole = with_known_fault(std::move(verdict.whole), device.health);
    verdict.cores.assign(verdict.cores.size(), verdict.whole);
  }
  return verdict;
}

void evaluate_devices(HostScan& scan, HealthMemory& memory, SteadyTime now, HealthResult& result) {
  for (const NeuronDevice& device : scan.devices) {
    memory.device_nodes_seen = memory.device_nodes_seen || device.node_present;
  }
  result.missing = missing_everywhere(scan);
  const auto heartbeats = watch_heartbeats(scan, memory.heartbeats, now);
  const DeviceContext context{scan, result.missing, heartbeats, memory.device_nodes_seen, now};
  for (const NeuronDevice& device : scan.devices) {
    result.bases.push_back(basis_of(scan, device, heartbeats));
    DeviceVerdict verdict = verdict_in(context, device, result.bases.back(), memory.cores[device.index]);
    result.devices.push_back(std::move(verdict.whole));
    result.cores.push_back(std::move(verdict.cores));
  }
  for (std::size_t i = 0; i < scan.devices.size(); ++i) forget_no_measurements(scan.devices[i], result.bases[i]);
}

constexpr int kMaxDevices = 64;  // the driver's own limit (docs/reference/driver.md#pci-ids-and-limits)
constexpr std::size_t kMaxEfas = 64;

// One driver serves one architecture, so a missing device has the family of its siblings.
std::optional<model::Family> family_of(const HostScan& host) {
  for (const NeuronDevice& device : host.devices) {
    if (device.family) return device.family;
  }
  const core::InstanceType* type = core::find_instance_type(host.instance_type);
  return type != nullptr ? type->family : std::nullopt;
}

std::optional<model::Bdf> address_in(std::string_view name) {
  constexpr std::string_view kPrefix = "rdmap";
  const auto slot_at = name.find('s');
  if (!name.starts_with(kPrefix) || slot_at == std::string_view::npos) return std::nullopt;
  const auto bus = parse_int(name.substr(kPrefix.size(), slot_at - kPrefix.size()), 0, 0xff);
  const auto slot = parse_int(name.substr(slot_at + 1), 0, 0x1f);
  if (!bus || !slot || name != std::string(kPrefix) + std::to_string(*bus) + "s" + std::to_string(*slot)) {
    return std::nullopt;
  }
  return model::Bdf{0, static_cast<std::uint8_t>(*bus), static_cast<std::uint8_t>(*slot), 0};
}

std::string label_of(const EfaInterface& efa) {
  return efa.name.empty() ? model::to_string(efa.bdf) : efa.name + " (" + model::to_string(efa.bdf) + ")";
}

Health verdict_on_verbs(const EfaInterface& efa, bool none_has_verbs) {
  if (efa.uverbs) {
    return verdict(reasons::kVerbsNodeMissing, label_of(efa) + ": dev/infiniband/" + *efa.uverbs + " does not exist");
  }
  if (none_has_verbs) {
    Health health = without_verbs(false);
    health.sentence = label_of(efa) + ": " + health.sentence;
    return health;
  }
  return verdict(reasons::kVerbsMissing, label_of(efa) + ": sys/class/infiniband_verbs has no entry for it");
}

// Parts that may be missing from the scan when an interface is not answering.
std::vector<ScanPart> parts_of(const HostScan& scan, const EfaInterface& efa) {
  std::vector<ScanPart> parts = {{ScanPart::Kind::efa, 0, efa.bdf}, {ScanPart::Kind::efa_classes}};
  for (const model::Unanswered& one : scan.unanswered) {
    const bool is_its_own =
        one.part.kind == ScanPart::Kind::verbs && efa.uverbs == "uverbs" + std::to_string(one.part.index);
    if (is_its_own) parts.push_back(one.part);
  }
  return parts;
}

// One command that the device leaves unanswered closes the admin queue until the driver is rebound, in every release
// of it; the counter then stands still (docs/reference/efa.md#counters). So any value above 0 means dead, whenever the
// agent started; the other counters are about the network or a workload.
std::optional<Health> verdict_on_admin_queue(const EfaInterface& efa) {
  const std::uint64_t lost = efa.no_completion_cmds.value_or(0);
  if (lost == 0 && !efa.admin_queue_closed) return std::nullopt;
  const std::string seen = lost > 0 ? "the device did not answer " + std::to_string(lost) + " command" +
                                          (lost == 1 ? "" : "s") + " of its driver (hw_counters/no_completion_cmds)"
                                    : "its counters are no longer readable (ports/1/hw_counters: no such device)";
  return verdict(reasons::kNoCompletionCmds, label_of(efa) + ": " + seen + "; its admin queue is closed");
}

Health verdict_on(const HostScan& scan, const EfaInterface& efa, bool none_has_verbs, const HealthMemory& memory) {
  if (efa.presence == Presence::vanished)
    return verdict(reasons::kEfaVanished, label_of(efa) + " vanished from the PCI bus");
  if (efa.presence == Presence::unread) return verdict_on_unread_list(scan, label_of(efa), "sys/bus/pci/devices");
  if (efa.presence == Presence::not_answering) {
    return verdict_on_silence(scan, label_of(efa), parts_of(scan, efa));
  }
  if (!efa.driver_bound) {
    return verdict(reasons::kEfaDriverUnbound, label_of(efa) + ": no efa driver is bound to it");
  }
  if (is_unread_list(scan, ScanPart::Kind::efa_classes) && (efa.name.empty() || !efa.uverbs)) {
    return verdict_on_unread_list(scan, label_of(efa), "sys/class/infiniband");
  }
  if (efa.name.empty()) {
    return verdict(reasons::kRdmaDeviceMissing, label_of(efa) + ": the driver is bound but shows no RDMA device");
  }
  if (!efa.uverbs || (!efa.node_present && memory.verbs_nodes_seen)) return verdict_on_verbs(efa, none_has_verbs);
  if (auto dead = verdict_on_admin_queue(efa)) return *std::move(dead);
  if (!scan.devices.empty() && efa.p2p && efa.p2p->empty()) {
    return verdict(reasons::kNoPeerMemory, label_of(efa) + ": p2p is empty, no RDMA to and from Neuron memory");
  }
  return healthy();
}

}  // namespace

std::map<int, Heartbeat> watch_heartbeats(const HostScan& scan, HeartbeatMemory& memory, SteadyTime now) {
  std::map<int, Heartbeat> states;
  for (const NeuronDevice& device : scan.devices) {
    if (!is_watched(device)) {
      memory.devices.erase(device.index);
      continue;
    }
    note_heartbeat(device, memory, now);
    states[device.index] = Heartbeat::fine;
  }
  std::optional<SteadyTime> newest;  // beat of a device that advances
  for (const auto& [index, beat] : memory.devices) {
    if (beat.moved && !has_stopped(memory, beat, now)) newest = std::max(newest.value_or(beat.since), beat.since);
  }
  const bool all_at_zero = std::ranges::all_of(memory.devices, [&](const auto& entry) {
    return entry.second.value == 0 && !entry.second.moved && has_stopped(memory, entry.second, now);
  });
  for (auto& [index, state] : states) {
    const HeartbeatMemory::Beat& beat = memory.devices[index];
    if (!has_stopped(memory, beat, now)) continue;
    if (newest) {
      if (*newest - beat.since >= heartbeat_window(memory) / 2) state = Heartbeat::alone;
    } else if (beat.moved) {
      state = Heartbeat::with_all;
    } else if (all_at_zero) {
      state = Heartbeat::never;
    }
  }
  return states;
}

HealthResult evaluate(HostScan& scan, HealthMemory& memory, SteadyTime now) {
  HealthResult result;
  evaluate_devices(scan, memory, now, result);
  result.efas = verdicts_on_efas(scan, memory);
  result.node = verdict_on_node(scan, now);
  return result;
}

Assessment assess(HostScan scan, AssessMemory& memory, SteadyTime now) {
  for (NeuronDevice& device : scan.devices) {
    const auto known = memory.seen.devices.find(device.index);
    if (known != memory.seen.devices.end()) device.health = known->second.health;  // the last verdict on it
  }
  core::keep_last_seen(scan, memory.seen);
  Assessment result;
  result.host = core::complete(std::move(scan));
  HealthResult health = evaluate(result.host, memory.health, now);
  for (std::size_t i = 0; i < result.host.devices.size(); ++i) {
    NeuronDevice& device = result.host.devices[i];
    device.health = std::move(health.devices[i]);
    device.core_health = std::move(health.cores[i]);
    // As the last verdict on the device, for that once it is missing or off the bus.
    if (!is_beyond_reach(device, health.bases[i])) memory.seen.devices[device.index].health = device.health;
  }
  for (std::size_t i = 0; i < result.host.efas.size(); ++i) result.host.efas[i].health = std::move(health.efas[i]);
  result.host.kernel_log.node_health = std::move(health.node);
  result.bases = std::move(health.bases);
  result.missing = std::move(health.missing);
  auto& problems = result.host.problems;
  for (const MissingFiles& files : result.missing) {
    model::ReadProblem problem = problem_of(result.host, files);
    const bool is_known = std::ranges::find(problems, problem) != problems.end();
    if (!is_known) problems.push_back(std::move(problem));
  }
  return result;
}

HostScan with_held(HostScan assessed, core::SeenBefore held) {
  std::set<int> devices;
  for (const NeuronDevice& device : assessed.devices) devices.insert(device.index);
  std::map<model::Bdf, model::Health> efas;
  for (const model::EfaInterface& efa : assessed.efas) efas.emplace(efa.bdf, efa.health);
  const std::vector<model::Unanswered> unanswered =
      std::exchange(assessed.unanswered, {});  // `assessed` has their values
  core::keep_last_seen(assessed, held);
  HostScan host = core::complete(std::move(assessed));
  const std::vector<MissingFiles> no_missing;
  const std::map<int, Heartbeat> no_heartbeats;
  const DeviceContext context{host, no_missing, no_heartbeats};
  for (NeuronDevice& device : host.devices) {
    if (devices.contains(device.index)) continue;
    std::map<int, HealthMemory::CoreBaseline> no_baselines;
    DeviceVerdict verdict = verdict_in(context, device, {}, no_baselines);
    device.health = std::move(verdict.whole);
    device.core_health = std::move(verdict.cores);
  }
  HealthMemory no_memory;
  const std::vector<model::Health> verdicts = verdicts_on_efas(host, no_memory);
  for (std::size_t i = 0; i < host.efas.size(); ++i) {
    const auto known = efas.find(host.efas[i].bdf);
    host.efas[i].health = known == efas.end() ? verdicts[i] : known->second;
  }
  host.unanswered = unanswered;
  return host;
}

bool note_held_device(core::SeenBefore& held, int index, const HostScan& host) {
  const core::InstanceType* type = core::find_instance_type(host.instance_type);
  const int count = type != nullptr && type->family ? type->device_count : kMaxDevices;
  if (index < 0 || index >= count) return false;
  NeuronDevice device;
  device.index = index;
  device.family = family_of(host);
  return held.devices.emplace(index, std::move(device)).second;
}

bool note_held_efa(core::SeenBefore& held, std::string_view name) {
  const auto address = address_in(name);
  if (!address || held.efas.size() == kMaxEfas) return false;
  model::EfaInterface efa;
  efa.name = name;
  efa.bdf = *address;
  return held.efas.emplace(*address, std::move(efa)).second;
}

model::Snapshot with_held(const model::Snapshot& snapshot, const core::SeenBefore& held, std::optional<int> lnc) {
  model::Snapshot result = snapshot;
  if (!held.devices.empty() || !held.efas.empty()) result.host = with_held(std::move(result.host), held);
  if (lnc && (!result.host.lnc || result.host.lnc->value != *lnc)) result.host.lnc = {*lnc, model::Origin::live};
  return result;
}

Health verdict_on_silence(const HostScan& scan, const std::string& name, const std::vector<ScanPart>& parts) {
  const auto hangs = std::ranges::find_first_of(scan.unanswered, parts, {}, &model::Unanswered::part);
  const std::string what = hangs == scan.unanswered.end()
                               ? std::string("a read of it has not returned")
                               : to_string(hangs->part) + " has not returned since " + hangs->since;
  return verdict(reasons::kNotAnswering, name + ": " + what);
}

Health verdict_on_unread_list(const HostScan& scan, const std::string& name, std::string_view list) {
  const auto problem =
      std::ranges::find_if(scan.problems, [&](const model::ReadProblem& one) { return one.path.starts_with(list); });
  const std::string why = problem == scan.problems.end() ? std::string(list) : sentence(*problem);
  return verdict(reasons::kUnread,
                 name + ": the list it would be on was not read since the agent started (" + why + ')');
}

std::vector<Health> verdicts_on_efas(const HostScan& scan, HealthMemory& memory) {
  for (const EfaInterface& efa : scan.efas) memory.verbs_nodes_seen = memory.verbs_nodes_seen || efa.node_present;
  const bool none_has_verbs =
      std::ranges::none_of(scan.efas, [](const EfaInterface& efa) { return efa.uverbs.has_value(); });
  std::vector<Health> verdicts;
  verdicts.reserve(scan.efas.size());
  for (const EfaInterface& efa : scan.efas) verdicts.push_back(verdict_on(scan, efa, none_has_verbs, memory));
  return verdicts;
}

Health without_verbs(bool module_loaded) {
  const std::string sentence = "EFA is present but unusable: ";
  if (!module_loaded) {
    return verdict(reasons::kIbUverbsNotLoaded, sentence + "the module ib_uverbs is not loaded");
  }
  return verdict(reasons::kVerbsDevicesMissing, sentence + "ib_uverbs is loaded, but shows no verbs device");
}

}  // namespace neuron::health
