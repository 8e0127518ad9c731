#include "agent/report/make_node_report.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "agent/allocator/allocator.h"
#include "agent/core/catalogue.h"
#include "agent/core/logical_cores.h"
#include "agent/health/assess.h"
#include "agent/health/reasons.h"

namespace neuron::report {
namespace {

void add_expectations(NodeReport& report) {
  const core::InstanceType* type = core::find_instance_type(report.host.instance_type);
  if (type == nullptr) return;
  report.expected_devices = type->device_count;
  report.expected_efas = type->efa_count;
  report.found_efas = static_cast<int>(report.host.efas.size());
  for (int index = 0; index < type->device_count; ++index) {
    if (model::find_device(report.host.devices, index) == nullptr) report.missing_devices.push_back(index);
  }
  if (report.missing_devices.empty()) return;
  report.missing_health =
      is_unread_list(report.host, model::ScanPart::Kind::devices)
          ? health::verdict_on_unread_list(report.host, "a device of the instance type", "sys/class/neuron_device")
          : health::verdict(health::reasons::kDeviceVanished,
                            "expected by the instance type, but not shown by the driver");
}

// With a device missing, lists that may not be read are as empty as those that may (docs/reference/driver.md).
void add_blanked_lists(NodeReport& report) {
  for (const model::NeuronDevice& device : report.host.devices) {
    const bool assumed = device.neighbours && device.neighbours->origin == model::Origin::assumed;
    if (assumed && !report.missing_devices.empty()) report.blanked_lists.insert(device.index);
  }
}

// The key of an interface behind the same switch or host bridge; "" where there is none. Where the host has few
// interfaces a device's group is guessed from its address; an interface behind another root bridge does not count.
std::string pci_key_of(std::size_t position, const allocator::NodeTopology& topology, const model::HostScan& host) {
  const int group = topology.devices[position].pci_group;
  const std::string& root = host.devices[position].pcie_root;
  for (std::size_t i = 0; group >= 0 && i < topology.efas.size(); ++i) {
    if (topology.efas[i].pci_group != group) continue;
    const std::string& other = host.efas[i].pcie_root;
    return root.empty() || other.empty() || root == other ? host.efas[i].switch_key : "";
  }
  return "";
}

}  // namespace

std::set<int> empty_lists(const model::HostScan& scan) {
  std::set<int> indices;
  for (const model::NeuronDevice& device : scan.devices) {
    if (device.neighbours && device.neighbours->value.empty()) indices.insert(device.index);
  }
  return indices;
}

NodeReport make_node_report(model::HostScan host, std::set<int> empty_lists) {
  NodeReport report;
  report.host = std::move(host);
  // Signals missing on all devices are part of the verdicts already.
  std::erase_if(report.host.problems,
                [](const auto& problem) { return problem.kind == model::ProblemKind::missing_signals; });
  report.blanked_lists = std::move(empty_lists);
  for (const model::NeuronDevice& device : report.host.devices) {
    report.core_ids.push_back(core::core_ids_of(device, report.host));
  }
  const allocator::NodeTopology topology = allocator::make_topology(report.host);
  for (const auto& device : topology.devices) report.near_efas.push_back(device.near_efas);
  report.switched = topology.switched;
  add_expectations(report);
  add_blanked_lists(report);
  return report;
}

void add_picture(NodeReport& report) {
  for (std::size_t i = 0; i < report.host.devices.size(); ++i) {
    auto& physical = report.physical_cores.emplace_back();
    for (std::size_t core = 0; core < report.core_ids[i].size(); ++core) {
      physical.push_back(core::physical_cores_of(report.host.devices[i], report.host, static_cast<int>(core)));
    }
  }
  const allocator::NodeTopology topology = allocator::make_topology(report.host);
  report.switched = topology.switched;
  for (std::size_t i = 0; i < topology.devices.size(); ++i) {
    report.pci_keys.push_back(pci_key_of(i, topology, report.host));
  }
}

}  // namespace neuron::report
