#include "tools/kubectl-neuron/counts.h"

#include <algorithm>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "agent/allocator/allocator.h"
#include "agent/core/hardware.h"
#include "agent/kube/answers.h"
#include "agent/model/resource.h"

namespace neuron::fleet {
namespace {

using model::HealthState;
using model::Resource;
using report::NodeReport;

struct Held {
  std::set<int> devices;
  std::set<int> cores;
  std::set<std::string> efas;
};

Held held_of(const NodeReport& report) {
  Held held;
  if (!report.pods) return held;
  for (const report::PodUse& use : *report.pods) {
    held.devices.insert(use.devices.begin(), use.devices.end());
    held.cores.insert(use.cores.begin(), use.cores.end());
    held.efas.insert(use.efas.begin(), use.efas.end());
  }
  return held;
}

// Whether any physical core of the logical one at `place` is unhealthy.
bool is_core_unhealthy(const NodeReport& report, std::size_t device, std::size_t place) {
  const model::NeuronDevice& facts = report.host.devices[device];
  if (facts.health.state != HealthState::unhealthy) return false;
  const bool is_mapped = device < report.physical_cores.size() && place < report.physical_cores[device].size();
  if (!is_mapped || facts.core_health.empty()) return true;
  return std::ranges::any_of(report.physical_cores[device][place], [&](int core) {
    const auto index = static_cast<std::size_t>(core);
    return core >= 0 && index < facts.core_health.size() && facts.core_health[index].state == HealthState::unhealthy;
  });
}

void add(Units& units, bool is_held, bool is_unhealthy) {
  ++units.total;
  units.held += is_held ? 1 : 0;
  units.unhealthy += !is_held && is_unhealthy ? 1 : 0;
}

void count_verdict(NodeCounts& counts, HealthState state) {
  counts.unhealthy += state == HealthState::unhealthy ? 1 : 0;
  counts.degraded += state == HealthState::degraded ? 1 : 0;
}

NodeCounts count_report(const NodeReport& report) {
  const Held held = held_of(report);
  NodeCounts counts;
  counts.is_exact = true;
  Units devices, cores, efas;
  std::vector<int> free;
  for (std::size_t i = 0; i < report.host.devices.size(); ++i) {
    const model::NeuronDevice& device = report.host.devices[i];
    const bool is_unhealthy = device.health.state == HealthState::unhealthy;
    const bool is_held = held.devices.contains(device.index);
    add(devices, is_held, is_unhealthy);
    count_verdict(counts, device.health.state);
    if (!is_held && !is_unhealthy) free.push_back(device.index);
    const std::size_t places = i < report.core_ids.size() ? report.core_ids[i].size() : 0;
    for (std::size_t place = 0; place < places; ++place) {
      add(cores, held.cores.contains(report.core_ids[i][place]), is_core_unhealthy(report, i, place));
    }
  }
  for (const model::EfaInterface& efa : report.host.efas) {
    add(efas, held.efas.contains(efa.name), efa.health.state == HealthState::unhealthy);
    count_verdict(counts, efa.health.state);
  }
  counts.efas = efas;
  counts.devices = devices;
  if (cores.total > 0 || devices.total == 0) counts.cores = cores;
  counts.largest_group = allocator::largest_of_devices(allocator::make_topology(report.host), free);
  return counts;
}

// By the Node's numbers. An unhealthy unit is in the capacity, not among the allocatable.
// Of those missing, pods hold some by the other name.
std::optional<Units> count_resource(const Node& node, const Amounts& asked, const SingleNames& names,
                                    Resource resource) {
  const std::string name(model::resource_name(resource));
  const auto capacity = node.capacity.find(name);
  if (capacity == node.capacity.end()) return std::nullopt;
  const auto allocatable = node.allocatable.find(name);
  const auto wanted = asked.find(name);
  Units units;
  units.total = capacity->second;
  const std::int64_t usable = allocatable == node.allocatable.end() ? 0 : allocatable->second;
  NodeState state;
  state.node.capacity = node.capacity;
  state.node.labels = node.labels;
  state.node.instance_type = node.instance_type;
  state.report = node.report ? &*node.report : nullptr;
  const std::int64_t other = std::min<std::int64_t>(least_by_other_name(names, state, name), units.total);
  const std::int64_t own = wanted == asked.end() ? 0 : std::min<std::int64_t>(wanted->second, usable);
  units.held = std::min(own + other, units.total);
  units.unhealthy = std::max<std::int64_t>(0, units.total - usable - other);
  units.are_apart = resource == Resource::neuroncore || other == 0 || other >= names.cores || units.unhealthy == 0;
  return units;
}

std::string text_attribute(const SliceDevice& device, const char* name) {
  const auto found = device.attributes.find(name);
  return found == device.attributes.end() ? "" : found->second.text.value_or("");
}

int number_attribute(const SliceDevice& device, const char* name) {
  constexpr std::int64_t kMost = 9999;  // of core::parse_pool_name
  const auto found = device.attributes.find(name);
  const std::int64_t number = found == device.attributes.end() ? -1 : found->second.number.value_or(-1);
  return number <= kMost ? static_cast<int>(number) : -1;
}

// Indices of devices and names of interfaces in a pool, and which of them are in claims or unhealthy; the cores of each
// device, all and those in claims.
struct PoolUnits {
  std::set<int> devices, held, unhealthy;
  std::set<std::string> efas, held_efas, unhealthy_efas;
  std::map<int, std::int64_t> cores, held_cores;
};

constexpr std::int64_t kMostCores = 1024;  // of a device: larger numbers are senseless

std::int64_t cores_in(const Labels& quantities) {
  const auto found = quantities.find("cores");
  const auto cores = found == quantities.end() ? std::nullopt : kube::parse_quantity(found->second);
  return std::clamp<std::int64_t>(cores.value_or(0), 0, kMostCores);
}

PoolUnits units_of(const Pool& pool) {
  PoolUnits units;
  std::map<int, std::int64_t> single;  // devices for one core each
  for (const SliceDevice& device : pool.devices) {
    const std::string type = text_attribute(device, "resourceType");
    const bool is_unhealthy = text_attribute(device, "health") == "unhealthy";
    const int index = number_attribute(device, "deviceId");
    if (type == "efa") {
      units.efas.insert(device.name);
      if (is_unhealthy) units.unhealthy_efas.insert(device.name);
    } else if ((type == "neuron_device" || type == "neuron_core") && index >= 0) {
      units.devices.insert(index);
      if (is_unhealthy && type == "neuron_device") units.unhealthy.insert(index);
      if (type == "neuron_core") ++single[index];
      if (type == "neuron_device") units.cores[index] = cores_in(device.capacity);
    }
  }
  for (const auto& [index, cores] : single) units.cores.try_emplace(index, cores);
  return units;
}

// `cores` of a device; 0: all.
void hold_device(PoolUnits& units, int index, std::int64_t cores) {
  units.held.insert(index);
  std::int64_t& held = units.held_cores[index];
  held = std::min(held + (cores > 0 ? cores : kMostCores), kMostCores);
}

void hold(PoolUnits& units, const AllocatedDevice& device) {
  const auto name = core::parse_pool_name(device.device);
  if (!name) return;
  if (std::holds_alternative<core::EfaName>(*name)) units.held_efas.insert(device.device);
  if (const auto* one = std::get_if<core::DeviceName>(&*name)) {
    hold_device(units, one->device, cores_in(device.consumed_capacity));
  }
  if (const auto* one = std::get_if<core::CoreName>(&*name)) hold_device(units, one->device, 1);
  if (std::holds_alternative<core::NodeName>(*name)) {
    for (const int index : units.devices) hold_device(units, index, 0);
  }
  if (const auto* one = std::get_if<core::GroupName>(&*name)) {
    const int indices = units.devices.empty() ? 0 : *units.devices.rbegin() + 1;
    for (const int member : core::members_of(*one, indices)) hold_device(units, member, 0);
  }
}

// nullopt where the cores of a device are not known.
std::optional<Units> count_cores(const PoolUnits& units) {
  Units all;
  for (const int index : units.devices) {
    const auto found = units.cores.find(index);
    if (found == units.cores.end() || found->second == 0) return std::nullopt;
    const auto held = units.held_cores.find(index);
    const std::int64_t taken = held == units.held_cores.end() ? 0 : std::min(held->second, found->second);
    all.total += found->second;
    all.held += taken;
    all.unhealthy += units.unhealthy.contains(index) ? found->second - taken : 0;
  }
  return all;
}

template <typename T>
Units count_sets(const std::set<T>& all, const std::set<T>& held, const std::set<T>& unhealthy) {
  Units units;
  for (const T& one : all) add(units, held.contains(one), unhealthy.contains(one));
  return units;
}

std::map<std::string, NodeCounts> count_pools(const Fleet& fleet) {
  std::map<std::pair<std::string, std::string>, PoolUnits> pools;  // by driver and name
  for (const Pool& pool : fleet.pools) {
    if (is_neuron_pool(pool)) pools[{pool.driver, pool.name}] = units_of(pool);
  }
  for (const Claim& claim : fleet.claims) {
    for (const AllocatedDevice& device : claim.devices) {
      const auto pool = pools.find({device.driver, device.pool});
      if (pool != pools.end() && !device.admin_access) hold(pool->second, device);
    }
  }
  std::map<std::string, NodeCounts> counts;
  for (const Pool& pool : fleet.pools) {
    const auto found = pools.find({pool.driver, pool.name});
    if (found == pools.end()) continue;
    const PoolUnits& units = found->second;
    NodeCounts& one = counts[pool.node];
    one.devices = count_sets(units.devices, units.held, units.unhealthy);
    one.cores = count_cores(units);
    one.efas = count_sets(units.efas, units.held_efas, units.unhealthy_efas);
    one.unhealthy = static_cast<int>(units.unhealthy.size() + units.unhealthy_efas.size());
    if (fleet.claims_partial) one.devices = one.cores = one.efas = std::nullopt;
  }
  return counts;
}

}  // namespace

Asked asked_by_node(const Fleet& fleet) {
  Asked asked;
  for (const Pod& pod : fleet.pods) {
    if (pod.node.empty() || !asks_for_hardware(pod)) continue;
    for (const auto& [name, amount] : scheduled_amounts(pod)) asked.amounts[pod.node][name] += amount;
    if (has_ended(pod)) continue;
    const SingleNames own = single_names(pod);
    SingleNames& names = asked.single_names[pod.node];
    names.devices += own.devices;
    names.cores += own.cores;
  }
  asked.pods_partial = fleet.pods_partial;
  asked.pools = count_pools(fleet);
  return asked;
}

bool has_hardware(const Node& node) {
  const auto any = [](const Amounts& amounts) {
    return std::ranges::any_of(amounts, [](const auto& amount) { return amount.second > 0; });
  };
  return node.mode != Mode::none || !node.agent_pod.empty() || node.report || any(node.allocatable) ||
         any(node.capacity);
}

NodeCounts count_node(const Node& node, const Asked& asked) {
  if (node.report && node.report->pods) return count_report(*node.report);
  const auto pool = asked.pools.find(node.name);
  if (pool != asked.pools.end()) return pool->second;
  const auto found = asked.amounts.find(node.name);
  const Amounts none;
  const Amounts& amounts = found == asked.amounts.end() ? none : found->second;
  const auto single = asked.single_names.find(node.name);
  const SingleNames names = single == asked.single_names.end() ? SingleNames{} : single->second;
  NodeCounts counts;
  if (!asked.pods_partial) {
    counts.devices = count_resource(node, amounts, names, Resource::neuron);
    counts.cores = count_resource(node, amounts, names, Resource::neuroncore);
    counts.efas = count_resource(node, amounts, names, Resource::efa);
  }
  if (!node.report) return counts;
  for (const auto& device : node.report->host.devices) count_verdict(counts, device.health.state);
  for (const auto& efa : node.report->host.efas) count_verdict(counts, efa.health.state);
  return counts;
}

}  // namespace neuron::fleet
