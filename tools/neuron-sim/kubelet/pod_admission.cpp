// DeviceManager's way from a pod to its started containers: manager.go Allocate, GetDeviceRunContainerOptions.
#include <fmt/format.h>

#include <utility>

#include "tools/neuron-sim/kubelet/container_grant.h"
#include "tools/neuron-sim/kubelet/device_manager.h"
#include "tools/neuron-sim/kubelet/id_set.h"

namespace neuron::sim {
namespace {

Result<void> check_spec(const PodSpec& spec) {
  if (spec.name.empty() || spec.containers.empty()) {
    return fail(ErrorCode::invalid_argument, "a pod needs a name and a container");
  }
  IdSet names;
  for (const ContainerSpec& container : spec.containers) {
    if (!names.insert(container.name).second) {
      return fail(ErrorCode::invalid_argument, fmt::format("container {} appears twice", container.name));
    }
  }
  return {};
}

Error refused(const Error& reason) {
  return {reason.code, "Pod was rejected: " + reason.message, reason.os_errno};
}

}  // namespace

Result<PodResult> DeviceManager::admit(const PodSpec& spec) {
  TRY(check_spec(spec));
  MutexLock one_at_a_time(admission_mutex_);
  std::string uid;
  std::uint64_t life = 0;
  {
    MutexLock lock(mutex_);
    for (const auto& [other, pod] : active_) {
      if (pod.name == spec.name && pod.ns == spec.ns) {
        return fail(ErrorCode::invalid_argument, fmt::format("pod {} exists", spec.name));
      }
    }
    uid = fmt::format("00000000-0000-4000-8000-{:012x}", next_uid_++);
    active_[uid] = spec;
    life = life_;
  }
  if (const auto allocated = allocate_pod(uid, spec, life); !allocated) {
    MutexLock lock(mutex_);
    active_.erase(uid);  // phase Failed, for good; what it holds is freed by the next update_allocated()
    ++generation_;
    changed_.notify_all();
    return fail(refused(allocated.error()));
  }
  PodResult result{uid, {}};
  for (const ContainerSpec& container : spec.containers) result.containers.push_back(run_options(uid, container));
  notify();
  return result;
}

Result<void> DeviceManager::allocate_pod(const std::string& uid, const PodSpec& spec, std::uint64_t life) {
  IdsByResource reusable;
  const auto turn = [&](const ContainerSpec& container) -> Result<void> {
    TRY(allocate_container(Admission{uid, container, std::nullopt, life}, reusable));
    MutexLock lock(mutex_);
    const ContainerDevices* held = container_devices(uid, container.name);
    if (held == nullptr) return {};
    for (const auto& [resource, grant] : *held) {
      IdSet& left = reusable[resource];
      left = container.kind == ContainerKind::init ? either(left, grant.ids()) : minus(left, grant.ids());
    }
    return {};
  };
  for (const ContainerSpec& container : spec.containers) {
    if (container.kind != ContainerKind::app) TRY(turn(container));
  }
  for (const ContainerSpec& container : spec.containers) {
    if (container.kind == ContainerKind::app) TRY(turn(container));
  }
  return {};
}

Result<void> DeviceManager::allocate_container(Admission admission, IdsByResource& reusable) {
  bool any = false;
  {
    MutexLock lock(mutex_);
    TRY_ASSIGN(admission.affinity, affinity_of(admission.container, reusable));
    bool updated = false;
    for (const std::string& resource : resource_order(admission.container)) {
      if (!is_plugin_resource(resource)) continue;
      if (!std::exchange(updated, true)) update_allocated_locked();
      Result<bool> allocated =
          allocate_resource(admission, resource, admission.container.requests.at(resource), reusable[resource]);
      if (!allocated) {
        Error error = std::move(allocated).error();
        error.message = fmt::format("Allocate failed due to {}, which is unexpected", error.message);
        return fail(std::move(error));
      }
      any = any || *allocated;
    }
  }
  if (any) save_checkpoint();  // once per container, after all its resources
  return {};
}

Result<std::optional<std::set<int>>> DeviceManager::affinity_of(const ContainerSpec& container,
                                                                const IdsByResource& reusable) {
  if (container.numa_affinity || options_.numa_policy == NumaPolicy::none) return container.numa_affinity;
  update_allocated_locked();
  std::vector<NumaDemand> demands;
  for (const auto& [resource, needed] : container.requests) {
    if (needed == 0 || !is_plugin_resource(resource)) continue;
    IdSet usable = minus(healthy_[resource], allocated_[resource]);
    if (const auto left = reusable.find(resource); left != reusable.end()) usable = either(usable, left->second);
    demands.push_back({needed, devices_[resource], std::move(usable)});
  }
  std::optional<std::set<int>> nodes = smallest_numa_set(demands);
  if (nodes && nodes->size() > 1 && options_.numa_policy == NumaPolicy::single_numa_node) {
    return fail(ErrorCode::failed_precondition, "Resources cannot be allocated with Topology locality");
  }
  return nodes;
}

Result<ContainerGrant> DeviceManager::start_container(const std::string& ns, const std::string& pod,
                                                      const std::string& container) {
  std::string uid;
  std::optional<ContainerSpec> spec;
  {
    MutexLock lock(mutex_);
    for (const auto& [id, candidate] : active_) {
      if (candidate.name != pod || candidate.ns != ns) continue;
      uid = id;
      for (const ContainerSpec& entry : candidate.containers) {
        if (entry.name == container) spec = entry;
      }
    }
  }
  if (!spec) return fail(ErrorCode::not_found, fmt::format("no container {} in pod {}/{}", container, ns, pod));
  ContainerGrant grant = run_options(uid, *spec);
  if (!grant.start_error.empty()) return fail(ErrorCode::failed_precondition, grant.start_error);
  return grant;
}

ContainerGrant DeviceManager::run_options(const std::string& uid, const ContainerSpec& container) {
  ContainerGrant grant;
  grant.name = container.name;
  grant.claims = container.claims;
  for (const auto& [resource, needed] : container.requests) {
    if (needed == 0 || !grant.start_error.empty()) continue;
    if (const auto ready = pre_start(uid, container, resource); !ready) grant.start_error = ready.error().message;
  }
  MutexLock lock(mutex_);
  const ContainerDevices* held = container_devices(uid, container.name);
  for (const std::string& resource : resource_order(container)) {
    if (held != nullptr && held->contains(resource)) {
      grant.ids[resource] = in_reading_order(held->at(resource).ids());
      merge_response(grant, resource, held->at(resource).response);
    } else if (container.requests.at(resource) > 0) {
      grant.unserved.push_back(resource);
    }
  }
  return grant;
}

Result<void> DeviceManager::pre_start(const std::string& uid, const ContainerSpec& container,
                                      const std::string& resource) {
  std::shared_ptr<PluginClient> client;
  std::vector<std::string> ids;
  {
    MutexLock lock(mutex_);
    const ContainerDevices* held = container_devices(uid, container.name);
    const auto endpoint = endpoints_.find(resource);
    if (held == nullptr || !held->contains(resource)) return {};
    if (endpoint == endpoints_.end()) {
      return fail(ErrorCode::unavailable, "endpoint not found in cache for a registered resource: " + resource);
    }
    if (!endpoint->second.options.pre_start_required) return {};
    client = endpoint->second.client;
    ids = shuffled(held->at(resource).ids());
  }
  return client->pre_start(ids);
}

}  // namespace neuron::sim
