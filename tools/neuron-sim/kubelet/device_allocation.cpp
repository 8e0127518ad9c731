// How DeviceManager picks and asks for the devices of one resource: manager.go allocateContainerResources (the loop's
// body) and devicesToAllocate.
#include <fmt/format.h>

#include <utility>

#include "tools/neuron-sim/kubelet/device_manager.h"
#include "tools/neuron-sim/kubelet/id_set.h"

namespace neuron::sim {
// What devices_to_allocate() has taken so far. Taking marks devices as allocated at once, before the answer of
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
  step(AdmissionStep::before_allocate, resource);
  const auto response = client->allocate(unsorted);
  step(AdmissionStep::after_allocate, resource);
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
  ++generation_;
  changed_.notify_all();
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
  // What is taken before a failing GetPreferredAllocation stays counted as allocated: kubernetes/kubernetes#130145.
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
  step(AdmissionStep::before_preferred, resource);
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
