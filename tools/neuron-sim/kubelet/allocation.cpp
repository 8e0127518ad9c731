#include "tools/neuron-sim/kubelet/allocation.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <tuple>

#include "agent/base/parse.h"

namespace neuron::sim {
namespace {

constexpr std::size_t kMaxNodes = 16;

bool has_topology(const PluginDevices& devices) {
  return std::ranges::any_of(devices, [](const auto& entry) { return !entry.second.numa_nodes.empty(); });
}

bool touches(const PluginDevice& device, const std::set<int>& nodes) {
  return std::ranges::any_of(device.numa_nodes, [&](int node) { return nodes.contains(node); });
}

bool serves(const std::set<int>& nodes, const NumaDemand& demand) {
  if (!has_topology(demand.devices)) return true;
  const auto count = std::ranges::count_if(demand.usable, [&](const std::string& id) {
    const auto device = demand.devices.find(id);
    return device != demand.devices.end() && touches(device->second, nodes);
  });
  return count >= demand.needed;
}

std::vector<int> nodes_of(const std::vector<NumaDemand>& demands) {
  std::set<int> nodes;
  for (const NumaDemand& demand : demands) {
    for (const auto& [id, device] : demand.devices) nodes.insert(device.numa_nodes.begin(), device.numa_nodes.end());
  }
  std::vector<int> list(nodes.begin(), nodes.end());
  if (list.size() > kMaxNodes) list.resize(kMaxNodes);
  return list;
}

// Orders the entries of a protobuf map, which has no order.
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
  const auto held = std::ranges::find(grant.devices, node.container_path, &DeviceNode::container_path);
  if (held == grant.devices.end()) {
    grant.devices.push_back(node);
  } else if (*held != node) {
    grant.conflicts.push_back(fmt::format("device {}: host path {} ({}) stays, {} wanted {} ({})", node.container_path,
                                          held->host_path, held->permissions, resource, node.host_path,
                                          node.permissions));
  }
}

}  // namespace

NumaSplit split_by_numa(const IdSet& available, const PluginDevices& devices,
                        const std::optional<std::set<int>>& affinity) {
  NumaSplit split;
  if (!affinity || !has_topology(devices)) {
    split.no_affinity = available;
    return split;
  }
  for (const std::string& id : available) {
    const auto device = devices.find(id);
    if (device == devices.end() || device->second.numa_nodes.empty()) {
      split.no_affinity.insert(id);
    } else {
      (touches(device->second, *affinity) ? split.aligned : split.unaligned).insert(id);
    }
  }
  return split;
}

std::optional<std::set<int>> smallest_numa_set(const std::vector<NumaDemand>& demands) {
  const std::vector<int> nodes = nodes_of(demands);
  std::optional<std::set<int>> best;
  for (unsigned mask = 1; mask < 1U << nodes.size(); ++mask) {
    if (best && static_cast<std::size_t>(std::popcount(mask)) >= best->size()) continue;
    std::set<int> chosen;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if ((mask >> i & 1U) != 0) chosen.insert(nodes[i]);
    }
    if (std::ranges::all_of(demands, [&](const NumaDemand& d) { return serves(chosen, d); })) {
      best = std::move(chosen);
    }
  }
  return best;
}

void merge_response(ContainerGrant& grant, const std::string& resource,
                    const v1beta1::ContainerAllocateResponse& response) {
  merge_env(grant, Texts(response.envs().begin(), response.envs().end()), resource);
  for (const auto& device : response.devices()) {
    merge_device(grant, resource, {device.container_path(), device.host_path(), device.permissions()});
  }
  for (const auto& cdi : response.cdi_devices()) {
    if (std::ranges::count(grant.cdi_names, cdi.name()) == 0) grant.cdi_names.push_back(cdi.name());
  }
}

std::vector<std::string> in_reading_order(const IdSet& ids) {
  const auto key = [](const std::string& id) {
    const auto number = parse_u64(id);
    return std::tuple(!number.has_value(), number.value_or(0), id);
  };
  std::vector<std::string> list(ids.begin(), ids.end());
  std::ranges::sort(list, {}, key);
  return list;
}

}  // namespace neuron::sim
