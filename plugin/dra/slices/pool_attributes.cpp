#include "plugin/dra/slices/pool_attributes.h"

#include <algorithm>
#include <array>

#include "agent/core/catalogue.h"
#include "neuron_version.h"

namespace neuron::plugin::dra {
namespace {

using model::Resource;

constexpr const char* kPcieRoot = "resource.kubernetes.io/pcieRoot";

// The API takes 64 bytes (docs/reference/dra.md#limits); what is read from the machine is printable already.
std::string text(std::string_view value) {
  constexpr std::size_t kMaxBytes = 64;
  return std::string(value.substr(0, kMaxBytes));
}

std::string family_of(const grant::NodeUnits& node) {
  for (const model::NeuronDevice& device : node.snapshot().host.devices) {
    if (device.family) return std::string(model::to_string(*device.family));
  }
  return "";
}

// What every device has, of whatever kind: a class's expression is evaluated for each of them, and a name that is
// missing is an error that ends the scheduling of the pod (docs/reference/dra.md#attributes).
Attributes common(const grant::NodeUnits& node, const char* type, std::int64_t size) {
  const model::HostScan& host = node.snapshot().host;
  Attributes all;
  all["resourceType"] = std::string(type);
  all["instanceType"] = text(host.instance_type);
  all["neuronDriverVersion"] = text(host.driver_version);
  all["draDriverVersion"] = Version{kVersion};
  all["family"] = family_of(node);
  all["lnc"] = std::int64_t{host.lnc ? host.lnc->value : 0};
  all["deviceId"] = std::int64_t{-1};
  all["size"] = size;
  all["numaNode"] = std::int64_t{-1};
  all["health"] = std::string(model::to_string(model::HealthState::unhealthy));
  return all;
}

void add_group_ids(Attributes& all, const std::optional<core::DeviceGroupIds>& ids) {
  if (!ids) return;
  all["resource.aws.com/devicegroup1_id"] = ids->of1;
  all["resource.aws.com/devicegroup4_id"] = ids->of4;
  all["resource.aws.com/devicegroup8_id"] = ids->of8;
  all["resource.aws.com/devicegroup16_id"] = ids->of16;
}

// Ours, where AWS has no id: which aligned group of that size, so that claims can match on it without a group being a
// device (docs/dra-partitions.md).
void add_own_group_ids(Attributes& all, const grant::NodeUnits& node, int device) {
  const allocator::NodeTopology& topology = node.topology();
  const int indices = ring_size(node);
  for (const int size : {2, 3, 4, 6, 8}) {
    const bool lacks_id = topology.groups_of_torus ? size == 2 : topology.ring || topology.line;
    if (lacks_id && 2 * size <= indices) all["group" + std::to_string(size) + "_id"] = std::int64_t{device / size};
  }
}

// An interface is in the groups of the devices that it is the nearest of.
void add_own_group_ids(Attributes& all, const grant::NodeUnits& node, const core::InstanceType& type,
                       const model::Bdf& efa) {
  const auto nearest = std::find_if(type.devices.begin(), type.devices.end(),
                                    [&](const core::DeviceFacts& device) { return device.nearest_efa == efa; });
  if (nearest == type.devices.end()) return;
  add_own_group_ids(all, node, static_cast<int>(nearest - type.devices.begin()));
}

// AWS's, on Trainium with more than one device: row and column of the torus.
void add_place(Attributes& all, const grant::NodeUnits& node, const model::NeuronDevice& device) {
  const bool trainium =
      device.family && *device.family != model::Family::inferentia && *device.family != model::Family::inferentia2;
  if (!trainium || ring_size(node) < 2) return;
  all["topology_x"] = std::int64_t{device.index / 4};
  all["topology_y"] = std::int64_t{device.index % 4};
  all["topology4_id"] = std::int64_t{device.index / 4};
  all["topology8_id"] = std::int64_t{device.index / 8};
}

void add_facts(Attributes& all, const grant::NodeUnits& node, int index) {
  all["deviceId"] = std::int64_t{index};
  all["serial"] = std::string();
  const auto* type = core::find_instance_type(node.snapshot().host.instance_type);
  if (type != nullptr) add_group_ids(all, core::device_group_ids(*type, index));
  add_own_group_ids(all, node, index);
  const model::NeuronDevice* device = node.device(index);
  if (device == nullptr) return;
  all["serial"] = text(device->serial.value_or(""));
  if (device->family) all["family"] = std::string(model::to_string(*device->family));
  if (device->numa_node) all["numaNode"] = std::int64_t{device->numa_node->value};
  if (!device->pcie_root.empty()) all[kPcieRoot] = text(device->pcie_root);
  all["health"] = std::string(model::to_string(device->health.state));
  add_place(all, node, *device);
}

// Takes from `all` what the members agree on, and the worst of their health.
void add_agreed(Attributes& all, const grant::NodeUnits& node, const std::vector<int>& devices) {
  static constexpr std::array kShared = {"resource.aws.com/devicegroup1_id",
                                         "resource.aws.com/devicegroup4_id",
                                         "resource.aws.com/devicegroup8_id",
                                         "resource.aws.com/devicegroup16_id",
                                         "numaNode",
                                         "family",
                                         kPcieRoot};
  std::vector<Attributes> members;
  int worst = 0;
  for (const int index : devices) {
    members.emplace_back();
    add_facts(members.back(), node, index);
    const model::NeuronDevice* device = node.device(index);
    const auto state = device != nullptr ? device->health.state : model::HealthState::unhealthy;
    if (model::badness(state) < worst) continue;
    worst = model::badness(state);
    all["health"] = std::string(model::to_string(state));
  }
  for (const char* name : kShared) {
    const auto first = members.front().find(name);
    if (first == members.front().end()) continue;
    const bool agreed = std::all_of(members.begin(), members.end(), [&](const Attributes& member) {
      const auto at = member.find(name);
      return at != member.end() && at->second == first->second;
    });
    if (agreed) all[name] = first->second;
  }
}

void add_ultraserver(Attributes& all, const grant::NodeUnits& node) {
  const auto& ultraserver = node.snapshot().host.ultraserver;
  if (!ultraserver || ultraserver->memberships.empty()) return;
  std::string modes;
  for (const int mode : ultraserver->modes) modes += (modes.empty() ? "" : "_") + std::to_string(mode);
  all["ultraserverMode"] = text(modes);
  all["ultraserverId"] = text(ultraserver->memberships.back().server_id);
  for (const auto& membership : ultraserver->memberships) {
    const std::string suffix = membership.nodes > 0 ? std::to_string(membership.nodes) : "";
    all["ultraserverServerId" + suffix] = text(membership.server_id);
    all["ultraserverNodeId" + suffix] = std::int64_t{membership.node_id};
  }
}

}  // namespace

Attributes device_attributes(const grant::NodeUnits& node, int device) {
  Attributes all = common(node, "neuron_device", 1);
  add_facts(all, node, device);
  add_ultraserver(all, node);
  return all;
}

Attributes core_attributes(const grant::NodeUnits& node, int device, int core) {
  Attributes all = device_attributes(node, device);
  all["resourceType"] = std::string("neuron_core");
  all["size"] = std::int64_t{0};
  all["core"] = std::int64_t{core};
  const std::vector<int> ids =
      node.device(device) != nullptr ? node.cores_of(Resource::neuron, device) : std::vector<int>{};
  const bool known = core >= 0 && core < static_cast<int>(ids.size());
  const auto state = known ? node.health_of(Resource::neuroncore, ids[static_cast<std::size_t>(core)]).state
                           : model::HealthState::unhealthy;
  all["health"] = std::string(model::to_string(state));
  return all;
}

Attributes group_attributes(const grant::NodeUnits& node, const std::vector<int>& devices) {
  Attributes all = common(node, "neuron_group", static_cast<std::int64_t>(devices.size()));
  all["first"] = std::int64_t{devices.front()};
  add_agreed(all, node, devices);
  add_ultraserver(all, node);
  return all;
}

Attributes node_attributes(const grant::NodeUnits& node, const std::vector<int>& devices) {
  Attributes all = common(node, "neuron_node", static_cast<std::int64_t>(devices.size()));
  if (!devices.empty()) add_agreed(all, node, devices);
  add_ultraserver(all, node);
  return all;
}

Attributes efa_attributes(const grant::NodeUnits& node, int unit) {
  Attributes all = common(node, "efa", 0);
  all["rdmaDevice"] = std::string();
  all["pciAddress"] = std::string();
  if (unit < 0) return all;
  const model::EfaInterface& efa = node.efa(unit);
  all["rdmaDevice"] = text(efa.name);
  all["pciAddress"] = model::to_string(efa.bdf);
  if (efa.numa_node) all["numaNode"] = std::int64_t{*efa.numa_node};
  if (!efa.pcie_root.empty()) all[kPcieRoot] = text(efa.pcie_root);
  all["health"] = std::string(model::to_string(efa.health.state));
  const auto* type = core::find_instance_type(node.snapshot().host.instance_type);
  if (type == nullptr) return all;
  add_group_ids(all, core::device_group_ids(*type, efa.bdf));
  add_own_group_ids(all, node, *type, efa.bdf);
  return all;
}

}  // namespace neuron::plugin::dra
