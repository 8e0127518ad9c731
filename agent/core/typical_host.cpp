#include "agent/core/typical_host.h"

#include <algorithm>
#include <array>
#include <utility>

#include "agent/base/parse.h"
#include "agent/core/complete.h"

namespace neuron::core {
namespace {

constexpr int kFirstDeviceBusAfterPort = 2;
constexpr int kPortsPerSwitch = 20;                                  // more than any known switch has
constexpr std::array<int, 4> kRootBuses = {0x10, 0x20, 0x90, 0xa0};  // as on trn1

model::Bdf make_bdf(int bus, int slot, int function = 0) {
  return {0, static_cast<std::uint8_t>(bus), static_cast<std::uint8_t>(slot), static_cast<std::uint8_t>(function)};
}

// Lower bus of the two EFAs that share a switch with this one.
int first_bus_of_pair(const model::Bdf& efa, const std::vector<EfaFacts>& efas) {
  const bool has_lower = std::ranges::any_of(
      efas, [&](const EfaFacts& other) { return other.bdf.domain == efa.domain && other.bdf.bus + 1 == efa.bus; });
  return has_lower ? efa.bus - 1 : efa.bus;
}

// Parent of an EFA without a published one. Trn3's buses repeat trn2's pattern, so its switches do too: the first of
// two EFAs is port 14, behind a port bus 16 below its own.
std::string invent_parent(const InstanceType& type, const EfaFacts& efa, const std::vector<EfaFacts>& efas) {
  const bool like_trn2 = type.device_count == 16 && efa.bdf.slot == 0 && efa.bdf.bus >= 0x20;
  if (!like_trn2) return host_bridge_of(efa.bdf);
  const int port_bus = first_bus_of_pair(efa.bdf, efas) - 16;
  const int number = efa.bdf.bus - port_bus - kFirstDeviceBusAfterPort;
  return model::to_string(make_bdf(port_bus, number / 8, number % 8));
}

// Made-up address of a device without a published one. Behind a switch with its nearest EFA, crossed as on trn2
// (docs/reference/topology.md#nearest-efa: the higher Neuron bus goes with the lower EFA bus); few devices on bus 0;
// else four to a root bus.
model::Bdf invent_device(const InstanceType& type, int index, const std::vector<EfaFacts>& efas) {
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

std::vector<EfaFacts> place_efas(const InstanceType& type) {
  auto efas = type.efas;
  for (int k = static_cast<int>(efas.size()); k < type.efa_count; ++k) {
    EfaFacts invented;
    invented.bdf = make_bdf(0x10 + 8 * k, 0x19);
    invented.pci_device_id = 0xefa1;
    invented.numa_node = type.devices.empty() ? -1 : type.devices.front().numa_node;
    efas.push_back(invented);
  }
  for (auto& efa : efas) {
    if (efa.pci_device_id == 0) efa.pci_device_id = 0xefa1;
    if (efa.pci_parent.empty()) efa.pci_parent = invent_parent(type, efa, efas);
  }
  std::ranges::sort(efas, {}, &EfaFacts::bdf);
  return efas;
}

constexpr int kMaxCpu = 4095;

model::NeuronDevice device_of(const InstanceType& type, int index, const InstancePlaces& places) {
  const auto at = static_cast<std::size_t>(index);
  model::NeuronDevice device;
  device.index = index;
  device.family = type.family;
  device.bdf = model::Sourced<model::Bdf>{places.devices[at], model::Origin::assumed};
  device.numa_node = model::Sourced<int>{type.devices[at].numa_node, model::Origin::assumed};
  device.pcie_root = host_bridge_above(pci_parent_of(places.devices[at], places.efas));
  device.node_present = true;
  return device;
}

model::EfaInterface interface_of(const EfaFacts& facts, std::size_t number) {
  model::EfaInterface efa;
  efa.name = rdma_name_of(facts.bdf);
  efa.bdf = facts.bdf;
  efa.pci_device_id = facts.pci_device_id;
  efa.driver_bound = true;
  efa.uverbs = "uverbs" + std::to_string(number);
  efa.node_present = true;
  efa.numa_node = facts.numa_node;
  efa.pcie_root = host_bridge_above(facts.pci_parent);
  return efa;
}

model::UltraServer linked_server() {
  return {false, {1, 3, 4}, {{2, "", 0}, {4, "", 0}}, std::nullopt};
}

}  // namespace

InstancePlaces places_of(const InstanceType& type) {
  InstancePlaces places{{}, place_efas(type)};
  for (int index = 0; index < type.device_count; ++index) {
    const auto& known = type.devices[static_cast<std::size_t>(index)].bdf;
    places.devices.push_back(known ? *known : invent_device(type, index, places.efas));
  }
  return places;
}

bool has_device_addresses(const InstanceType& type) {
  return std::ranges::all_of(type.devices, [](const DeviceFacts& device) { return device.bdf.has_value(); });
}

bool has_efa_addresses(const InstanceType& type) {
  return static_cast<int>(type.efas.size()) == type.efa_count;
}

std::string pci_parent_of(const model::Bdf& bdf, const std::vector<EfaFacts>& efas) {
  for (const auto& efa : efas) {
    const auto port = model::parse_bdf(efa.pci_parent);
    if (!port || port->domain != bdf.domain) continue;
    const int number = bdf.bus - port->bus - kFirstDeviceBusAfterPort;
    if (number >= 0 && number < kPortsPerSwitch) return model::to_string(make_bdf(port->bus, number / 8, number % 8));
  }
  return host_bridge_of(bdf);
}

SwitchPorts ports_above(const model::Bdf& downstream_port) {
  return {make_bdf(downstream_port.bus - 2, 1), make_bdf(downstream_port.bus - 1, 0)};
}

bool is_on_root_bus(const model::Bdf& downstream_port) {
  return downstream_port.bus < 2;
}

std::string host_bridge_of(const model::Bdf& bdf) {
  return "pci" + model::to_string(bdf).substr(0, 7);
}

std::string host_bridge_above(const std::string& parent) {
  const auto port = model::parse_bdf(parent);
  if (!port) return parent;
  return host_bridge_of(is_on_root_bus(*port) ? *port : ports_above(*port).root_port);
}

std::string rdma_name_of(const model::Bdf& bdf) {
  const std::string domain = bdf.domain > 0 ? "P" + std::to_string(bdf.domain) : "";
  const std::string function = bdf.function > 0 ? "f" + std::to_string(bdf.function) : "";
  return "rdma" + domain + "p" + std::to_string(bdf.bus) + "s" + std::to_string(bdf.slot) + function;
}

bool has_lnc(const InstanceType& type, int lnc) {
  return type.family && lnc >= 1 && lnc <= type.default_lnc;
}

model::HostScan typical_host(const InstanceType& type, const TypicalFacts& facts) {
  const InstancePlaces places = places_of(type);
  model::HostScan host;
  host.instance_type = type.name;
  host.driver_version = facts.driver_version;
  if (facts.lnc) host.lnc = model::Sourced<int>{*facts.lnc, model::Origin::live};
  for (int index = 0; index < type.device_count; ++index) host.devices.push_back(device_of(type, index, places));
  for (const EfaFacts& efa : places.efas) host.efas.push_back(interface_of(efa, host.efas.size()));
  for (const NumaFacts& numa : type.numa) {
    auto cpus = parse_int_list(numa.cpu_list, kMaxCpu);
    host.numa_nodes.push_back({numa.index, cpus ? *std::move(cpus) : std::vector<int>()});
  }
  host.neuron_pci_functions = type.device_count;
  if (type.in_ultraserver) host.ultraserver = linked_server();
  host = complete(std::move(host));
  for (model::NeuronDevice& device : host.devices) {
    device.health.state = model::HealthState::healthy;
    device.core_health.assign(static_cast<std::size_t>(type.physical_cores_per_device), device.health);
  }
  for (model::EfaInterface& efa : host.efas) efa.health.state = model::HealthState::healthy;
  return host;
}

}  // namespace neuron::core
