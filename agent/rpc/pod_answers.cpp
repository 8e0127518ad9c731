#include "agent/rpc/pod_answers.h"

#include "agent/base/parse.h"

namespace neuron::rpc {
namespace {

std::string name_of(const std::string& foreign) {
  return printable(foreign, kMaxNameBytes);
}

}  // namespace

std::vector<model::Allocation> devices_in(const v1::ListPodResourcesResponse& response) {
  std::vector<model::Allocation> all;
  for (const auto& pod : response.pod_resources()) {
    const std::size_t before = all.size();
    for (const auto& container : pod.containers()) {
      std::map<std::string, std::set<std::string>> by_resource;  // the kubelet repeats a device per NUMA node
      for (const auto& devices : container.devices()) {
        auto& ids = by_resource[name_of(devices.resource_name())];
        for (const auto& id : devices.device_ids()) ids.insert(name_of(id));
      }
      for (const auto& [resource, ids] : by_resource) {
        all.push_back({name_of(pod.namespace_()), name_of(pod.name()), name_of(container.name()), resource,
                       std::vector<std::string>(ids.begin(), ids.end())});
      }
    }
    if (all.size() == before) all.push_back({name_of(pod.namespace_()), name_of(pod.name()), "", "", {}});
  }
  return all;
}

Allocatable allocatable_in(const v1::AllocatableResourcesResponse& response) {
  Allocatable all;
  for (const auto& devices : response.devices()) {
    auto& ids = all[name_of(devices.resource_name())];
    for (const auto& id : devices.device_ids()) ids.insert(name_of(id));
  }
  return all;
}

}  // namespace neuron::rpc
