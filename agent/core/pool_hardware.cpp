#include "agent/core/pool_hardware.h"

#include <algorithm>
#include <variant>

#include "agent/core/catalogue.h"
#include "agent/core/logical_cores.h"

namespace neuron::core {
namespace {

template <typename T>
void sort_unique(std::vector<T>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

// How many indices there are before a ring goes on at 0: those of the instance type, else those that are seen.
int ring_size(const model::HostScan& host) {
  const InstanceType* type = find_instance_type(host.instance_type);
  int size = type != nullptr && type->family ? type->device_count : 0;
  for (const model::NeuronDevice& device : host.devices) size = std::max(size, device.index + 1);
  return size;
}

struct NamedDevices {
  const model::HostScan& host;
  std::vector<int> operator()(const DeviceName& name) const { return {name.device}; }
  std::vector<int> operator()(const CoreName& name) const { return {name.device}; }
  std::vector<int> operator()(const GroupName& name) const { return members_of(name, ring_size(host)); }
  std::vector<int> operator()(const EfaName& /*name*/) const { return {}; }
  std::vector<int> operator()(const NodeName& /*name*/) const {
    std::vector<int> all;
    for (const model::NeuronDevice& device : host.devices) all.push_back(device.index);
    return all;
  }
};

void add_device(PoolHardware& hardware, const model::NeuronDevice& device, const model::HostScan& host,
                const CoreName* part) {
  const std::vector<int> cores = core_ids_of(device, host);
  if (part == nullptr) {
    hardware.cores.insert(hardware.cores.end(), cores.begin(), cores.end());
  } else if (static_cast<std::size_t>(part->core) < cores.size()) {
    hardware.cores.push_back(cores[static_cast<std::size_t>(part->core)]);
  } else if (!cores.empty()) {
    return;  // a core that the device does not have
  }
  hardware.devices.push_back(device.index);
}

}  // namespace

std::vector<int> named_devices(const PoolName& name, const model::HostScan& host) {
  return std::visit(NamedDevices{host}, name);
}

PoolHardware hardware_of(const PoolName& name, const model::HostScan& host) {
  PoolHardware hardware;
  const std::vector<int> wanted = named_devices(name, host);
  for (const model::NeuronDevice& device : host.devices) {
    if (std::find(wanted.begin(), wanted.end(), device.index) == wanted.end()) continue;
    add_device(hardware, device, host, std::get_if<CoreName>(&name));
  }
  if (const auto* efa = std::get_if<EfaName>(&name)) {
    for (const model::EfaInterface& one : host.efas) {
      if (!one.name.empty() && efa_label(one.name) == efa->label) hardware.efas.push_back(one.name);
    }
  }
  sort_unique(hardware.devices);
  sort_unique(hardware.cores);
  sort_unique(hardware.efas);
  return hardware;
}

}  // namespace neuron::core
