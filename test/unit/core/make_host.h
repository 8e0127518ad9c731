#pragma once

#include <algorithm>
#include <string>

#include "agent/allocator/allocator.h"
#include "agent/base/parse.h"
#include "agent/core/catalogue.h"
#include "agent/core/complete.h"

// Scans as the host reader would give them on a sound machine of a catalogue type, without any file.
namespace neuron::test {

inline model::NeuronDevice make_device(int index, model::Family family) {
  model::NeuronDevice device;
  device.index = index;
  device.family = family;
  device.node_present = true;
  device.signals.sram_ecc_uncorrected = 0;
  device.signals.mem_ecc_uncorrected = 0;
  device.signals.mem_ecc_repairable_uncorrected = 0;
  device.signals.unhealthy_components = std::vector<std::string>{};
  device.signals.heartbeat = 17;
  device.signals.unreachable = false;
  for (int core = 0; core < core::family_facts(family).physical_cores; ++core) {
    model::CoreSignals signals;
    signals.physical_index = core;
    signals.hw_error = signals.hw_hbm_ue_error = signals.hw_nc_ue_error = 0;
    signals.hw_dma_abort_error = signals.hw_repairable_hbm_ue_error = 0;
    device.cores.push_back(signals);
  }
  return device;
}

// "0000:b9:01.6" -> "0000:b9"; "pci0000:10" -> "0000:10"
inline std::string switch_key_of(std::string parent) {
  if (parent.starts_with("pci")) return parent.substr(3);
  return parent.substr(0, 7);
}

inline model::EfaInterface make_efa(const core::EfaFacts& facts, int number) {
  model::EfaInterface efa;
  efa.bdf = facts.bdf;
  efa.name = "rdmap" + std::to_string(facts.bdf.bus) + "s" + std::to_string(facts.bdf.slot);
  efa.pci_device_id = facts.pci_device_id;
  efa.driver_bound = true;
  efa.uverbs = "uverbs" + std::to_string(number);
  efa.node_present = true;
  efa.numa_node = facts.numa_node;
  efa.switch_key = switch_key_of(facts.pci_parent);
  return efa;
}

// Nothing of what complete() would add.
inline model::HostScan silent_scan(const std::string& type_name) {
  const core::InstanceType& type = *core::find_instance_type(type_name);
  model::HostScan scan;
  scan.instance_type = type_name;
  scan.layout = model::DriverLayout::health_v2;
  scan.driver_version = "2.30.2.0";
  for (int i = 0; type.family && i < type.device_count; ++i) scan.devices.push_back(make_device(i, *type.family));
  for (const core::EfaFacts& efa : type.efas) scan.efas.push_back(make_efa(efa, static_cast<int>(scan.efas.size())));
  return scan;
}

inline model::HostScan scan_of(const std::string& type_name) {
  return core::complete(silent_scan(type_name));
}

inline allocator::NodeTopology topology_of(const std::string& type_name) {
  return allocator::make_topology(scan_of(type_name));
}

inline const allocator::NodeTopology& trn1() {  // 2 cores per device
  static const allocator::NodeTopology kTopology = topology_of("trn1.32xlarge");
  return kTopology;
}
inline const allocator::NodeTopology& trn2() {  // 4 cores per device
  static const allocator::NodeTopology kTopology = topology_of("trn2.48xlarge");
  return kTopology;
}
inline const allocator::NodeTopology& inf2() {
  static const allocator::NodeTopology kTopology = topology_of("inf2.48xlarge");
  return kTopology;
}

inline std::vector<int> range_of(int first, int count) {
  std::vector<int> ids;
  for (int i = 0; i < count; ++i) ids.push_back(first + i);
  return ids;
}

inline std::vector<int> without(std::vector<int> ids, const std::vector<int>& gone) {
  std::erase_if(ids, [&](int id) { return std::find(gone.begin(), gone.end(), id) != gone.end(); });
  return ids;
}

inline allocator::ChooseRequest ask(std::vector<int> available, int size) {
  allocator::ChooseRequest request;
  request.available = std::move(available);
  request.size = size;
  return request;
}

}  // namespace neuron::test
