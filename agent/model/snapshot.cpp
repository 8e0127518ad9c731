#include "agent/model/snapshot.h"

#include <bit>
#include <map>
#include <utility>

namespace neuron::model {
namespace {

std::string name_of(const NeuronDevice& device) {
  return "neuron" + std::to_string(device.index);
}
std::string name_of(const EfaInterface& efa) {
  return efa.name.empty() ? to_string(efa.bdf) : efa.name;
}

int key_of(const NeuronDevice& device) {
  return device.index;
}
Bdf key_of(const EfaInterface& efa) {
  return efa.bdf;
}

template <typename Unit>
using Pair = std::pair<const Unit*, const Unit*>;  // before, after; null where it is not listed

template <typename Unit>
auto paired(const std::vector<Unit>& before, const std::vector<Unit>& after) {
  std::map<decltype(key_of(std::declval<const Unit&>())), Pair<Unit>> units;
  for (const Unit& unit : before) units[key_of(unit)].first = &unit;
  for (const Unit& unit : after) units[key_of(unit)].second = &unit;
  return units;
}

template <typename Unit>
bool is_there(const Unit* unit) {
  return unit != nullptr && unit->presence != Presence::vanished;
}

template <typename Unit>
void add_changes(const std::vector<Unit>& before, const std::vector<Unit>& after, std::vector<PartChange>& changes) {
  using Kind = PartChange::Kind;
  for (const auto& [key, unit] : paired(before, after)) {
    const auto& [was, is] = unit;
    const Health old = was != nullptr ? was->health : Health{};
    const Health now = is != nullptr ? is->health : Health{};
    const bool moved = is_there(was) != is_there(is);
    if (!moved && old == now) continue;
    const Kind kind = !moved ? Kind::health : is_there(is) ? Kind::appeared : Kind::left;
    changes.push_back({kind, name_of(is != nullptr ? *is : *was), old, now});
  }
}

template <typename Unit>
bool same_problems(const std::vector<Unit>& before, const std::vector<Unit>& after) {
  static const std::vector<ReadProblem> kNone;
  for (const auto& [key, unit] : paired(before, after)) {
    const auto& [was, is] = unit;
    if ((was != nullptr ? was->problems : kNone) != (is != nullptr ? is->problems : kNone)) return false;
  }
  return true;
}

// Of the node itself, whose health does not change while the kernel log is not read.
void add_node_change(const HostScan& before, const HostScan& after, std::vector<PartChange>& changes) {
  const auto is_sound = [](const Health& health) {
    return !is_assessed(health) || health.state == HealthState::healthy;
  };
  const Health& old = before.kernel_log.node_health;
  const Health& now = after.kernel_log.node_health;
  if (old == now || (is_sound(old) && is_sound(now))) return;
  changes.push_back({PartChange::Kind::health, "node", old, now});
}

}  // namespace

HostScan without_counters(HostScan host) {
  for (NeuronDevice& device : host.devices) {
    device.signals = {};
    for (CoreSignals& core : device.cores) {
      const int index = core.physical_index;
      core = {};
      core.physical_index = index;
    }
    if (!device.processes) continue;
    for (Process& process : *device.processes) {
      process.host_memory_bytes.reset();
      process.device_memory_bytes.reset();
    }
  }
  for (EfaInterface& efa : host.efas) efa.no_completion_cmds.reset();
  host.kernel_log.lost_records = 0;
  host.kernel_log.ignored_lines = std::bit_width(host.kernel_log.ignored_lines);  // reported when they have doubled
  for (KernelLogError& error : host.kernel_log.errors) {
    error.lines = 0;
    error.last_at = {};
  }
  return host;
}

SnapshotDiff diff(const HostScan& before, const HostScan& after) {
  SnapshotDiff changes;
  add_changes(before.devices, after.devices, changes.units);
  add_changes(before.efas, after.efas, changes.units);
  add_node_change(before, after, changes.units);
  changes.problems = before.problems != after.problems || !same_problems(before.devices, after.devices) ||
                     !same_problems(before.efas, after.efas);
  return changes;
}

}  // namespace neuron::model
