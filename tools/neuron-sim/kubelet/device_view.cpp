// DeviceManager's views: what node status, PodResources and people are shown.
#include <algorithm>
#include <tuple>

#include "tools/neuron-sim/kubelet/device_manager.h"

namespace neuron::sim {
namespace {

void add_device(std::vector<HeldDevice>& list, const std::string& resource, const std::string& id,
                const std::vector<int>& numa_nodes) {
  if (numa_nodes.empty()) list.push_back({resource, id, std::nullopt});
  for (const int node : numa_nodes) list.push_back({resource, id, node});
}

}  // namespace

std::map<std::string, ResourceView> DeviceManager::resources() {
  bool expired = false;
  std::map<std::string, ResourceView> views;
  {
    MutexLock lock(mutex_);
    expired = drop_expired();
    for (const std::string& resource : gone_) views[resource] = {};
    for (const auto& [resource, ids] : healthy_) views[resource].healthy = ids;
    for (const auto& [resource, ids] : unhealthy_) views[resource].unhealthy = ids;
    for (auto& [resource, view] : views) {
      view.allocatable = static_cast<int>(view.healthy.size());
      view.capacity = view.allocatable + static_cast<int>(view.unhealthy.size());
      const auto used = allocated_.find(resource);
      view.in_use = used == allocated_.end() ? 0 : static_cast<int>(used->second.size());
      const auto endpoint = endpoints_.find(resource);
      view.connected = endpoint != endpoints_.end() && !endpoint->second.stopped;
    }
  }
  if (expired) save_checkpoint();
  return views;
}

std::vector<PodView> DeviceManager::pods() {
  MutexLock lock(mutex_);
  std::vector<PodView> list;
  for (const auto& [uid, spec] : active_) {
    PodView pod{spec.name, spec.ns, uid, {}};
    for (const ContainerSpec& container : spec.containers) {
      ContainerView view{container.name, container.kind, {}, container.claims};
      if (const ContainerDevices* held = container_devices(uid, container.name)) {
        for (const auto& [resource, grant] : *held) {
          for (const auto& [node, ids] : grant.ids_by_numa) {
            for (const std::string& id : ids) {
              view.devices.push_back({resource, id, node < 0 ? std::nullopt : std::optional<std::int64_t>(node)});
            }
          }
        }
      }
      pod.containers.push_back(std::move(view));
    }
    list.push_back(std::move(pod));
  }
  std::sort(list.begin(), list.end(),
            [](const PodView& a, const PodView& b) { return std::tie(a.ns, a.name) < std::tie(b.ns, b.name); });
  return list;
}

std::vector<HeldDevice> DeviceManager::allocatable_devices() {
  MutexLock lock(mutex_);
  std::vector<HeldDevice> list;
  for (const auto& [resource, ids] : healthy_) {
    for (const std::string& id : ids) add_device(list, resource, id, devices_[resource][id].numa_nodes);
  }
  return list;
}

}  // namespace neuron::sim
