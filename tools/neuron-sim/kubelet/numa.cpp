#include "tools/neuron-sim/kubelet/numa.h"

#include <algorithm>
#include <bit>

namespace neuron::sim {
namespace {

constexpr std::size_t kMaxNodes = 16;

bool has_topology(const PluginDevices& devices) {
  return std::any_of(devices.begin(), devices.end(),
                     [](const auto& entry) { return !entry.second.numa_nodes.empty(); });
}

bool touches(const PluginDevice& device, const std::set<int>& nodes) {
  return std::any_of(device.numa_nodes.begin(), device.numa_nodes.end(),
                     [&](int node) { return nodes.contains(node); });
}

bool serves(const std::set<int>& nodes, const NumaDemand& demand) {
  if (!has_topology(demand.devices)) return true;
  const auto count = std::count_if(demand.usable.begin(), demand.usable.end(), [&](const std::string& id) {
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
    if (std::all_of(demands.begin(), demands.end(), [&](const NumaDemand& d) { return serves(chosen, d); })) {
      best = std::move(chosen);
    }
  }
  return best;
}

}  // namespace neuron::sim
