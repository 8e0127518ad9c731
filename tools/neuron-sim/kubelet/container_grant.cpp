#include "tools/neuron-sim/kubelet/container_grant.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "agent/base/parse.h"

namespace neuron::sim {
namespace {

// Orders the entries of a protobuf map, whose own order is none.
using Texts = std::map<std::string, std::string>;

void merge_texts(ContainerGrant& grant, Texts& into, const Texts& from, std::string_view kind,
                 const std::string& resource) {
  for (const auto& [key, value] : from) {
    const auto [held, is_new] = into.emplace(key, value);
    if (is_new || held->second == value) continue;
    grant.conflicts.push_back(
        fmt::format("{} {}: \"{}\" stays, {} wanted \"{}\"", kind, key, held->second, resource, value));
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

void merge_mount(ContainerGrant& grant, const std::string& resource, const MountPoint& mount) {
  const auto held = std::find_if(grant.mounts.begin(), grant.mounts.end(),
                                 [&](const MountPoint& m) { return m.container_path == mount.container_path; });
  if (held == grant.mounts.end()) {
    grant.mounts.push_back(mount);
  } else if (held->host_path != mount.host_path || held->read_only != mount.read_only) {
    grant.conflicts.push_back(fmt::format("mount {}: host path {} stays, {} wanted {}", mount.container_path,
                                          held->host_path, resource, mount.host_path));
  }
}

}  // namespace

void merge_response(ContainerGrant& grant, const std::string& resource,
                    const v1beta1::ContainerAllocateResponse& response) {
  merge_texts(grant, grant.env, Texts(response.envs().begin(), response.envs().end()), "env", resource);
  for (const auto& device : response.devices()) {
    merge_device(grant, resource, {device.container_path(), device.host_path(), device.permissions()});
  }
  for (const auto& mount : response.mounts()) {
    merge_mount(grant, resource, {mount.container_path(), mount.host_path(), mount.read_only()});
  }
  merge_texts(grant, grant.annotations, Texts(response.annotations().begin(), response.annotations().end()),
              "annotation", resource);
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
