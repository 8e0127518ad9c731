#include <algorithm>
#include <map>
#include <string>

#include "agent/allocator/allocator.h"
#include "agent/base/parse.h"
#include "agent/core/catalogue.h"
#include "agent/core/logical_cores.h"

namespace neuron::allocator {
namespace {

using model::HostScan;

// "0000:b9" as domain << 8 | bus, nullopt for other text.
std::optional<std::uint32_t> parse_switch_key(std::string_view key) {
  const auto parts = split(key, ':');
  if (parts.size() != 2) return std::nullopt;
  const auto domain = parse_hex(parts[0]);
  const auto bus = parse_hex(parts[1]);
  if (!domain || !bus || *domain > 0xffff || *bus > 0xff) return std::nullopt;
  return *domain << 8U | *bus;
}

// PCI buses are numbered depth first: what is behind a bridge has a bus from the bridge's own number up to the next
// bridge's. So the group of a device is the EFA parent with the greatest bus that is not above the device's.
int group_of_bdf(const std::map<std::uint32_t, int>& groups, const model::Bdf& bdf) {
  auto next = groups.upper_bound(bdf.domain << 8U | bdf.bus);
  if (next == groups.begin()) return -1;
  --next;
  return next->first >> 8U == bdf.domain ? next->second : -1;
}

void add_efas(NodeTopology& topology, const HostScan& scan, std::map<std::uint32_t, int>& groups) {
  for (const model::EfaInterface& efa : scan.efas) {
    if (const auto key = parse_switch_key(efa.switch_key)) groups.emplace(*key, 0);
  }
  int number = 0;
  for (auto& [key, group] : groups) group = number++;
  for (const model::EfaInterface& efa : scan.efas) {
    NodeTopology::Efa entry;
    entry.name = efa.name;
    entry.numa_node = efa.numa_node.value_or(-1);
    if (const auto key = parse_switch_key(efa.switch_key)) entry.pci_group = groups.at(*key);
    topology.efas.push_back(std::move(entry));
  }
}

template <typename Predicate>
std::vector<int> positions_where(const std::vector<NodeTopology::Efa>& efas, Predicate matches) {
  std::vector<int> found;
  for (std::size_t i = 0; i < efas.size(); ++i) {
    if (matches(efas[i])) found.push_back(static_cast<int>(i));
  }
  return found;
}

// Position of the table's EFA for this device, -1 when there is none or the machine contradicts the table.
int official_efa(const NodeTopology& topology, const HostScan& scan, const core::InstanceType* type,
                 const NodeTopology::Device& device) {
  if (type == nullptr || device.index < 0 || device.index >= type->device_count) return -1;
  const auto& nearest = type->devices[static_cast<std::size_t>(device.index)].nearest_efa;
  if (!nearest) return -1;
  for (std::size_t i = 0; i < scan.efas.size(); ++i) {
    if (scan.efas[i].bdf != *nearest) continue;
    const int group = topology.efas[i].pci_group;
    const bool contradicted = group >= 0 && device.pci_group >= 0 && group != device.pci_group;
    return contradicted ? -1 : static_cast<int>(i);
  }
  return -1;
}

std::vector<int> near_efas_of(const NodeTopology& topology, const HostScan& scan, const core::InstanceType* type,
                              const NodeTopology::Device& device) {
  if (const int official = official_efa(topology, scan, type, device); official >= 0) return {official};
  if (device.pci_group >= 0) {
    auto found = positions_where(topology.efas, [&](const auto& efa) { return efa.pci_group == device.pci_group; });
    if (!found.empty()) return found;
  }
  if (device.numa_node < 0) return {};
  return positions_where(topology.efas, [&](const auto& efa) { return efa.numa_node == device.numa_node; });
}

// For an unknown type: the shape that the neighbour lists suggest.
void guess_shape(NodeTopology& topology) {
  std::size_t most = 0;
  std::size_t fewest = topology.devices.empty() ? 0 : topology.devices.front().neighbours.size();
  for (const auto& device : topology.devices) {
    most = std::max(most, device.neighbours.size());
    fewest = std::min(fewest, device.neighbours.size());
  }
  topology.groups_of_torus = most == 4;
  topology.ring = most == 2 && fewest == 2;
  topology.line = most > 0 && most <= 2 && !topology.ring;
}

void set_shape(NodeTopology& topology, const core::InstanceType* type) {
  if (type == nullptr || !type->family) return guess_shape(topology);
  switch (type->shape) {
    case core::TopologyShape::torus_4x4:
      topology.groups_of_torus = true;
      break;
    case core::TopologyShape::switched:
      topology.groups_of_torus = topology.switched = true;
      break;
    case core::TopologyShape::ring:
      topology.ring = true;
      break;
    case core::TopologyShape::chain:
    case core::TopologyShape::line:
      topology.line = true;
      break;
    case core::TopologyShape::unknown:
      topology.line = true;
      break;  // inf1.24xlarge: AWS gives consecutive ids there
    case core::TopologyShape::none:
      break;
  }
}

}  // namespace

NodeTopology make_topology(const HostScan& scan) {
  NodeTopology topology;
  const core::InstanceType* type = core::find_instance_type(scan.instance_type);
  std::map<std::uint32_t, int> groups;
  add_efas(topology, scan, groups);
  topology.cores_per_device = core::cores_per_device(scan);
  for (const model::NeuronDevice& device : scan.devices) {
    NodeTopology::Device entry;
    entry.index = device.index;
    entry.numa_node = device.numa_node ? device.numa_node->value : -1;
    if (device.neighbours) entry.neighbours = device.neighbours->value;
    if (device.bdf) entry.pci_group = group_of_bdf(groups, device.bdf->value);
    entry.near_efas = near_efas_of(topology, scan, type, entry);
    // Without an address of its own a device shares the group of the EFAs it is known to be near to.
    if (entry.pci_group < 0 && !entry.near_efas.empty()) {
      const int group = topology.efas[static_cast<std::size_t>(entry.near_efas.front())].pci_group;
      const bool same = std::all_of(entry.near_efas.begin(), entry.near_efas.end(), [&](int i) {
        return topology.efas[static_cast<std::size_t>(i)].pci_group == group;
      });
      if (same) entry.pci_group = group;
    }
    for (const int position : entry.near_efas) {
      topology.efas[static_cast<std::size_t>(position)].near_devices.push_back(entry.index);
    }
    topology.devices.push_back(std::move(entry));
  }
  set_shape(topology, type);
  return topology;
}

}  // namespace neuron::allocator
