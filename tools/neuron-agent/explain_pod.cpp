#include "tools/neuron-agent/explain_pod.h"

#include <algorithm>
#include <set>
#include <utility>

#include "agent/allocator/allocator.h"
#include "agent/base/parse.h"
#include "agent/core/hardware.h"
#include "agent/core/logical_cores.h"
#include "agent/health/assess.h"
#include "agent/model/health.h"
#include "agent/model/resource.h"

namespace neuron::agent {
namespace {

using allocator::ChooseRequest;
using allocator::NodeTopology;
using allocator::Reason;
using model::Allocation;
using model::HostScan;

constexpr int kMaxId = 1 << 20;

// Hardware of one container by its ids, through any resource or claim; of what the scan lacks, too, unlike
// core::Hardware.
struct HeldIds {
  std::map<int, std::set<int>> cores;  // by device index: global logical ids; empty: their number is unknown
  std::set<std::string> efas;          // RDMA names
};

const model::EfaInterface* find_efa(const HostScan& host, const std::string& name) {
  const auto found = std::ranges::find_if(
      host.efas, [&](const model::EfaInterface& efa) { return !name.empty() && efa.name == name; });
  return found == host.efas.end() ? nullptr : &*found;
}

// Adds the hardware of a device plugin's id. False: the node has no such unit.
bool add_unit(HeldIds& hardware, model::Resource resource, const std::string& id, const HostScan& host) {
  if (resource == model::Resource::efa) {
    hardware.efas.insert(id);
    return find_efa(host, id) != nullptr;
  }
  const auto number = parse_int(id, 0, kMaxId);
  if (!number) return false;
  if (resource == model::Resource::neuroncore) {
    const int per_device = core::cores_per_device(host);
    if (per_device < 1) return false;
    const model::NeuronDevice* device = model::find_device(host.devices, *number / per_device);
    if (device == nullptr) return false;
    hardware.cores[device->index].insert(*number);
    return true;
  }
  const model::NeuronDevice* device = model::find_device(host.devices, *number);
  auto& cores = hardware.cores[*number];
  if (device == nullptr) return false;
  const auto ids = core::core_ids_of(*device, host);
  cores.insert(ids.begin(), ids.end());
  return true;
}

bool add_claimed(HeldIds& hardware, const std::string& name, const HostScan& host) {
  const auto parsed = core::parse_pool_name(name);
  if (!parsed) return false;
  const core::Hardware held = core::hardware_of(*parsed, host);
  for (const int index : held.device_indices()) hardware.cores[index];
  const int per_device = std::max(1, core::cores_per_device(host));
  for (const int core : core::core_ids_of(held, host)) hardware.cores[core / per_device].insert(core);
  hardware.efas.insert(held.efas.begin(), held.efas.end());
  return !held.devices.empty() || !held.efas.empty();
}

// Whether the allocation is of a resource of this agent, or of its claim driver.
bool is_offered_here(const Allocation& one, const std::string& driver) {
  return one.claim.empty() ? model::parse_resource(one.resource_name).has_value() : one.resource_name == driver;
}

ExplainedDevice held_device(int index, const std::set<int>& cores, const HostScan& host) {
  ExplainedDevice held;
  held.index = index;
  held.cores.assign(cores.begin(), cores.end());
  const model::NeuronDevice* device = model::find_device(host.devices, index);
  if (device == nullptr && is_unread_list(host, model::ScanPart::Kind::devices)) {
    held.health = health::verdict_on_unread_list(host, "neuron" + std::to_string(index), "sys/class/neuron_device");
    return held;
  }
  if (device == nullptr) {
    held.health = {model::HealthState::unhealthy, std::string(model::reason::kDeviceVanished),
                   "the machine has no neuron" + std::to_string(index),
                   "inspect the kernel log; reboot or replace the instance"};
    return held;
  }
  held.facts = *device;
  const auto all = core::core_ids_of(*device, host);
  held.whole = cores.size() >= all.size();
  std::set<int> physical;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!cores.contains(all[i])) continue;
    const auto behind = core::physical_cores_of(*device, host, static_cast<int>(i));
    physical.insert(behind.begin(), behind.end());
  }
  held.physical_cores.assign(physical.begin(), physical.end());
  held.health = held.whole ? device->health : core::health_of_cores(*device, held.physical_cores);
  if (model::badness(device->health.state) > model::badness(held.health.state)) {
    held.device_is = std::string(model::to_string(device->health.state));
  }
  return held;
}

ExplainedEfa held_efa(const std::string& name, const HostScan& host, const allocator::NodeTopology& topology) {
  ExplainedEfa held;
  held.name = name;
  const model::EfaInterface* efa = find_efa(host, name);
  if (efa == nullptr) return held;
  held.facts = *efa;
  const auto position = static_cast<std::size_t>(efa - host.efas.data());
  held.nearest_to = topology.efas[position].near_devices;
  std::ranges::sort(held.nearest_to);
  return held;
}

// The driver's report on one device of a claim: the worst health of its parts; degraded is healthy.
KubeletView view_of_driver(const std::string& name, const HostScan& host) {
  HeldIds hardware;
  if (!add_claimed(hardware, name, host)) return KubeletView::unknown;
  std::vector<model::HealthState> states;
  for (const auto& [index, cores] : hardware.cores) states.push_back(held_device(index, cores, host).health.state);
  for (const std::string& efa : hardware.efas) {
    const model::EfaInterface* facts = find_efa(host, efa);
    states.push_back(facts == nullptr ? model::HealthState::unhealthy : facts->health.state);
  }
  const auto any = [&](model::HealthState state) { return std::ranges::find(states, state) != states.end(); };
  if (any(model::HealthState::unhealthy)) return KubeletView::unhealthy;
  return any(model::HealthState::unknown) ? KubeletView::unknown : KubeletView::healthy;
}

KubeletView view_of_kubelet(const Allocation& one, const std::string& id, const ExplainFacts& facts) {
  if (!facts.allocatable) return KubeletView::unknown;
  const auto listed = facts.allocatable->find(one.resource_name);
  const bool healthy = listed != facts.allocatable->end() && listed->second.contains(id);
  return healthy ? KubeletView::healthy : KubeletView::unhealthy;
}

HeldUnits add_allocation(HeldIds& hardware, const Allocation& one, const ExplainFacts& facts) {
  HeldUnits units{one.resource_name, one.claim, one.ids, {}, {}, one.admin_access};
  const auto resource = model::parse_resource(one.resource_name);
  for (const std::string& id : one.ids) {
    const bool by_claim = !one.claim.empty();
    const bool known = by_claim ? add_claimed(hardware, id, facts.host) : add_unit(hardware, *resource, id, facts.host);
    if (!known) units.unknown.push_back(id);
    units.kubelet.push_back(by_claim ? view_of_driver(id, facts.host) : view_of_kubelet(one, id, facts));
  }
  return units;
}

// Hardware of each container of the node, by "namespace/pod/container".
std::map<std::string, HeldIds> all_holdings(const ExplainFacts& facts) {
  std::map<std::string, HeldIds> all;
  for (const Allocation& one : facts.allocations) {
    if (one.container.empty() || !is_offered_here(one, facts.driver)) continue;
    HeldIds& hardware = all[model::holder_name(one)];
    if (!one.admin_access) static_cast<void>(add_allocation(hardware, one, facts));
  }
  return all;
}

// ---- Locality

std::vector<int> all_devices(const NodeTopology& topology) {
  std::vector<int> indices;
  for (const auto& device : topology.devices) indices.push_back(device.index);
  return indices;
}

// The nearest set of `size` out of `available`, with its hops; the chooser has no reason where there is no choice.
allocator::Choice nearest_set(const NodeTopology& topology, const std::vector<int>& available, int size) {
  ChooseRequest request;
  request.available = available;
  request.size = size;
  allocator::Choice choice = choose_devices(topology, request);
  if (!choice.reason.hops) choice.reason = explain_devices(topology, request, choice.ids);
  return choice;
}

// A reason without its numbers about the remaining units, which have no meaning after the choice.
std::string head_of(const Reason& reason) {
  const std::string size = std::to_string(reason.units);
  if (reason.kind == Reason::Kind::scattered) return "set of " + size + ", not connected";
  if (reason.kind == Reason::Kind::core_scatter) return size + " cores that are not a range";
  const std::string words = phrase(reason);
  return words.substr(0, words.find(','));
}

void add_efas(Nearness& nearness, const NodeTopology& topology, const HeldIds& hardware,
              const std::vector<int>& devices) {
  std::vector<int> chosen;
  ChooseRequest request;
  request.prefer_devices = devices;
  for (std::size_t i = 0; i < topology.efas.size(); ++i) {
    request.available.push_back(static_cast<int>(i));
    if (hardware.efas.contains(topology.efas[i].name)) chosen.push_back(static_cast<int>(i));
  }
  if (chosen.empty() || devices.empty()) return;
  request.size = static_cast<int>(chosen.size());
  nearness.near_efas = explain_efas(topology, request, chosen).nearest;
  nearness.best_efas = explain_efas(topology, request, choose_efas(topology, request).ids).nearest;
}

std::vector<int> free_devices(const model::HostScan& host, const std::map<std::string, HeldIds>& all,
                              const std::string& holder) {
  std::vector<int> free;
  for (const model::NeuronDevice& device : host.devices) {
    const bool held = std::ranges::any_of(
        all, [&](const auto& entry) { return entry.first != holder && entry.second.cores.contains(device.index); });
    if (!held && device.health.state != model::HealthState::unhealthy) free.push_back(device.index);
  }
  return free;
}

Nearness nearness_of(const model::HostScan& host, const NodeTopology& topology, const HeldIds& hardware,
                     const std::vector<int>& free) {
  Nearness nearness;
  std::vector<int> devices;
  std::vector<int> cores;
  for (const auto& [index, ids] : hardware.cores) {
    devices.push_back(index);
    cores.insert(cores.end(), ids.begin(), ids.end());
  }
  add_efas(nearness, topology, hardware, devices);
  if (devices.empty()) return nearness;
  bool whole = true;
  for (const model::NeuronDevice& device : host.devices) {
    const auto held = hardware.cores.find(device.index);
    whole &= held == hardware.cores.end() || held->second.size() >= core::core_ids_of(device, host).size();
  }
  ChooseRequest request;
  request.available = all_devices(topology);
  Reason reason = explain_devices(topology, request, devices);
  if (!whole) {
    const Reason range = explain_cores(topology, {}, cores);
    nearness.scattered = range.kind == Reason::Kind::core_scatter;
    nearness.shape = head_of(range);
  } else {
    nearness.shape = head_of(reason);
  }
  nearness.hops = reason.hops;
  nearness.numa_nodes = reason.numa_nodes;
  const auto count = static_cast<int>(devices.size());
  if (nearness.hops) nearness.best_hops = nearest_set(topology, request.available, count).reason.hops;
  if (!whole || !nearness.hops || !nearness.best_hops || *nearness.hops <= *nearness.best_hops) return nearness;
  const allocator::Choice now = nearest_set(topology, free, count);
  const bool enough = static_cast<int>(now.ids.size()) == count;
  if (enough && now.reason.hops && *now.reason.hops < *nearness.hops) nearness.better_now = now.ids;
  return nearness;
}

void finish(ExplainedContainer& container, const std::string& holder, const ExplainFacts& facts,
            const std::map<std::string, HeldIds>& all) {
  const HeldIds& hardware = all.at(holder);
  const allocator::NodeTopology topology = allocator::make_topology(facts.host);
  for (const auto& [index, cores] : hardware.cores) {
    ExplainedDevice& device = container.devices.emplace_back(held_device(index, cores, facts.host));
    for (const auto& [other, theirs] : all) {
      if (other != holder && theirs.cores.contains(index)) device.shared_with.push_back(other);
    }
  }
  for (const std::string& name : hardware.efas) {
    ExplainedEfa& efa = container.efas.emplace_back(held_efa(name, facts.host, topology));
    efa.is_near = std::ranges::any_of(efa.nearest_to, [&](int index) { return hardware.cores.contains(index); });
  }
  container.nearness = nearness_of(facts.host, topology, hardware, free_devices(facts.host, all, holder));
}

}  // namespace

void add_held_interfaces(ExplainFacts& facts) {
  constexpr std::string_view kClaimed = "efa-";  // agent/core/hardware.h
  core::SeenBefore held;
  for (const Allocation& one : facts.allocations) {
    if (!is_offered_here(one, facts.driver) || one.admin_access) continue;
    for (const std::string& id : one.ids) {
      const bool in_pool = !one.claim.empty() && id.starts_with(kClaimed);
      const std::string name = in_pool ? id.substr(kClaimed.size()) : id;
      if (find_efa(facts.host, name) == nullptr) static_cast<void>(health::note_held_efa(held, name));
    }
  }
  if (!held.efas.empty()) facts.host = health::with_held(std::move(facts.host), std::move(held));
}

ExplainedPod explain_pod(const ExplainFacts& facts, std::string_view pod_namespace, std::string_view pod) {
  ExplainedPod explained{std::string(pod_namespace), std::string(pod), {}, {}};
  const auto all = all_holdings(facts);
  std::map<std::string, ExplainedContainer> containers;
  std::set<std::string> foreign;
  for (const Allocation& one : facts.allocations) {
    if (one.pod_namespace != pod_namespace || one.pod != pod || one.container.empty()) continue;
    if (!is_offered_here(one, facts.driver)) {
      if (!one.ids.empty()) foreign.insert(one.resource_name);
      continue;
    }
    if (one.ids.empty()) continue;
    HeldIds unused;
    ExplainedContainer& container = containers[model::holder_name(one)];
    container.name = one.container;
    container.units.push_back(add_allocation(unused, one, facts));
  }
  for (auto& [holder, container] : containers) {
    finish(container, holder, facts, all);
    explained.containers.push_back(std::move(container));
  }
  explained.foreign.assign(foreign.begin(), foreign.end());
  return explained;
}

bool is_fault(const model::Health& health) {
  return model::is_assessed(health) && health.state != model::HealthState::healthy &&
         health.reason != model::reason::kNoSignals;
}

bool HeldUnits::has_unhealthy() const {
  return std::ranges::find(kubelet, KubeletView::unhealthy) != kubelet.end();
}

bool has_faults(const ExplainedPod& pod) {
  return std::ranges::any_of(pod.containers, [](const ExplainedContainer& container) {
    const auto unhealthy_device = [](const ExplainedDevice& device) { return is_fault(device.health); };
    const auto unhealthy_efa = [](const ExplainedEfa& efa) { return !efa.facts || is_fault(efa.facts->health); };
    const auto withheld = [](const HeldUnits& units) { return !units.unknown.empty() || units.has_unhealthy(); };
    return std::ranges::any_of(container.devices, unhealthy_device) ||
           std::ranges::any_of(container.efas, unhealthy_efa) || std::ranges::any_of(container.units, withheld);
  });
}

bool is_worse_than_possible(const ExplainedPod& pod) {
  return std::ranges::any_of(pod.containers, &Nearness::is_worse_than_possible, &ExplainedContainer::nearness);
}

bool has_findings(const ExplainedPod& pod) {
  return has_faults(pod) || is_worse_than_possible(pod);
}

}  // namespace neuron::agent
