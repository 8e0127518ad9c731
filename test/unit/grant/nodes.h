#pragma once

#include <memory>
#include <string>
#include <vector>

#include "agent/core/catalogue.h"
#include "agent/core/complete.h"
#include "agent/grant/grant.h"

namespace neuron {

// A healthy node of a catalogue type as the agent would see it, without any files.
inline std::shared_ptr<model::Snapshot> snapshot_of(const std::string& instance_type) {
  const core::InstanceType* type = core::find_instance_type(instance_type);
  auto snapshot = std::make_shared<model::Snapshot>();
  snapshot->number = snapshot->generation = 1;
  model::HostScan& host = snapshot->host;
  host.instance_type = instance_type;
  for (int i = 0; i < type->device_count; ++i) {
    model::NeuronDevice& device = host.devices.emplace_back();
    device.index = i;
    device.family = type->family;
    device.node_present = true;
  }
  for (std::size_t i = 0; i < type->efas.size(); ++i) {
    model::EfaInterface& efa = host.efas.emplace_back();
    efa.bdf = type->efas[i].bdf;
    efa.name = "rdmap" + std::to_string(efa.bdf.bus) + "s" + std::to_string(efa.bdf.slot);
    efa.uverbs = "uverbs" + std::to_string(type->efas.size() - 1 - i);
    efa.numa_node = type->efas[i].numa_node;
  }
  host = core::complete(std::move(host));
  for (model::NeuronDevice& device : host.devices) device.health.state = model::HealthState::healthy;
  for (model::EfaInterface& efa : host.efas) efa.health.state = model::HealthState::healthy;
  return snapshot;
}

inline grant::NodeUnitsPtr node_of(const std::string& instance_type) {
  return std::make_shared<const grant::NodeUnits>(snapshot_of(instance_type));
}

inline std::vector<std::string> ids(const grant::NodeUnits& node, model::Resource resource) {
  std::vector<std::string> all;
  for (const int unit : node.units(resource)) all.push_back(node.id_of(resource, unit));
  return all;
}

}  // namespace neuron
