#include "plugin/dra/serve/health_list.h"

#include <algorithm>
#include <optional>

#include "agent/base/parse.h"
#include "plugin/dra/slices/pool.h"

namespace neuron::plugin::dra {
namespace {

using model::Health;
using model::Resource;

// The health of what a name of the pool means; nullptr: the snapshot has nothing of it.
class HealthOf {
 public:
  HealthOf(const grant::NodeUnits& node, const PoolDevice& device) : node_(node), device_(device) {}

  const Health* operator()(const DeviceName& name) const { return of_device(name.device); }
  const Health* operator()(const CoreName& name) const {
    if (node_.device(name.device) == nullptr) return nullptr;
    const std::vector<int> cores = node_.cores_of(Resource::neuron, name.device);
    const auto at = static_cast<std::size_t>(name.core);
    return at < cores.size() ? &node_.health_of(Resource::neuroncore, cores[at]) : of_device(name.device);
  }
  const Health* operator()(const EfaName& name) const {
    const std::vector<int>& units = node_.units(Resource::efa);
    const auto found = std::find_if(units.begin(), units.end(),
                                    [&](int unit) { return efa_label(node_.efa(unit).name) == name.label; });
    return found == units.end() ? nullptr : &node_.health_of(Resource::efa, *found);
  }
  const Health* operator()(const GroupName& name) const {
    std::vector<int> members;
    constexpr std::string_view kCounter = "device-";
    for (const auto& [counter, cores] : device_.consumes) {
      const auto index =
          parse_int(std::string_view(counter).substr(std::min(counter.size(), kCounter.size())), 0, 9999);
      if (index) members.push_back(*index);
    }
    return worst_of(members.empty() ? members_of(name, name.last + 1) : members);
  }
  const Health* operator()(const NodeName& /*name*/) const { return worst_of(node_.units(Resource::neuron)); }

 private:
  [[nodiscard]] const Health* of_device(int index) const {
    return node_.device(index) == nullptr ? nullptr : &node_.health_of(Resource::neuron, index);
  }
  [[nodiscard]] const Health* worst_of(const std::vector<int>& devices) const {
    const Health* worst = nullptr;
    for (const int index : devices) {
      const Health* one = of_device(index);
      if (one == nullptr) return nullptr;
      if (worst == nullptr || badness(one->state) > badness(worst->state)) worst = one;
    }
    return worst;
  }

  const grant::NodeUnits& node_;
  const PoolDevice& device_;
};

DeviceHealth::State state_of(const Health& health) {
  switch (health.state) {
    case model::HealthState::unhealthy:
      return DeviceHealth::State::unhealthy;
    case model::HealthState::unknown:
      return DeviceHealth::State::unknown;
    case model::HealthState::healthy:
    case model::HealthState::degraded:
      break;
  }
  return DeviceHealth::State::healthy;
}

std::string message_of(const Health& health) {
  std::string text = health.sentence;
  if (!health.action.empty()) text += (text.empty() ? "" : "; ") + health.action;
  return printable(text, kMostMessage - std::string_view("...").size());
}

DeviceHealth health_of_absent(const PoolDevice& device, const model::HostScan& host) {
  using Kind = model::ScanPart::Kind;
  if (is_unread_list(host, device.kind == DeviceKind::efa ? Kind::pci : Kind::devices)) {
    return {device.name, DeviceHealth::State::unknown,
            "the list it would be on cannot be read and was not read since the driver started"};
  }
  return {device.name, DeviceHealth::State::unhealthy, "it is no longer on this node; delete the pod that holds it"};
}

}  // namespace

HealthList make_health_list(const Pool& pool, const grant::NodeUnits& node, std::string pool_name) {
  HealthList list{std::move(pool_name), {}};
  list.devices.reserve(pool.devices.size());
  for (const PoolDevice& device : pool.devices) {
    const auto name = parse_pool_name(device.name);
    const Health* health = name ? std::visit(HealthOf(node, device), *name) : nullptr;
    list.devices.push_back(health != nullptr ? DeviceHealth{device.name, state_of(*health), message_of(*health)}
                                             : health_of_absent(device, node.snapshot().host));
  }
  return list;
}

}  // namespace neuron::plugin::dra
