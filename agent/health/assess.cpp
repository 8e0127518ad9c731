#include "agent/health/assess.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "agent/base/parse.h"
#include "agent/core/catalogue.h"
#include "agent/health/device.h"
#include "agent/health/efa.h"
#include "agent/health/kernel_errors.h"

namespace neuron::health {
namespace {

using model::HostScan;
using model::NeuronDevice;
using model::Presence;

bool has_stopped(const HeartbeatMemory& memory, const HeartbeatMemory::Beat& beat, SteadyTime now) {
  constexpr std::chrono::seconds kWindow{60};
  constexpr int kTimes = 10;  // of the longest beat
  constexpr int kScans = 10;  // after a suspension few scans cover a long time
  return beat.scans >= kScans && now - beat.since >= kWindow && now - beat.since >= kTimes * memory.longest;
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

DeviceVerdict verdict_in(const DeviceContext& context, const NeuronDevice& device, const DeviceBasis& basis,
                         std::map<int, HealthMemory::CoreBaseline>& baselines) {
  DeviceVerdict verdict = verdict_on_device(context, device, basis, baselines);
  if (device.presence != Presence::present) {  // its health is the last verdict on it
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
  const bool any_moves = std::ranges::any_of(
      memory.devices, [&](const auto& entry) { return entry.second.moved && !has_stopped(memory, entry.second, now); });
  const bool all_at_zero = std::ranges::all_of(memory.devices, [&](const auto& entry) {
    return entry.second.value == 0 && !entry.second.moved && has_stopped(memory, entry.second, now);
  });
  for (auto& [index, state] : states) {
    const HeartbeatMemory::Beat& beat = memory.devices[index];
    if (!has_stopped(memory, beat, now)) continue;
    if (any_moves) {
      state = Heartbeat::alone;
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
  core::keep_last_seen(scan, memory.seen);
  Assessment result;
  result.host = core::complete(std::move(scan));
  HealthResult health = evaluate(result.host, memory.health, now);
  for (std::size_t i = 0; i < result.host.devices.size(); ++i) {
    NeuronDevice& device = result.host.devices[i];
    device.health = std::move(health.devices[i]);
    device.core_health = std::move(health.cores[i]);
    // keep_last_seen() restores it with the device once that is missing.
    if (device.presence == Presence::present) memory.seen.devices[device.index].health = device.health;
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

}  // namespace neuron::health
