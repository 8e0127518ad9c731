#include "plugin/dra/slices/pool.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include "agent/model/health.h"

namespace neuron::plugin::dra {
namespace {

using model::Resource;

std::string reason_in(const model::Health& health) {
  if (health.state != model::HealthState::unhealthy) return "";
  return health.reason.empty() ? "unhealthy" : health.reason;
}

// Makes one pool. Devices that the node does not have count as vanished.
class PoolMaker {
 public:
  PoolMaker(const grant::NodeUnits& node, const PoolOptions& options, const std::vector<std::string>& held)
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
    pool_.shares = options_.shares;
    const std::vector<int>& units = node_.units(Resource::neuron);
    if (is_one_device()) {
      add(NodeName{});
    } else if (!is_undecided()) {
      for (const int index : units) {
        if (!is_split(index)) add(DeviceName{index});
      }
      if (offers(Partitions::groups)) {
        for (const Group& group : groups_of(node_)) add(group.name);
      }
      for (const int index : units) {
        if (!offers(Partitions::cores) && (!is_core_device(index) || is_held_whole(index))) continue;
        for (int core = 0; core < core_count(index); ++core) add(CoreName{index, core});
      }
    }
    for (const int unit : node_.units(Resource::efa)) {
      const EfaName name{efa_label(node_.efa(unit).name)};
      if (!has(name)) append(name, DeviceKind::efa, efa_attributes(node_, unit), reason_in(node_.efa(unit).health));
    }
    for (const PoolName& name : held_names_) {
      if (!has(name)) std::visit([&](const auto& one) { add(one); }, name);
    }
    if (overlaps()) add_counters();
    return std::move(pool_);
  }

 private:
  [[nodiscard]] bool is_one_device() const {
    if (holds_node_ || holds_devices_) return holds_node_ && !holds_devices_;
    const auto& ultraserver = node_.snapshot().host.ultraserver;
    const bool is_linked = ultraserver && !ultraserver->memberships.empty();
    return options_.ultraserver == UltraServer::node && is_linked && !node_.units(Resource::neuron).empty();
  }
  // During the election of an UltraServer, and while its files are unread, nothing is offered that might have to be
  // withdrawn.
  [[nodiscard]] bool is_undecided() const {
    const model::HostScan& host = node_.snapshot().host;
    const bool may_be_linked = host.ultraserver_is_unread || (host.ultraserver && host.ultraserver->busy);
    return options_.ultraserver == UltraServer::node && !holds_devices_ && may_be_linked;
  }
  [[nodiscard]] bool offers(Partitions what) const {
    return options_.partitions == Partitions::all || options_.partitions == what;
  }
  [[nodiscard]] bool is_core_device(int index) const {
    return options_.partitions == Partitions::none && options_.core_devices && options_.core_devices->contains(index);
  }
  // Offered as cores alone. With --core-devices a device of which a claim holds a core is not whole, and one that a
  // claim holds whole has no cores, whatever the option says of it now: so nothing overlaps.
  [[nodiscard]] bool is_split(int index) const {
    if (options_.partitions != Partitions::none || !options_.core_devices) return false;
    return is_core_device(index) || std::ranges::any_of(held_names_, [&](const PoolName& name) {
             const auto* core = std::get_if<CoreName>(&name);
             return core != nullptr && core->device == index;
           });
  }
  [[nodiscard]] bool is_held_whole(int index) const { return held_.contains(to_string(DeviceName{index})); }
  [[nodiscard]] bool has(const PoolName& name) const { return names_.contains(to_string(name)); }
  [[nodiscard]] int core_count(int device) const {
    if (node_.device(device) == nullptr) return node_.topology().cores_per_device;
    return static_cast<int>(node_.cores_of(Resource::neuron, device).size());
  }

  // For hardware that the node does not show; "" while its list was never read.
  [[nodiscard]] std::string reason_of_absent(model::ScanPart::Kind list, std::string_view vanished) const {
    return is_unread_list(node_.snapshot().host, list) ? "" : std::string(vanished);
  }
  [[nodiscard]] std::string reason_of(int device) const {  // "" = not unhealthy
    if (node_.device(device) != nullptr) return reason_in(node_.health_of(Resource::neuron, device));
    return reason_of_absent(model::ScanPart::Kind::devices, model::reason::kDeviceVanished);
  }
  [[nodiscard]] std::string reason_of(const CoreName& core) const {
    if (node_.device(core.device) == nullptr) return reason_of(core.device);
    const std::vector<int> ids = node_.cores_of(Resource::neuron, core.device);
    const auto at = static_cast<std::size_t>(core.core);
    return at < ids.size() ? reason_in(node_.health_of(Resource::neuroncore, ids[at]))
                           : std::string(model::reason::kCoreMissing);
  }
  [[nodiscard]] std::string first_reason(const std::vector<int>& devices) const {
    for (const int index : devices) {
      if (std::string reason = reason_of(index); !reason.empty()) return reason;
    }
    return "";
  }

  PoolDevice& append(const PoolName& name, DeviceKind kind, Attributes attributes, const std::string& reason) {
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
  static void set_parts(PoolDevice& device, const std::vector<int>& devices, std::int64_t cores, std::int64_t memory) {
    device.devices = devices;
    device.capacity = {{"cores", cores}, {"memory", memory}};
  }
  [[nodiscard]] std::int64_t memory_of(const std::vector<int>& devices) const {  // bytes
    std::int64_t memory = 0;
    for (const int index : devices) {
      const model::NeuronDevice* known = node_.device(index);
      if (known != nullptr) memory += static_cast<std::int64_t>(known->memory_bytes.value_or(0));
    }
    return memory;
  }
  [[nodiscard]] std::int64_t cores_of(const std::vector<int>& devices) const {
    std::int64_t cores = 0;
    for (const int index : devices) cores += core_count(index);
    return cores;
  }

  void add(const DeviceName& name) {
    const std::vector<int> devices{name.device};
    PoolDevice& device =
        append(name, DeviceKind::device, device_attributes(node_, name.device), reason_of(name.device));
    set_parts(device, devices, cores_of(devices), memory_of(devices));
    const bool is_shared = options_.shares != Shares::off && options_.partitions == Partitions::none;
    if (!is_shared || is_split(name.device) || core_count(name.device) < 1) return;
    int healthy = 0;
    for (int core = 0; core < core_count(name.device); ++core) {
      healthy += reason_of(CoreName{name.device, core}).empty() ? 1 : 0;
    }
    device.shareable_cores = healthy > 0 ? healthy : core_count(name.device);  // without any it is tainted as a whole
  }
  void add(const ShareName& name) {
    if (!has(DeviceName{name.device})) add(DeviceName{name.device});
  }
  void add(const CoreName& name) {
    const std::vector<int> devices{name.device};
    set_parts(append(name, DeviceKind::core, core_attributes(node_, name.device, name.core), reason_of(name)), devices,
              1, memory_of(devices) / std::max(core_count(name.device), 1));
  }
  void add(const GroupName& name) {
    const std::vector<int> devices = members_of(name, core::ring_size(node_.snapshot().host));
    if (devices.empty()) return;
    set_parts(append(name, DeviceKind::group, group_attributes(node_, devices), first_reason(devices)), devices,
              cores_of(devices), memory_of(devices));
  }
  void add(const NodeName& name) {
    const std::vector<int>& devices = node_.units(Resource::neuron);
    set_parts(append(name, DeviceKind::node, node_attributes(node_, devices), first_reason(devices)), devices,
              cores_of(devices), memory_of(devices));
  }
  void add(const EfaName& name) {  // that the node does not have
    append(name, DeviceKind::efa, efa_attributes(node_, -1),
           reason_of_absent(model::ScanPart::Kind::pci, model::reason::kEfaVanished));
  }

  [[nodiscard]] bool overlaps() const {
    return std::ranges::any_of(pool_.devices, [&](const PoolDevice& device) {
      const bool is_part = device.kind == DeviceKind::core && !is_split(device.devices.front());
      return is_part || device.kind == DeviceKind::group || (device.kind == DeviceKind::node && holds_devices_);
    });
  }
  // A counter counts all logical cores of a device, at least one, and cores that a claim holds although the device has
  // fewer now.
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
  const std::set<std::string> held_;
  std::vector<PoolName> held_names_;
  bool holds_node_ = false;
  bool holds_devices_ = false;
  std::set<std::string> names_;  // in the pool
  Pool pool_;
};

using Links = std::map<int, std::vector<int>>;  // device index -> its neighbours

// Where the neighbours are unknown, as on inf1.24xlarge, consecutive devices count as linked.
bool linked(const Links& links, int a, int b) {
  const auto from = links.find(a);
  if (from == links.end() || !links.contains(b)) return false;
  const std::vector<int>& neighbours = from->second;
  return neighbours.empty() || std::ranges::find(neighbours, b) != neighbours.end();
}

std::vector<Group> aligned_groups(const Links& links, int indices) {
  std::vector<Group> groups;
  for (const int size : {4, 8, 16}) {
    for (int first = (indices - 1) / size * size; first >= 0; first -= size) {
      Group group{{first, first + size - 1}, {}};
      for (int member = first; member < first + size && links.contains(member); ++member) {
        group.members.push_back(member);
      }
      if (static_cast<int>(group.members.size()) == size) groups.push_back(std::move(group));
    }
  }
  return groups;
}

// The run of `size` devices that begins at `first`; without members when one of its links is missing.
Group run_of(const Links& links, int first, int size, int ring) {
  Group group{{first, (first + size - 1) % ring}, {first}};
  for (int i = 1; i < size; ++i) {
    const int next = (first + i) % ring;
    if (!linked(links, group.members.back(), next)) return {};
    group.members.push_back(next);
  }
  return group;
}

std::vector<Group> runs(const Links& links, int ring, bool wraps) {
  std::vector<Group> groups;
  const auto add = [&](int first, int size) {
    Group run = run_of(links, first, size, ring);
    if (!run.members.empty()) groups.push_back(std::move(run));
  };
  for (int size = 2; size <= ring; ++size) {
    for (int first = ring - size; first >= 0; --first) add(first, size);
    // All of a ring is one group, wherever it begins.
    for (int first = ring - 1; wraps && size < ring && first > ring - size; --first) add(first, size);
  }
  return groups;
}

}  // namespace

Pool make_pool(const grant::NodeUnits& node, const PoolOptions& options, const std::vector<std::string>& held) {
  return PoolMaker(node, options, held).make();
}

std::vector<Group> groups_of(const grant::NodeUnits& node) {
  const allocator::NodeTopology& topology = node.topology();
  const int indices = core::ring_size(node.snapshot().host);
  if (indices < 2 || node.units(Resource::neuron).empty()) return {};  // none while LNC is unread
  Links links;
  for (const auto& device : topology.devices) links[device.index] = device.neighbours;
  if (topology.groups_of_torus) return aligned_groups(links, indices);
  if (topology.ring || topology.line) return runs(links, indices, topology.ring);
  return {};
}

}  // namespace neuron::plugin::dra
