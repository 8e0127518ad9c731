#include "tools/neuron-sim/addresses.h"

#include <algorithm>
#include <array>
#include <optional>

namespace neuron::sim {
namespace {

constexpr int kFirstDeviceBusAfterPort = 2;
constexpr int kPortsPerSwitch = 20;                                  // more than any switch has been seen with
constexpr std::array<int, 4> kRootBuses = {0x10, 0x20, 0x90, 0xa0};  // as on trn1

model::Bdf make_bdf(int bus, int slot, int function = 0) {
  return {0, static_cast<std::uint8_t>(bus), static_cast<std::uint8_t>(slot), static_cast<std::uint8_t>(function)};
}

std::string host_bridge(const model::Bdf& bdf) {
  return "pci" + model::to_string(bdf).substr(0, 7);
}

// Lower bus of the two EFAs that share a switch with this one.
int first_bus_of_pair(const model::Bdf& efa, const std::vector<core::EfaFacts>& efas) {
  const bool has_lower = std::any_of(efas.begin(), efas.end(), [&](const core::EfaFacts& other) {
    return other.bdf.domain == efa.domain && other.bdf.bus + 1 == efa.bus;
  });
  return has_lower ? efa.bus - 1 : efa.bus;
}

// Parent of an EFA for which nobody published one. Trn3's buses repeat trn2's pattern, so its switches do too: the
// first of two EFAs is port 14, behind a port bus 16 below its own.
std::string invent_parent(const core::InstanceType& type, const core::EfaFacts& efa,
                          const std::vector<core::EfaFacts>& efas) {
  const bool like_trn2 = type.device_count == 16 && efa.bdf.slot == 0 && efa.bdf.bus >= 0x20;
  if (!like_trn2) return host_bridge(efa.bdf);
  const int port_bus = first_bus_of_pair(efa.bdf, efas) - 16;
  const int number = efa.bdf.bus - port_bus - kFirstDeviceBusAfterPort;
  return model::to_string(make_bdf(port_bus, number / 8, number % 8));
}

// Made-up address of a device that nobody published. Behind a switch with its nearest EFA, crossed as on trn2
// (docs/reference/topology.md#nearest-efa: the higher Neuron bus goes with the lower EFA bus); few devices on bus 0;
// else four to a root bus.
model::Bdf invent_device(const core::InstanceType& type, int index, const std::vector<core::EfaFacts>& efas) {
  const auto& nearest = type.devices[static_cast<std::size_t>(index)].nearest_efa;
  if (nearest && nearest->slot != 0) {  // EFAs and devices side by side on one root bus: trn1n
    int before = 0;
    for (int other = 0; other < index; ++other) {
      const auto& efa = type.devices[static_cast<std::size_t>(other)].nearest_efa;
      if (efa && efa->bus == nearest->bus) ++before;
    }
    return make_bdf(nearest->bus, 0x1b + before);
  }
  if (nearest) {
    const int first = first_bus_of_pair(*nearest, efas);
    return make_bdf(first + 3 - (nearest->bus - first), 0);
  }
  if (type.device_count <= 4) return make_bdf(0, 0x1f - (type.device_count - 1) + index);
  const auto root = static_cast<std::size_t>(index / 4) % kRootBuses.size();
  return make_bdf(kRootBuses[root], 0x1b + index % 4);
}

PciBridge& bridge_at(std::vector<PciBridge>& bridges, const model::Bdf& bdf, const std::string& path, int numa_node) {
  const auto found =
      std::find_if(bridges.begin(), bridges.end(), [&](const PciBridge& bridge) { return bridge.function.bdf == bdf; });
  if (found != bridges.end()) return *found;
  PciBridge bridge;
  bridge.function = {bdf, path, 0x1d0f, 0x0200, 0x060400, numa_node, "pcieport"};
  bridges.push_back(bridge);
  return bridges.back();
}

void extend(PciBridge& bridge, int secondary, int last) {
  bridge.secondary_bus = static_cast<std::uint8_t>(secondary);
  bridge.subordinate_bus = std::max(bridge.subordinate_bus, static_cast<std::uint8_t>(last));
}

}  // namespace

std::vector<core::EfaFacts> place_efas(const core::InstanceType& type) {
  auto efas = type.efas;
  for (int k = static_cast<int>(efas.size()); k < type.efa_count; ++k) {
    core::EfaFacts invented;
    invented.bdf = make_bdf(0x10 + 8 * k, 0x19);
    invented.pci_device_id = 0xefa1;
    invented.numa_node = type.devices.empty() ? -1 : type.devices.front().numa_node;
    efas.push_back(invented);
  }
  for (auto& efa : efas) {
    if (efa.pci_device_id == 0) efa.pci_device_id = 0xefa1;
    if (efa.pci_parent.empty()) efa.pci_parent = invent_parent(type, efa, efas);
  }
  std::sort(efas.begin(), efas.end(), [](const auto& a, const auto& b) { return a.bdf < b.bdf; });
  return efas;
}

std::vector<model::Bdf> place_devices(const core::InstanceType& type, const std::vector<core::EfaFacts>& efas) {
  std::vector<model::Bdf> places;
  for (int index = 0; index < type.device_count; ++index) {
    const auto& known = type.devices[static_cast<std::size_t>(index)].bdf;
    places.push_back(known ? *known : invent_device(type, index, efas));
  }
  return places;
}

std::string parent_of(const model::Bdf& bdf, const std::vector<core::EfaFacts>& efas) {
  for (const auto& efa : efas) {
    const auto port = model::parse_bdf(efa.pci_parent);
    if (!port || port->domain != bdf.domain) continue;
    const int number = bdf.bus - port->bus - kFirstDeviceBusAfterPort;
    if (number >= 0 && number < kPortsPerSwitch) return model::to_string(make_bdf(port->bus, number / 8, number % 8));
  }
  return host_bridge(bdf);
}

std::string sysfs_path(const model::Bdf& bdf, const std::string& parent, int numa_node,
                       std::vector<PciBridge>& bridges) {
  const std::string devices = "sys/devices/";
  const auto port = model::parse_bdf(parent);
  if (!port) return devices + parent + "/" + model::to_string(bdf);
  if (port->bus < 2) {  // a port that sits on a root bus itself
    const std::string path = devices + host_bridge(*port) + "/" + model::to_string(*port);
    extend(bridge_at(bridges, *port, path, numa_node), bdf.bus, bdf.bus);
    return path + "/" + model::to_string(bdf);
  }
  const auto root_port = make_bdf(port->bus - 2, 1);
  const auto upstream = make_bdf(port->bus - 1, 0);
  const std::string root_path = devices + host_bridge(root_port) + "/" + model::to_string(root_port);
  const std::string upstream_path = root_path + "/" + model::to_string(upstream);
  const std::string port_path = upstream_path + "/" + model::to_string(*port);
  extend(bridge_at(bridges, root_port, root_path, numa_node), upstream.bus, bdf.bus);
  extend(bridge_at(bridges, upstream, upstream_path, numa_node), port->bus, bdf.bus);
  extend(bridge_at(bridges, *port, port_path, numa_node), bdf.bus, bdf.bus);
  return port_path + "/" + model::to_string(bdf);
}

}  // namespace neuron::sim
