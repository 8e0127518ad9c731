#include <algorithm>
#include <memory>
#include <utility>

#include "agent/core/catalogue.h"
#include "agent/core/complete.h"
#include "agent/grant/grant.h"
#include "agent/kube/answers.h"
#include "plugin/dra/slices/pool.h"
#include "tools/kubectl-neuron/plan.h"

// Capacity of empty nodes, of the fleet and of the instance types. Pools of the latter are made by the driver's own
// code.
namespace neuron::fleet {
namespace {

namespace dra = plugin::dra;

model::HostScan host_of(const core::InstanceType& type) {
  model::HostScan host;
  host.instance_type = type.name;
  for (int i = 0; i < type.device_count; ++i) {
    model::NeuronDevice device;
    device.index = i;
    device.family = type.family;
    device.node_present = true;
    host.devices.push_back(std::move(device));
  }
  for (int i = 0; i < type.efa_count; ++i) {
    model::EfaInterface efa;
    efa.name = "rdmap" + std::to_string(i) + "s0";
    const auto at = static_cast<std::size_t>(i);
    if (at < type.efas.size()) {
      efa.bdf = type.efas[at].bdf;
      efa.numa_node = type.efas[at].numa_node;
      efa.switch_key = type.efas[at].pci_parent;
    } else {
      efa.bdf.slot = static_cast<std::uint8_t>(i);
    }
    efa.driver_bound = efa.node_present = true;
    host.efas.push_back(std::move(efa));
  }
  host = core::complete(std::move(host));
  for (model::NeuronDevice& device : host.devices) device.health.state = model::HealthState::healthy;
  for (model::EfaInterface& efa : host.efas) efa.health.state = model::HealthState::healthy;
  return host;
}

AttributeValue value_of(const dra::AttributeValue& from) {
  AttributeValue value;
  if (const auto* number = std::get_if<std::int64_t>(&from)) value.number = *number;
  if (const auto* flag = std::get_if<bool>(&from)) value.flag = *flag;
  if (const auto* text = std::get_if<std::string>(&from)) value.text = *text;
  if (const auto* version = std::get_if<dra::Version>(&from)) value.text = version->text;
  return value;
}

Pool pool_of(const model::HostScan& host, const std::string& node) {
  const auto snapshot = std::make_shared<const model::Snapshot>(model::Snapshot{1, 1, host});
  const grant::NodeUnits units(snapshot);
  Pool pool;
  pool.driver = dra::PoolOptions{}.driver;
  pool.name = pool.node = node;
  pool.complete = true;
  const dra::Pool made = dra::make_pool(units, {}, {});
  for (const dra::PoolDevice& from : made.devices) {
    SliceDevice device;
    device.name = from.name;
    for (const auto& [name, value] : from.attributes) device.attributes[name] = value_of(value);
    for (const auto& [name, value] : from.capacity) device.capacity[name] = kube::quantity_text(value);
    pool.devices.push_back(std::move(device));
  }
  return pool;
}

// It only sees devices (admin access), by claims of its own: any number of such pods fits.
bool takes_nothing(const Pod& pod, const Verdict& verdict) {
  const auto is_admin = [](const ClaimResult& one) {
    return std::ranges::all_of(one.devices, &AllocatedDevice::admin_access);
  };
  return scheduled_amounts(pod).empty() &&
         std::ranges::all_of(pod.claims, [](const PodClaim& one) { return one.claim.empty(); }) &&
         std::ranges::all_of(verdict.devices, is_admin);
}

Count count_on(Fleet rules, const Pod& pod, NodeState state, int most, Effort* effort, std::string& why) {
  for (int count = 0; count < most; ++count) {
    const Verdict verdict = fit(rules, pod, state, effort);
    const bool least = verdict.answer == Answer::unknown;
    if (verdict.answer != Answer::yes) {
      if (count > 0) return {count, least};
      if (!least && !verdict.obstacles.empty()) why = words_of(verdict.obstacles.front());
      return least ? Count{std::nullopt, true} : Count{0, false};
    }
    if (takes_nothing(pod, verdict)) break;
    Pod one = pod;
    one.name += "-" + std::to_string(count);
    place(rules, one, verdict, state);
    share_claims(one, verdict, state, rules);
  }
  return {most, true};
}

}  // namespace

NodeState emptied(NodeState state) {
  const std::vector<Pod> pods = state.pods;
  for (const Pod& pod : pods) {
    if (release(pod, state)) continue;
    // Which devices its cores were on is not known: as if all were healthy.
    for (const auto& [resource, units] : state.node.capacity) state.node.allocatable[resource] = units;
  }
  state.pods.clear();
  state.claims.clear();
  state.pods_hidden = state.claims_hidden = false;
  if (state.general) state.general->free = state.general->allocatable;
  for (Pool& pool : state.pools) {
    for (SliceDevice& device : pool.devices) {
      std::erase_if(device.taints, [](const Taint& taint) { return taint.key.ends_with("/held"); });
    }
  }
  return state;
}

NodeState empty_node(const std::string& instance_type, Mode mode) {
  NodeState state;
  const core::InstanceType* type = core::find_instance_type(instance_type);
  state.node.name = instance_type;
  state.node.instance_type = instance_type;
  state.node.ready = true;
  state.node.mode = mode;
  if (type == nullptr) return state;
  if (mode == Mode::claims) {
    state.pools.push_back(pool_of(host_of(*type), instance_type));
    return state;
  }
  const std::int64_t per_device = type->physical_cores_per_device / std::max(type->default_lnc, 1);
  state.node.capacity = {{kNeuron, type->device_count}, {kNeuronCore, type->device_count * per_device}};
  if (type->efa_count > 0) state.node.capacity[kEfa] = type->efa_count;
  state.node.allocatable = state.node.capacity;
  return state;
}

std::vector<TypeCount> counts_by_type(const Fleet& rules, const Pod& pod, int most, Effort* effort) {
  std::vector<TypeCount> all;
  if (!asks_for_hardware(pod)) return all;
  Pod anywhere = pod;
  anywhere.node_selector.clear();
  anywhere.node_affinity.clear();
  anywhere.gates.clear();
  const Mode mode = pod.claims.empty() ? Mode::device_plugin : Mode::claims;
  for (const core::InstanceType& type : core::all_instance_types()) {
    TypeCount one{type.name, {std::nullopt, true}, ""};
    all.push_back(one);
    if (is_over(effort)) continue;
    NodeState state = empty_node(type.name, mode);
    const bool by_other_name = scheduled_amounts(pod).contains(kNeuronDevice) && mode == Mode::device_plugin;
    if (by_other_name) state.node.capacity[kNeuronDevice] = state.node.allocatable[kNeuronDevice] = type.device_count;
    one.pods = count_on(rules, anywhere, std::move(state), most, effort, one.why);
    all.back() = std::move(one);
  }
  return all;
}

}  // namespace neuron::fleet
