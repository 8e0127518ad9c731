#include "tools/neuron-sim/kubelet/device_manager.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace neuron::sim {
namespace {

constexpr std::chrono::minutes kStopGrace{5};  // endpointStopGracePeriod

PluginDevice convert(const v1beta1::Device& device) {
  PluginDevice out;
  out.healthy = device.health() == "Healthy";
  for (const auto& node : device.topology().nodes()) out.numa_nodes.push_back(static_cast<int>(node.id()));
  return out;
}

}  // namespace

DeviceManager::DeviceManager(KubeletOptions options, std::string checkpoint_path)
    : options_(std::move(options)), checkpoint_path_(std::move(checkpoint_path)), random_(options_.seed) {}

IdSet DeviceManager::Grant::ids() const {
  IdSet all;
  for (const auto& [node, list] : ids_by_numa) all.insert(list.begin(), list.end());
  return all;
}

void DeviceManager::plugin_connected(const std::string& resource, std::shared_ptr<PluginClient> client,
                                     PluginOptions options) {
  event(fmt::format("registered {} from {}", resource, client->socket_path()));
  MutexLock lock(mutex_);
  endpoints_[resource] = Endpoint{std::move(client), options, std::nullopt};
  note_change();
}

void DeviceManager::plugin_updated(const std::string& resource, const v1beta1::ListAndWatchResponse& message) {
  PluginDevices devices;
  for (const auto& device : message.devices()) devices[device.id()] = convert(device);
  {
    MutexLock lock(mutex_);
    healthy_[resource].clear();
    unhealthy_[resource].clear();
    for (const auto& [id, device] : devices) (device.healthy ? healthy_ : unhealthy_)[resource].insert(id);
    devices_[resource] = std::move(devices);
    gone_.erase(resource);
  }
  save_checkpoint();
  notify();
}

void DeviceManager::plugin_disconnected(const std::string& resource) {
  event(fmt::format("lost {}: its devices are unhealthy until it registers again", resource));
  MutexLock lock(mutex_);
  const auto endpoint = endpoints_.find(resource);
  if (endpoint == endpoints_.end()) return;
  unhealthy_[resource].merge(IdSet(healthy_[resource]));
  healthy_[resource].clear();
  endpoint->second.stopped = now();
  note_change();
}

Result<void> DeviceManager::remove(const std::string& ns, const std::string& pod) {
  MutexLock lock(mutex_);
  const auto erased =
      std::erase_if(active_, [&](const auto& entry) { return entry.second.name == pod && entry.second.ns == ns; });
  if (erased == 0) return fail(ErrorCode::not_found, fmt::format("no pod {} in namespace {}", pod, ns));
  note_change();
  return {};
}

void DeviceManager::update_allocated() {
  MutexLock lock(mutex_);
  update_allocated_locked();
}

void DeviceManager::update_allocated_locked() {
  const auto ended = std::erase_if(
      pod_devices_, [this](const auto& entry) REQUIRES(mutex_) { return !active_.contains(entry.first); });
  if (ended == 0) return;
  allocated_ = ids_of_pods();
  note_change();
}

DeviceManager::IdsByResource DeviceManager::ids_of_pods() const {
  IdsByResource all;
  for (const auto& [uid, containers] : pod_devices_) {
    for (const auto& [container, devices] : containers) {
      for (const auto& [resource, grant] : devices) all[resource].merge(grant.ids());
    }
  }
  return all;
}

bool DeviceManager::is_plugin_resource(const std::string& resource) const {
  return healthy_.contains(resource) || allocated_.contains(resource);
}

const DeviceManager::ContainerDevices* DeviceManager::container_devices(const std::string& uid,
                                                                        const std::string& container) const {
  const auto pod = pod_devices_.find(uid);
  if (pod == pod_devices_.end()) return nullptr;
  const auto devices = pod->second.find(container);
  return devices == pod->second.end() ? nullptr : &devices->second;
}

Checkpoint DeviceManager::checkpoint() const {
  Checkpoint out;
  for (const auto& [uid, containers] : pod_devices_) {
    for (const auto& [container, devices] : containers) {
      for (const auto& [resource, grant] : devices) {
        out.entries.push_back({uid, container, resource, grant.ids_by_numa, grant.response.SerializeAsString()});
      }
    }
  }
  for (const auto& [resource, ids] : healthy_) out.registered[resource] = {ids.begin(), ids.end()};
  return out;
}

void DeviceManager::save_checkpoint() {
  MutexLock one_writer(checkpoint_mutex_);
  Checkpoint data;
  {
    MutexLock lock(mutex_);
    data = checkpoint();
  }
  if (const auto written = write_checkpoint(checkpoint_path_, data); !written) event(written.error().message);
}

void DeviceManager::forget() {
  MutexLock lock(mutex_);
  ++life_;
  pod_devices_.clear();
  allocated_.clear();
  healthy_.clear();
  unhealthy_.clear();
  devices_.clear();
  endpoints_.clear();
  note_change();
}

void DeviceManager::restore() {
  const Result<Checkpoint> saved = read_checkpoint(checkpoint_path_);
  if (!saved) {
    if (saved.error().code != ErrorCode::not_found) event("checkpoint lost: " + saved.error().message);
    return;
  }
  MutexLock lock(mutex_);
  for (const CheckpointEntry& entry : saved->entries) {
    Grant& grant = pod_devices_[entry.pod_uid][entry.container][entry.resource];
    grant.ids_by_numa = entry.ids_by_numa;
    if (!grant.response.ParseFromString(entry.response)) grant.response.Clear();
  }
  allocated_ = ids_of_pods();
  for (const auto& [resource, ids] : saved->registered) {
    healthy_[resource].clear();
    unhealthy_[resource].clear();
    endpoints_[resource] = Endpoint{nullptr, {}, now()};
  }
  note_change();
}

void DeviceManager::advance(std::chrono::milliseconds step) {
  MutexLock lock(mutex_);
  advanced_ += step;
  note_change();
}

SteadyTime DeviceManager::now() const {
  return clock_.now() + advanced_;
}

bool DeviceManager::drop_expired() {
  IdSet expired;
  for (const auto& [resource, endpoint] : endpoints_) {
    if (endpoint.stopped && now() - *endpoint.stopped >= kStopGrace) expired.insert(resource);
  }
  for (const std::string& resource : expired) {
    endpoints_.erase(resource);
    healthy_.erase(resource);
    unhealthy_.erase(resource);
    gone_.insert(resource);
  }
  return !expired.empty();
}

bool DeviceManager::wait_for(const std::function<bool()>& predicate, std::chrono::milliseconds timeout) {
  const SteadyTime deadline = clock_.now() + timeout;
  for (;;) {
    std::uint64_t seen = 0;
    {
      MutexLock lock(mutex_);
      seen = generation_;
    }
    if (predicate()) return true;
    MutexLock lock(mutex_);
    while (generation_ == seen) {
      if (changed_.wait_until(mutex_, deadline) == std::cv_status::timeout && generation_ == seen) return false;
    }
  }
}

void DeviceManager::notify() {
  MutexLock lock(mutex_);
  note_change();
}

void DeviceManager::note_change() {
  ++generation_;
  changed_.notify_all();
}

void DeviceManager::event(const std::string& line) const {
  if (options_.on_event) options_.on_event(line);
}

std::vector<std::string> DeviceManager::shuffled(const IdSet& ids) {
  std::vector<std::string> list(ids.begin(), ids.end());
  std::shuffle(list.begin(), list.end(), random_);
  return list;
}

std::vector<std::string> DeviceManager::resource_order(const ContainerSpec& container) {
  IdSet rest;
  for (const auto& [resource, count] : container.requests) rest.insert(resource);
  std::vector<std::string> order;
  for (const std::string& resource : container.order) {
    if (rest.erase(resource) > 0) order.push_back(resource);
  }
  const std::vector<std::string> random = shuffled(rest);
  order.insert(order.end(), random.begin(), random.end());
  return order;
}

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
  std::ranges::sort(list, {}, [](const PodView& pod) { return std::tie(pod.ns, pod.name); });
  return list;
}

std::vector<DeviceId> DeviceManager::allocatable_devices() {
  MutexLock lock(mutex_);
  std::vector<DeviceId> list;
  for (const auto& [resource, ids] : healthy_) {
    for (const std::string& id : ids) {
      const std::vector<int>& nodes = devices_[resource][id].numa_nodes;
      if (nodes.empty()) list.push_back({resource, id, std::nullopt});
      for (const int node : nodes) list.push_back({resource, id, node});
    }
  }
  return list;
}

}  // namespace neuron::sim
