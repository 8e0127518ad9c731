#include "agent/core/typical_host.h"

#include <utility>

#include "agent/base/parse.h"
#include "agent/core/complete.h"
#include "agent/core/instance_places.h"

namespace neuron::core {
namespace {

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
