#include "plugin/dra/slices/pool.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include "agent/core/catalogue.h"
#include "agent/model/reasons.h"
#include "plugin/dra/slices/pool_attributes.h"
#include "plugin/dra/slices/pool_groups.h"
#include "plugin/dra/slices/pool_names.h"

namespace neuron::plugin::dra {
namespace {

using model::Resource;

// Makes one pool. What is made of a device that the node does not have is taken for vanished.
class Maker {
 public:
  Maker(const grant::NodeUnits& node, const PoolOptions& options, const std::vector<std::string>& held)
      : node_(node), options_(options), held_(held.begin(), held.end()) {
    for (const std::string& name : held_) {
      const auto parsed = parse_pool_name(name);
      if (!parsed) continue;
      held_names_.push_back(*parsed);
      holds_node_ |= std::holds_alternative<NodeName>(*parsed);
      holds_devices_ |= !std::holds_alternative<NodeName>(*parsed) && !std::holds_alternative<EfaName>(*parsed);
    }
  }

  Pool make() {
    if (is_one_device()) {
      add_node();
    } else if (!is_undecided()) {
      add_devices();
      if (offers(Partitions::groups)) add_groups();
      if (offers(Partitions::cores)) add_cores();
    }
    for (const int unit : node_.units(Resource::efa)) add_efa(unit);
    for (const PoolName& name : held_names_) std::visit([&](const auto& one) { keep(one); }, name);
    if (overlaps()) add_counters();
    return std::move(pool_);
  }

 private:
  [[nodiscard]] bool is_linked() const {
    const auto& ultraserver = node_.snapshot().host.ultraserver;
    return ultraserver && !ultraserver->memberships.empty();
  }
  [[nodiscard]] bool is_one_device() const {
    if (holds_node_ || holds_devices_) return holds_node_ && !holds_devices_;
    return options_.ultraserver == UltraServer::node && is_linked() && !node_.units(Resource::neuron).empty();
  }
  // While the servers find out who is linked with whom, nothing is promised that would have to be taken back.
  [[nodiscard]] bool is_undecided() const {
    const auto& ultraserver = node_.snapshot().host.ultraserver;
    return options_.ultraserver == UltraServer::node && !holds_devices_ && ultraserver && ultraserver->busy;
  }
  [[nodiscard]] bool offers(Partitions what) const {
    return options_.partitions == Partitions::all || options_.partitions == what;
  }
  [[nodiscard]] bool has(const PoolName& name) const { return names_.contains(to_string(name)); }
  [[nodiscard]] int core_count(int device) const {
    if (node_.device(device) == nullptr) return node_.topology().cores_per_device;
    return static_cast<int>(node_.cores_of(Resource::neuron, device).size());
  }

  // Of what the node does not show; "" while its list was never read.
  [[nodiscard]] std::string reason_of_absent(model::ScanPart::Kind list, std::string_view vanished) const {
    return is_unread_list(node_.snapshot().host, list) ? "" : std::string(vanished);
  }

  // "" = nothing is wrong with it.
  [[nodiscard]] std::string reason_of_device(int index) const {
    if (node_.device(index) == nullptr) {
      return reason_of_absent(model::ScanPart::Kind::devices, model::reason::kDeviceVanished);
    }
    return reason_in(node_.health_of(Resource::neuron, index));
  }
  [[nodiscard]] static std::string reason_in(const model::Health& health) {
    if (health.state != model::HealthState::unhealthy) return "";
    return health.reason.empty() ? "unhealthy" : health.reason;
  }
  [[nodiscard]] std::string reason_of_devices(const std::vector<int>& devices) const {
    for (const int index : devices) {
      if (std::string reason = reason_of_device(index); !reason.empty()) return reason;
    }
    return "";
  }

  PoolDevice& add(const PoolName& name, DeviceKind kind, Attributes attributes, const std::string& reason) {
    PoolDevice& device = pool_.devices.emplace_back();
    device.name = to_string(name);
    names_.insert(device.name);
    device.kind = kind;
    device.attributes = std::move(attributes);
    device.held = held_.contains(device.name);
    device.unhealthy = !reason.empty();
    if (device.unhealthy && !options_.taint_effect.empty()) {
      device.taints.push_back({options_.driver + "/unhealthy", reason, options_.taint_effect});
    }
    return device;
  }
  void set_capacity(PoolDevice& device) const {
    std::int64_t cores = 0, memory = 0;
    for (const int index : device.devices) {
      cores += core_count(index);
      const model::NeuronDevice* known = node_.device(index);
      if (known != nullptr) memory += static_cast<std::int64_t>(known->memory_bytes.value_or(0));
    }
    device.capacity = {{"cores", cores}, {"memory", memory}};
  }

  void add_device(int index) {
    PoolDevice& device =
        add(DeviceName{index}, DeviceKind::device, device_attributes(node_, index), reason_of_device(index));
    device.devices = {index};
    set_capacity(device);
  }
  void add_devices() {
    for (const int index : node_.units(Resource::neuron)) add_device(index);
  }

  void add_core(int index, int core) {
    std::string reason = reason_of_device(index);
    const int count = core_count(index);
    if (node_.device(index) != nullptr) {
      const auto ids = node_.cores_of(Resource::neuron, index);
      reason = core < count ? reason_in(node_.health_of(Resource::neuroncore, ids[static_cast<std::size_t>(core)]))
                            : std::string(model::reason::kCoreMissing);
    }
    PoolDevice& device = add(CoreName{index, core}, DeviceKind::core, core_attributes(node_, index, core), reason);
    device.devices = {index};
    set_capacity(device);
    device.capacity["cores"] = 1;
    device.capacity["memory"] /= std::max(count, 1);
  }
  void add_cores() {
    for (const int index : node_.units(Resource::neuron)) {
      for (int core = 0; core < core_count(index); ++core) add_core(index, core);
    }
  }

  void add_group(const GroupName& name, const std::vector<int>& members) {
    PoolDevice& device = add(name, DeviceKind::group, group_attributes(node_, members), reason_of_devices(members));
    device.devices = members;
    set_capacity(device);
  }
  void add_groups() {
    for (const Group& group : groups_of(node_)) add_group(group.name, group.members);
  }

  void add_efa(int unit) {
    const model::EfaInterface& efa = node_.efa(unit);
    const EfaName name{efa_label(efa.name)};
    if (!has(name)) add(name, DeviceKind::efa, efa_attributes(node_, unit), reason_in(efa.health));
  }
  void add_node() {
    const std::vector<int>& units = node_.units(Resource::neuron);
    PoolDevice& device = add(NodeName{}, DeviceKind::node, node_attributes(node_, units), reason_of_devices(units));
    device.devices = units;
    set_capacity(device);
  }

  void keep(const DeviceName& name) {
    if (!has(name)) add_device(name.device);
  }
  void keep(const CoreName& name) {
    if (!has(name)) add_core(name.device, name.core);
  }
  void keep(const GroupName& name) {
    const std::vector<int> members = members_of(name, ring_size(node_));
    if (!has(name) && !members.empty()) add_group(name, members);
  }
  void keep(const EfaName& name) {
    if (!has(name)) {
      add(name, DeviceKind::efa, efa_attributes(node_, -1),
          reason_of_absent(model::ScanPart::Kind::pci, model::reason::kEfaVanished));
    }
  }
  void keep(const NodeName& name) {
    if (!has(name)) add_node();
  }

  [[nodiscard]] bool overlaps() const {
    return std::any_of(pool_.devices.begin(), pool_.devices.end(), [&](const PoolDevice& device) {
      return device.kind == DeviceKind::core || device.kind == DeviceKind::group ||
             (device.kind == DeviceKind::node && holds_devices_);
    });
  }
  // A counter counts all logical cores of a device, at least one, and those of them that a claim holds though the
  // device has fewer now.
  void add_counters() {
    const auto counter = [](int index) { return "device-" + std::to_string(index); };
    std::map<int, std::int64_t> cores;
    for (const PoolDevice& device : pool_.devices) {
      for (const int index : device.devices) cores.try_emplace(index, std::max(core_count(index), 1));
    }
    for (const PoolName& name : held_names_) {
      const auto* core = std::get_if<CoreName>(&name);
      if (core != nullptr) cores[core->device] = std::max<std::int64_t>(cores[core->device], core->core + 1);
    }
    for (const auto& [index, count] : cores) pool_.counters[counter(index)] = count;
    for (PoolDevice& device : pool_.devices) {
      for (const int index : device.devices) {
        device.consumes[counter(index)] = device.kind == DeviceKind::core ? 1 : cores.at(index);
      }
    }
  }

  const grant::NodeUnits& node_;
  const PoolOptions& options_;
  std::set<std::string> held_;
  std::vector<PoolName> held_names_;
  bool holds_node_ = false;
  bool holds_devices_ = false;
  std::set<std::string> names_;
  Pool pool_;
};

}  // namespace

Pool make_pool(const grant::NodeUnits& node, const PoolOptions& options, const std::vector<std::string>& held) {
  return Maker(node, options, held).make();
}

int ring_size(const grant::NodeUnits& node) {
  const auto* type = core::find_instance_type(node.snapshot().host.instance_type);
  const std::vector<int>& units = node.units(Resource::neuron);
  const int indices = units.empty() ? 0 : units.back() + 1;
  return type != nullptr ? std::max(type->device_count, indices) : indices;
}

}  // namespace neuron::plugin::dra
