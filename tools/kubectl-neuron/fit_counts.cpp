#include <algorithm>
#include <optional>

#include "agent/core/catalogue.h"
#include "tools/kubectl-neuron/fit.h"

// Resources that are counted: what the scheduler, the kubelet and the agent's device plugin do with them.
namespace neuron::fleet {
namespace {

using Kind = Obstacle::Kind;

std::int64_t amount(const Amounts& amounts, const std::string& name) {
  const auto found = amounts.find(name);
  return found == amounts.end() ? 0 : found->second;
}

using Units = SingleNames;  // of one container or pod: devices by either name, cores

Units units_of(const Amounts& amounts) {
  return {amount(amounts, kNeuron) + amount(amounts, kNeuronDevice), amount(amounts, kNeuronCore)};
}

bool is_cores(const std::string& resource) {
  return resource == kNeuronCore;
}

std::int64_t rounded_up(std::int64_t value, std::int64_t by) {
  return (value + by - 1) / by;
}

std::int64_t devices_of(const Node& node) {
  return std::max(amount(node.capacity, kNeuron), amount(node.capacity, kNeuronDevice));
}

// Whether each device is offered as a device and as cores, or as one of them alone (--core-devices).
enum class Split : std::uint8_t { no, yes, unknown };

// Devices of the whole node; 0: unknown.
std::int64_t all_devices(const NodeState& state) {
  if (state.report != nullptr && !state.report->host.devices.empty())
    return static_cast<std::int64_t>(state.report->host.devices.size());
  const core::InstanceType* type = core::find_instance_type(state.node.instance_type);
  return type == nullptr ? 0 : type->device_count;
}

// Of a split in halves both counts are as without one, but for the number of devices.
Split split_of(const NodeState& state) {
  const std::int64_t devices = devices_of(state.node), cores = amount(state.node.capacity, kNeuronCore);
  if (devices == 0 || cores == 0 || cores != devices * cores_per_device(state)) return Split::yes;
  const std::int64_t all = all_devices(state);
  if (all == 0 || 2 * devices < all) return Split::unknown;
  return 2 * devices == all ? Split::yes : Split::no;
}

// Units of containers that ask by one name alone. A container that asks for more has the same hardware through all.
struct Held {
  std::int64_t neuron = 0;
  std::int64_t neurondevice = 0;
  std::int64_t devices = 0;  // by any name of devices, not by cores
  std::int64_t cores = 0;
};

Held held_by(const Pod& pod) {
  Held all;
  for (const Container& container : pod.containers) {
    const std::int64_t neuron = amount(container.requests, kNeuron);
    const std::int64_t neurondevice = amount(container.requests, kNeuronDevice);
    const std::int64_t cores = amount(container.requests, kNeuronCore);
    if (container.init && !container.sidecar) continue;
    if (neurondevice == 0 && cores == 0) all.neuron += neuron;
    if (neuron == 0 && cores == 0) all.neurondevice += neurondevice;
    if (cores == 0) all.devices += std::max(neuron, neurondevice);
    if (neuron == 0 && neurondevice == 0) all.cores += cores;
  }
  return all;
}

// At least so many units of `resource` are withheld for what is held by name `other`.
std::int64_t least_of(const Held& held, std::int64_t per_device, const std::string& resource,
                      const std::string& other) {
  if (resource == kEfa || resource == other) return 0;
  if (is_cores(other)) return rounded_up(held.cores, per_device);
  return (other == kNeuron ? held.neuron : held.neurondevice) * (is_cores(resource) ? per_device : 1);
}

// One node's counts as one pod sees them.
class Counts {
 public:
  Counts(const NodeState& state, const Pod& pod, bool both)
      : state_(state), pod_(pod), per_device_(cores_per_device(state)), both_(both) {
    for (const Pod& other : state.pods) {
      if (is_same(other)) continue;
      const Held held = held_by(other);
      single_.neuron += held.neuron;
      single_.neurondevice += held.neurondevice;
      single_.devices += held.devices;
      single_.cores += held.cores;
    }
  }

  // Units that the kubelet counts, less what pods hold by the other name or the agent knows to be unhealthy and the
  // node's status does not show yet.
  [[nodiscard]] std::int64_t allocatable(const std::string& resource) const {
    std::int64_t all = amount(state_.node.allocatable, resource);
    all = std::min(all, amount(state_.node.capacity, resource) - least_by_other_names(resource));
    if (const auto count = unhealthy(resource)) all = std::min(all, amount(state_.node.capacity, resource) - *count);
    return std::max<std::int64_t>(all, 0);
  }

  [[nodiscard]] std::int64_t free(const std::string& resource) const {
    std::int64_t used = 0;
    for (const Holder& holder : holders(resource)) used += holder.amount;
    return allocatable(resource) - used;
  }

  [[nodiscard]] std::vector<Holder> holders(const std::string& resource) const {
    std::vector<Holder> all;
    for (const Pod& other : state_.pods) {
      const std::int64_t own = amount(scheduled_amounts(other), resource);
      if (own > 0 && !is_same(other)) all.push_back({full_name(other), own});
    }
    std::ranges::stable_sort(all, std::greater<>(), &Holder::amount);
    return all;
  }

  // Why fewer are allocatable than the node has.
  [[nodiscard]] std::vector<Obstacle> withheld(const std::string& resource) const {
    std::vector<Obstacle> all;
    std::int64_t missing = amount(state_.node.capacity, resource) - allocatable(resource);
    if (missing <= 0) return all;
    for (const char* name : {kNeuron, kNeuronDevice, kNeuronCore}) {
      Obstacle other = obstacle(Kind::other_name, resource, name);
      other.asked = least_by(name, resource);
      other.holders = holders(name);
      if (other.asked > 0) all.push_back(std::move(other));
    }
    const auto count = unhealthy(resource);
    const std::int64_t rest = missing - least_by_other_names(resource);
    const bool is_exact = is_cores(resource) || least_by(kNeuronCore, resource) == 0;
    Obstacle unhealthy;
    unhealthy.kind = Kind::unhealthy;
    unhealthy.name = resource;
    unhealthy.asked = count ? *count : is_exact ? rest : -1;
    const bool is_served = allocatable(resource) > 0 || !state_.node.agent_pod.empty();
    if (!is_served) unhealthy.detail = "not served";
    if (count ? *count > 0 : rest > 0) all.push_back(unhealthy);
    return all;
  }

  [[nodiscard]] std::int64_t per_device() const { return per_device_; }
  [[nodiscard]] bool both() const { return both_; }

 private:
  // A template is no pod of its name, and has neither of the first two.
  [[nodiscard]] bool is_same(const Pod& other) const {
    const bool is_object = !pod_.uid.empty() || !pod_.created.empty();
    return is_object && other.uid == pod_.uid && other.created == pod_.created &&
           other.pod_namespace == pod_.pod_namespace && other.name == pod_.name;
  }

  [[nodiscard]] std::int64_t least_by(const std::string& other, const std::string& resource) const {
    const bool is_apart = !both_ && (is_cores(other) || is_cores(resource));
    return is_apart ? 0 : least_of(single_, per_device_, resource, other);
  }

  [[nodiscard]] std::int64_t least_by_other_names(const std::string& resource) const {
    if (is_cores(resource)) return both_ ? single_.devices * per_device_ : 0;
    return least_by(kNeuron, resource) + least_by(kNeuronDevice, resource) + least_by(kNeuronCore, resource);
  }

  [[nodiscard]] std::optional<std::int64_t> unhealthy(const std::string& resource) const {
    if (state_.report == nullptr || is_cores(resource)) return std::nullopt;
    // Which devices are offered as cores alone is not known.
    if (resource != kEfa && !both_ && amount(state_.node.capacity, kNeuronCore) > 0) return std::nullopt;
    const auto is_sick = [](const auto& one) { return one.health.state == model::HealthState::unhealthy; };
    const model::HostScan& host = state_.report->host;
    return resource == kEfa ? std::ranges::count_if(host.efas, is_sick) : std::ranges::count_if(host.devices, is_sick);
  }

  const NodeState& state_;
  const Pod& pod_;
  std::int64_t per_device_;
  bool both_;
  Held single_;  // of the other pods
};

void add_too_few(const Counts& counts, const std::string& resource, std::int64_t asked, std::vector<Obstacle>& all) {
  Obstacle few = obstacle(Kind::too_few, resource);
  few.asked = asked;
  few.free = std::max<std::int64_t>(counts.free(resource), 0);
  few.total = counts.allocatable(resource);
  few.holders = counts.holders(resource);
  all.push_back(few);
  for (Obstacle& reason : counts.withheld(resource)) all.push_back(std::move(reason));
}

Obstacle not_listed(const Node& node, const std::string& resource) {
  Obstacle one = obstacle(node.mode == Mode::claims ? Kind::other_mode : Kind::no_resource, resource);
  if (node.mode == Mode::claims) one.detail = "claims";
  return one;
}

// One container with both names has to ask for the same hardware by both.
void add_container_obstacles(const Pod& pod, const Counts& counts, std::vector<Obstacle>& all) {
  for (const Container& container : pod.containers) {
    const Units own = units_of(container.requests);
    if (own.devices == 0 || own.cores == 0) continue;
    if (counts.both() && own.cores == own.devices * counts.per_device()) continue;
    Obstacle one = obstacle(Kind::both_names, container.name);
    one.asked = own.devices * counts.per_device();
    one.free = own.cores;
    if (!counts.both()) one.detail = "split";
    all.push_back(one);
  }
}

// Containers of one pod that ask by different names: the scheduler counts them apart, the agent cannot.
void add_pod_obstacles(const Pod& pod, const Counts& counts, std::vector<Obstacle>& all) {
  const Units own = single_names(pod);
  if (!counts.both() || own.devices == 0 || own.cores == 0) return;
  const std::int64_t cores = counts.free(kNeuronCore), needed = own.cores + own.devices * counts.per_device();
  if (needed > cores) {
    Obstacle few = obstacle(Kind::too_few, kNeuronCore);
    few.detail = "refused";
    few.asked = needed;
    few.free = std::max<std::int64_t>(cores, 0);
    few.total = counts.allocatable(kNeuronCore);
    few.holders = counts.holders(kNeuronCore);
    all.push_back(few);
  } else if (counts.free(kNeuron) - own.devices < rounded_up(own.cores, counts.per_device())) {
    all.push_back(obstacle(Kind::name_order, kNeuronCore));
  }
}

// As if every device were offered under both names, or none.
std::vector<Obstacle> obstacles_if(bool both, const Fleet& fleet, const Pod& pod, const NodeState& state) {
  std::vector<Obstacle> all;
  const Counts counts(state, pod, both);
  bool counted = false;
  for (const auto& [resource, asked] : scheduled_amounts(pod)) {
    if (asked <= 0 || is_by_claim(fleet, state.node, resource)) continue;
    counted = true;
    if (amount(state.node.capacity, resource) == 0 && amount(state.node.allocatable, resource) == 0) {
      all.push_back(not_listed(state.node, resource));
    } else if (counts.free(resource) < asked) {
      add_too_few(counts, resource, asked, all);
    }
  }
  if (!counted || !all.empty()) return all;
  add_container_obstacles(pod, counts, all);
  if (all.empty()) add_pod_obstacles(pod, counts, all);
  return all;
}

}  // namespace

// Devices and cores of containers that ask for one of the two: what the other name has less. A container that asks for
// both has the same hardware through both.
SingleNames single_names(const Pod& pod) {
  const Held held = held_by(pod);
  return {held.devices, held.cores};
}

std::int64_t least_by_other_name(const SingleNames& held, const NodeState& state, const std::string& resource) {
  if (resource == kEfa || split_of(state) == Split::yes) return 0;
  const std::int64_t cores = cores_per_device(state);
  return is_cores(resource) ? held.devices * cores : rounded_up(held.cores, cores);
}

std::int64_t cores_per_device(const NodeState& state) {
  const Node& node = state.node;
  if (state.report != nullptr) {
    for (const std::vector<int>& ids : state.report->core_ids) {
      if (!ids.empty()) return static_cast<std::int64_t>(ids.size());
    }
  }
  const core::InstanceType* type = core::find_instance_type(node.instance_type);
  const std::int64_t devices = devices_of(node), cores = amount(node.capacity, kNeuronCore);
  if (type != nullptr && type->device_count > 0) {
    const auto label = node.labels.find("neuron-agent/lnc");
    const bool is_whole = devices == type->device_count && cores > 0 && cores % devices == 0;
    if (is_whole) return cores / devices;
    const int lnc = label == node.labels.end() ? type->default_lnc : label->second == "2" ? 2 : 1;
    return type->physical_cores_per_device / lnc;
  }
  return devices > 0 && cores % devices == 0 ? cores / devices : 0;
}

bool offers_both_names(const NodeState& state) {
  const bool has_two = amount(state.node.capacity, kNeuron) > 0 && amount(state.node.capacity, kNeuronDevice) > 0;
  return has_two || split_of(state) != Split::yes;
}

const DeviceClass* class_of_resource(const Fleet& fleet, const std::string& resource) {
  const auto found = std::ranges::find(fleet.classes, resource, &DeviceClass::extended_resource);
  return resource.empty() || found == fleet.classes.end() ? nullptr : &*found;
}

bool is_by_claim(const Fleet& fleet, const Node& node, const std::string& resource) {
  return amount(node.allocatable, resource) == 0 && node.mode != Mode::device_plugin &&
         class_of_resource(fleet, resource) != nullptr;
}

std::int64_t free_units(const NodeState& state, const std::string& resource) {
  return std::max<std::int64_t>(Counts(state, Pod{}, split_of(state) != Split::yes).free(resource), 0);
}

std::vector<Obstacle> count_obstacles(const Fleet& fleet, const Pod& pod, const NodeState& state) {
  const Split split = split_of(state);
  std::vector<Obstacle> apart = obstacles_if(split == Split::no, fleet, pod, state);
  if (split != Split::unknown) return apart;
  if (obstacles_if(true, fleet, pod, state).empty() == apart.empty()) return apart;
  return {obstacle(Kind::unread, "", "split")};
}

namespace {

bool is_all_allocatable(const Node& node) {
  return std::ranges::all_of(node.capacity,
                             [&](const auto& one) { return amount(node.allocatable, one.first) >= one.second; });
}

// By a container that asks for devices: they were withheld from cores alone.
bool is_held_whole(const report::NodeReport& report, const Pod& pod, int device) {
  return std::ranges::any_of(*report.pods, [&](const report::PodUse& use) {
    if (use.pod_namespace != pod.pod_namespace || use.pod != pod.name || !use.devices.contains(device)) return false;
    const auto own = std::ranges::find(pod.containers, use.container, &Container::name);
    return own != pod.containers.end() && units_of(own->requests).devices > 0;
  });
}

}  // namespace

bool release(const Pod& pod, NodeState& state) {
  const auto same = [&](const Pod& other) {
    return other.pod_namespace == pod.pod_namespace && other.name == pod.name;
  };
  const Split split = split_of(state);
  std::erase_if(state.pods, same);
  std::erase_if(state.claims, [&](Claim& claim) {
    const bool held = claim.claim_namespace == pod.pod_namespace && std::erase(claim.reserved_for, pod.name) > 0;
    return held && claim.reserved_for.empty();
  });
  // Units held by one name return under the other.
  const auto back = [&](const char* name, std::int64_t units) {
    const auto found = state.node.allocatable.find(name);
    if (found == state.node.allocatable.end()) return;
    found->second = std::min(found->second + units, amount(state.node.capacity, name));
  };
  const Held held = held_by(pod);
  back(kNeuron, held.neurondevice);
  back(kNeuronDevice, held.neuron);
  if (split == Split::yes || (held.devices == 0 && held.cores == 0)) return true;
  if (split == Split::unknown) return is_all_allocatable(state.node);
  back(kNeuronCore, held.devices * cores_per_device(state));
  if (held.cores == 0) return true;
  if (state.report == nullptr || !state.report->pods) return false;
  std::int64_t freed = 0;
  for (const model::NeuronDevice& device : state.report->host.devices) {
    const auto users = report::pods_on_device(*state.report, device.index);
    const auto has_ended = [&](const std::string& user) {  // this one, or before
      return user != "unknown" && std::ranges::find(state.pods, user, full_name) == state.pods.end();
    };
    const bool is_last = users && std::ranges::find(*users, full_name(pod)) != users->end();
    if (is_last && std::ranges::all_of(*users, has_ended) && !is_held_whole(*state.report, pod, device.index)) ++freed;
  }
  back(kNeuron, freed);
  back(kNeuronDevice, freed);
  return true;
}

}  // namespace neuron::fleet
