#include <algorithm>
#include <array>

#include "agent/core/catalogue.h"
#include "neuron_version.h"
#include "plugin/dra/slices/pool.h"

namespace neuron::plugin::dra {
namespace {

using model::Resource;

constexpr const char* kPcieRoot = "resource.kubernetes.io/pcieRoot";

// At most 64 bytes, the API's limit (docs/reference/dra.md#limits). Text read from the machine is printable already.
std::string text(std::string_view value) {
  constexpr std::size_t kMaxBytes = 64;
  return std::string(value.substr(0, kMaxBytes));
}

template <typename Enum>
std::string word(Enum value) {
  return std::string(model::to_string(value));
}

std::string family_of(const grant::NodeUnits& node) {
  for (const model::NeuronDevice& device : node.snapshot().host.devices) {
    if (device.family) return word(*device.family);
  }
  return "";
}

// Attributes of every device of every kind. A class's expression is evaluated for each device, and a missing name is an
// error that ends the scheduling of the pod (docs/reference/dra.md#attributes).
Attributes common(const grant::NodeUnits& node, const char* type, std::size_t size) {
  const model::HostScan& host = node.snapshot().host;
  return {{"resourceType", std::string(type)},
          {"instanceType", text(host.instance_type)},
          {"neuronDriverVersion", text(host.driver_version)},
          {"draDriverVersion", Version{kVersion}},
          {"family", family_of(node)},
          {"lnc", std::int64_t{host.lnc ? host.lnc->value : 0}},
          {"deviceId", std::int64_t{-1}},
          {"size", static_cast<std::int64_t>(size)},
          {"numaNode", std::int64_t{-1}},
          {"health", word(model::HealthState::unhealthy)}};
}

void add_place(Attributes& all, std::optional<int> numa_node, const std::string& pcie_root) {
  if (numa_node) all["numaNode"] = std::int64_t{*numa_node};
  if (numa_node && *numa_node >= 0) all[kStandardNumaNode] = std::int64_t{*numa_node};
  if (!pcie_root.empty()) all[kPcieRoot] = text(pcie_root);
}

void add_aws_group_ids(Attributes& all, const std::optional<core::DeviceGroupIds>& ids) {
  if (!ids) return;
  all["resource.aws.com/devicegroup1_id"] = ids->of1;
  all["resource.aws.com/devicegroup4_id"] = ids->of4;
  all["resource.aws.com/devicegroup8_id"] = ids->of8;
  all["resource.aws.com/devicegroup16_id"] = ids->of16;
}

// Where AWS has no id: the number of the aligned group of that size, so that claims can match on it without a group
// being a device (docs/dra-partitions.md).
void add_aligned_group_ids(Attributes& all, const grant::NodeUnits& node, int device) {
  const allocator::NodeTopology& topology = node.topology();
  const int indices = core::ring_size(node.snapshot().host);
  for (const int size : {2, 3, 4, 6, 8}) {
    const bool lacks_id = topology.groups_of_torus ? size == 2 : topology.ring || topology.line;
    if (lacks_id && 2 * size <= indices) all["group" + std::to_string(size) + "_id"] = std::int64_t{device / size};
  }
}

// AWS's names, on Trainium with more than one device: row and column of the torus.
void add_torus_place(Attributes& all, const grant::NodeUnits& node, const model::NeuronDevice& device) {
  const bool trainium =
      device.family && *device.family != model::Family::inferentia && *device.family != model::Family::inferentia2;
  if (!trainium || core::ring_size(node.snapshot().host) < 2) return;
  all["topology_x"] = std::int64_t{device.index / 4};
  all["topology_y"] = std::int64_t{device.index % 4};
  all["topology4_id"] = std::int64_t{device.index / 4};
  all["topology8_id"] = std::int64_t{device.index / 8};
}

void add_facts(Attributes& all, const grant::NodeUnits& node, int index) {
  all["deviceId"] = std::int64_t{index};
  all["serial"] = std::string();
  const auto* type = core::find_instance_type(node.snapshot().host.instance_type);
  if (type != nullptr) add_aws_group_ids(all, core::device_group_ids(*type, index));
  add_aligned_group_ids(all, node, index);
  const model::NeuronDevice* device = node.device(index);
  if (device == nullptr) return;
  all["serial"] = text(device->serial.value_or(""));
  if (device->family) all["family"] = word(*device->family);
  add_place(all, device->numa_node ? std::optional<int>(device->numa_node->value) : std::nullopt, device->pcie_root);
  if (device->bdf) all[kPciBusId] = model::to_string(device->bdf->value);
  all["health"] = word(device->health.state);
  add_torus_place(all, node, *device);
}

// The values that all members share, and the worst of their health.
void add_shared(Attributes& all, const grant::NodeUnits& node, const std::vector<int>& devices) {
  static constexpr std::array kShared = {"resource.aws.com/devicegroup1_id",
                                         "resource.aws.com/devicegroup4_id",
                                         "resource.aws.com/devicegroup8_id",
                                         "resource.aws.com/devicegroup16_id",
                                         "numaNode",
                                         "family",
                                         kStandardNumaNode,
                                         kPcieRoot};
  if (devices.empty()) return;
  std::vector<Attributes> members;
  auto worst = model::HealthState::healthy;
  for (const int index : devices) {
    add_facts(members.emplace_back(), node, index);
    const model::NeuronDevice* device = node.device(index);
    const auto state = device != nullptr ? device->health.state : model::HealthState::unhealthy;
    if (model::badness(state) >= model::badness(worst)) worst = state;
  }
  all["health"] = word(worst);
  for (const char* name : kShared) {
    const auto first = members.front().find(name);
    if (first == members.front().end()) continue;
    const bool agreed = std::ranges::all_of(members, [&](const Attributes& member) {
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

// Attributes of a node, as AWS's driver has them. A claim that selects by an attribute that a device lacks is not
// scheduled at all, so each is there, "" where it is unknown.
void add_node_facts(Attributes& all, const NetworkLayers& layers) {
  for (const char* name : {"networkNodeLayer1", "networkNodeLayer2", "networkNodeLayer3"}) {
    const auto known = layers.find(name);
    all[name] = known != layers.end() ? known->second : std::string();
  }
  all["capacityBlockId"] = std::string();
  all["workloadId"] = std::string();  // of AWS's UltraServer operator
}

// The server's limit (docs/reference/dra.md#limits): on UltraServers AWS has no place in the torus either.
void keep_to_limit(Attributes& all, std::size_t capacities) {
  constexpr std::size_t kMost = 32;
  // Without AWS's group ids claims select by topology4_id and topology8_id.
  const auto order =
      all.contains("resource.aws.com/devicegroup4_id")
          ? std::array{"topology8_id", "topology4_id", "topology_y", "topology_x", kStandardNumaNode, kPciBusId}
          : std::array{kPciBusId, kStandardNumaNode, "topology_y", "topology_x", "topology8_id", "topology4_id"};
  for (const char* name : order) {
    if (all.size() + capacities <= kMost) return;
    all.erase(name);
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
  const auto at = static_cast<std::size_t>(core);
  all["health"] = word(core >= 0 && at < ids.size() ? node.health_of(Resource::neuroncore, ids[at]).state
                                                    : model::HealthState::unhealthy);
  return all;
}

Attributes group_attributes(const grant::NodeUnits& node, const std::vector<int>& devices) {
  Attributes all = common(node, "neuron_group", devices.size());
  all["first"] = std::int64_t{devices.front()};
  add_shared(all, node, devices);
  add_ultraserver(all, node);
  return all;
}

Attributes node_attributes(const grant::NodeUnits& node, const std::vector<int>& devices) {
  Attributes all = common(node, "neuron_node", devices.size());
  add_shared(all, node, devices);
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
  all[kPciBusId] = all["pciAddress"];
  add_place(all, efa.numa_node, efa.pcie_root);
  all["health"] = word(efa.health.state);
  const auto* type = core::find_instance_type(node.snapshot().host.instance_type);
  if (type == nullptr) return all;
  add_aws_group_ids(all, core::device_group_ids(*type, efa.bdf));
  // An interface is in the aligned groups of the devices whose nearest interface it is.
  const auto nearest = std::ranges::find_if(
      type->devices, [&](const core::DeviceFacts& device) { return device.nearest_efa == efa.bdf; });
  if (nearest != type->devices.end()) {
    add_aligned_group_ids(all, node, static_cast<int>(nearest - type->devices.begin()));
  }
  return all;
}

Attributes published_attributes(const PoolDevice& device, const NetworkLayers& layers) {
  Attributes all = device.attributes;
  if (device.kind != DeviceKind::efa) add_node_facts(all, layers);
  keep_to_limit(all, device.capacity.size());
  return all;
}

}  // namespace neuron::plugin::dra
