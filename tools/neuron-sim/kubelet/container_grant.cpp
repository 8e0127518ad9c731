#include "tools/neuron-sim/kubelet/container_grant.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "agent/base/parse.h"

namespace neuron::sim {
namespace {

// Orders the entries of a protobuf map, whose own order is none.
using Texts = std::map<std::string, std::string>;

void merge_env(ContainerGrant& grant, const Texts& from, const std::string& resource) {
  for (const auto& [key, value] : from) {
    const auto [held, is_new] = grant.env.emplace(key, value);
    if (is_new || held->second == value) continue;
    grant.conflicts.push_back(
        fmt::format("env {}: \"{}\" stays, {} wanted \"{}\"", key, held->second, resource, value));
  }
}

void merge_device(ContainerGrant& grant, const std::string& resource, const DeviceNode& node) {
  const auto held = std::find_if(grant.devices.begin(), grant.devices.end(),
                                 [&](const DeviceNode& d) { return d.container_path == node.container_path; });
  if (held == grant.devices.end()) {
    grant.devices.push_back(node);
  } else if (!(*held == node)) {
    grant.conflicts.push_back(fmt::format("device {}: host path {} ({}) stays, {} wanted {} ({})", node.container_path,
                                          held->host_path, held->permissions, resource, node.host_path,
                                          node.permissions));
  }
}

}  // namespace

void merge_response(ContainerGrant& grant, const std::string& resource,
                    const v1beta1::ContainerAllocateResponse& response) {
  merge_env(grant, Texts(response.envs().begin(), response.envs().end()), resource);
  for (const auto& device : response.devices()) {
    merge_device(grant, resource, {device.container_path(), device.host_path(), device.permissions()});
  }
  for (const auto& cdi : response.cdi_devices()) {
    if (std::find(grant.cdi_names.begin(), grant.cdi_names.end(), cdi.name()) == grant.cdi_names.end()) {
      grant.cdi_names.push_back(cdi.name());
    }
  }
}

std::vector<std::string> in_reading_order(const IdSet& ids) {
  const auto key = [](const std::string& id) {
    const auto number = parse_u64(id);
    return std::tuple(!number.has_value(), number.value_or(0), id);
  };
  std::vector<std::string> list(ids.begin(), ids.end());
  std::sort(list.begin(), list.end(), [&](const std::string& a, const std::string& b) { return key(a) < key(b); });
  return list;
}

}  // namespace neuron::sim
