#include "agent/rpc/pod_answers.h"

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "agent/base/parse.h"

namespace neuron::rpc {
namespace {

std::string name_of(const std::string& foreign) {
  return printable(foreign, kMaxNameBytes);
}

using Ids = std::set<std::string>;

// A container as far as it has a name; the rest is added for each thing that it holds.
model::Allocation holding_of(const v1::PodResources& pod, const v1::ContainerResources& container) {
  return {name_of(pod.namespace_()), name_of(pod.name()), name_of(container.name()), "", {}};
}

void add_resources(const v1::PodResources& pod, const v1::ContainerResources& container,
                   std::vector<model::Allocation>& all) {
  std::map<std::string, Ids> by_resource;  // the kubelet repeats a device per NUMA node
  for (const auto& devices : container.devices()) {
    Ids& ids = by_resource[name_of(devices.resource_name())];
    for (const auto& id : devices.device_ids()) ids.insert(name_of(id));
  }
  for (const auto& [resource, ids] : by_resource) {
    model::Allocation one = holding_of(pod, container);
    one.resource_name = resource;
    one.ids.assign(ids.begin(), ids.end());
    all.push_back(std::move(one));
  }
}

// What a container has of one claim and driver.
struct ClaimPart {
  Ids devices;
  std::string cdi_id;  // the first
};

// By names of devices: the list of CDI ids grows from one entry to the next (docs/reference/kubelet.md#podresources),
// and would give each device those of all before it.
void add_claims(const v1::PodResources& pod, const v1::ContainerResources& container,
                std::vector<model::Allocation>& all) {
  std::map<std::pair<std::string, std::string>, ClaimPart> by_claim;  // claim, driver
  for (const auto& claim : container.dynamic_resources()) {
    const std::string name = claim.claim_name().empty() ? "(no name)" : name_of(claim.claim_name());
    for (const auto& device : claim.claim_resources()) {
      ClaimPart& part = by_claim[{name, name_of(device.driver_name())}];
      part.devices.insert(name_of(device.device_name()));
      if (part.cdi_id.empty() && !device.cdi_devices().empty()) part.cdi_id = name_of(device.cdi_devices(0).name());
    }
  }
  for (auto& [key, part] : by_claim) {
    model::Allocation one = holding_of(pod, container);
    std::tie(one.claim, one.resource_name) = key;
    one.ids.assign(part.devices.begin(), part.devices.end());
    one.cdi_id = std::move(part.cdi_id);
    all.push_back(std::move(one));
  }
}

}  // namespace

std::vector<model::Allocation> devices_in(const v1::ListPodResourcesResponse& response) {
  std::vector<model::Allocation> all;
  for (const auto& pod : response.pod_resources()) {
    const std::size_t before = all.size();
    for (const auto& container : pod.containers()) {
      add_resources(pod, container, all);
      add_claims(pod, container, all);
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
