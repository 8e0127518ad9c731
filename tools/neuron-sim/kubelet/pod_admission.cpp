#include <fmt/format.h>

#include <utility>

#include "tools/neuron-sim/kubelet/device_manager.h"

// DeviceManager from a pod to its started containers: manager.go Allocate, allocateContainerResources,
// devicesToAllocate and GetDeviceRunContainerOptions.
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
      const bool same = pod.name == spec.name && pod.ns == spec.ns;
      if (same) return fail(ErrorCode::invalid_argument, fmt::format("pod {} exists", spec.name));
    }
    uid = fmt::format("00000000-0000-4000-8000-{:012x}", next_uid_++);
    active_[uid] = spec;
    life = life_;
  }
  if (const auto allocated = allocate_pod(uid, spec, life); !allocated) {
    MutexLock lock(mutex_);
    active_.erase(uid);  // phase Failed; its devices are freed by the next update_allocated()
    note_change();
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

// The devices taken by devices_to_allocate() so far. They count as allocated at once, before the answer of
// GetPreferredAllocation is known: an error then leaks them.
struct DeviceManager::Taking {
  DeviceManager& manager;
  const std::string& resource;
  int needed;
  IdSet taken;

  // Takes from `ids`, in random order, until nothing more is needed; true when that is reached.
  [[nodiscard]] bool take(const IdSet& ids) NEURON_ANNOTATE(no_thread_safety_analysis) {
    for (const std::string& id : manager.shuffled(minus(ids, taken))) {
      if (needed == 0) break;
      manager.allocated_[resource].insert(id);
      taken.insert(id);
      --needed;
    }
    return needed == 0;
  }
};

Result<bool> DeviceManager::allocate_resource(const Admission& admission, const std::string& resource, int needed,
                                              const IdSet& reusable) {
  TRY_ASSIGN(const IdSet ids, devices_to_allocate(admission, resource, needed, reusable));
  if (ids.empty()) return false;
  const auto endpoint = endpoints_.find(resource);
  if (endpoint == endpoints_.end() || endpoint->second.stopped) {
    const bool known = endpoint != endpoints_.end();
    allocated_ = ids_of_pods();
    return fail(ErrorCode::unavailable, known ? fmt::format("endpoint {} has been stopped", resource)
                                              : fmt::format("unknown Device Plugin {}", resource));
  }
  const std::shared_ptr<PluginClient> client = endpoint->second.client;
  const std::vector<std::string> unsorted = shuffled(ids);
  mutex_.unlock();
  const auto response = client->allocate(unsorted);
  mutex_.lock();
  TRY(same_life(admission.life));
  if (!response) {
    allocated_ = ids_of_pods();
    return fail(response.error());
  }
  TRY(keep_answer(admission, resource, ids, *response));
  return true;
}

Result<void> DeviceManager::keep_answer(const Admission& admission, const std::string& resource, const IdSet& ids,
                                        const v1beta1::ContainerAllocateResponse& response) {
  Grant grant;
  grant.response = response;
  const PluginDevices& listed = devices_[resource];
  for (const std::string& id : ids) {
    const auto device = listed.find(id);
    if (device == listed.end()) {  // the real kubelet dereferences a nil pointer here
      return fail(ErrorCode::internal,
                  fmt::format("kubelet panic: device {} of {} left ListAndWatch during Allocate", id, resource));
    }
    if (device->second.numa_nodes.empty()) grant.ids_by_numa[-1].push_back(id);
    for (const int node : device->second.numa_nodes) grant.ids_by_numa[node].push_back(id);
  }
  pod_devices_[admission.uid][admission.container.name][resource] = std::move(grant);
  note_change();
  return {};
}

Result<IdSet> DeviceManager::devices_to_allocate(const Admission& admission, const std::string& resource, int required,
                                                 const IdSet& reusable) {
  const auto refuse = [](std::string text) { return fail(ErrorCode::failed_precondition, std::move(text)); };
  IdSet held;
  int needed = required;
  if (const ContainerDevices* devices = container_devices(admission.uid, admission.container.name);
      devices != nullptr && devices->contains(resource)) {
    held = devices->at(resource).ids();
    needed -= static_cast<int>(held.size());
    if (needed != 0) {
      return refuse(fmt::format("pod \"{}\" container \"{}\" changed request for resource \"{}\" from {} to {}",
                                admission.uid, admission.container.name, resource, held.size(), required));
    }
  }
  const auto healthy = healthy_.find(resource);
  if (healthy == healthy_.end()) return refuse(fmt::format("cannot allocate unregistered device {}", resource));
  if (healthy->second.empty()) {
    return refuse(fmt::format("no healthy devices present; cannot allocate unhealthy devices {}", resource));
  }
  if (!minus(held, healthy->second).empty()) {
    return refuse(fmt::format(
        "previously allocated devices are no longer healthy; cannot allocate unhealthy devices {}", resource));
  }
  if (needed == 0) return IdSet();
  Taking taking{*this, resource, needed, {}};
  if (taking.take(reusable)) return taking.taken;
  // Devices taken before a failing GetPreferredAllocation stay counted as allocated: kubernetes/kubernetes#130145.
  return fill(admission, taking, required);
}

Result<IdSet> DeviceManager::fill(const Admission& admission, Taking& taking, int required) {
  const std::string& resource = taking.resource;
  const IdSet available = minus(healthy_[resource], allocated_[resource]);
  if (static_cast<int>(available.size()) < taking.needed) {
    return fail(ErrorCode::failed_precondition,
                fmt::format("requested number of devices unavailable for {}. Requested: {}, Available: {}", resource,
                            taking.needed, available.size()));
  }
  const NumaSplit split = split_by_numa(available, devices_[resource], admission.affinity);
  if (taking.needed < static_cast<int>(split.aligned.size())) {
    TRY_ASSIGN(const IdSet preferred,
               ask_preferred(admission, resource, either(split.aligned, taking.taken), taking.taken, required));
    if (taking.take(both(preferred, split.aligned)) || taking.take(split.aligned)) return taking.taken;
  } else {
    if (taking.take(split.aligned)) return taking.taken;
    TRY_ASSIGN(const IdSet preferred,
               ask_preferred(admission, resource, either(available, taking.taken), taking.taken, required));
    if (taking.take(both(preferred, available)) || taking.take(split.unaligned) || taking.take(split.no_affinity)) {
      return taking.taken;
    }
  }
  return fail(ErrorCode::internal,
              fmt::format("unexpectedly allocated less resources than required. Requested: {}, Got: {}", required,
                          required - taking.needed));
}

Result<IdSet> DeviceManager::ask_preferred(const Admission& admission, const std::string& resource,
                                           const IdSet& available, const IdSet& must_include, int size) {
  const auto endpoint = endpoints_.find(resource);
  if (endpoint == endpoints_.end()) {
    return fail(ErrorCode::unavailable, "endpoint not found in cache for a registered resource: " + resource);
  }
  if (!endpoint->second.options.preferred_allocation_available) return IdSet();
  const std::shared_ptr<PluginClient> client = endpoint->second.client;
  const std::vector<std::string> offered = shuffled(available);
  const std::vector<std::string> included = shuffled(must_include);
  mutex_.unlock();
  const auto answer = client->preferred(offered, included, size);
  mutex_.lock();
  TRY(same_life(admission.life));
  if (!answer) return fail(answer.error());
  return IdSet(answer->begin(), answer->end());
}

Result<void> DeviceManager::same_life(std::uint64_t life) const {
  if (life == life_) return {};
  return fail(ErrorCode::unavailable, "the kubelet ended during the admission");
}

}  // namespace neuron::sim
