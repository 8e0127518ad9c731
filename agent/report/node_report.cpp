#include "agent/report/node_report.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "agent/allocator/allocator.h"
#include "agent/core/catalogue.h"
#include "agent/core/logical_cores.h"
#include "agent/health/assess.h"
#include "agent/health/reasons.h"

namespace neuron::report {
namespace {

std::string name_of(const model::EfaInterface& efa) {
  return efa.name.empty() ? model::to_string(efa.bdf) : efa.name;
}

template <typename Holds>
std::optional<std::vector<std::string>> pods_where(const NodeReport& report, Holds holds) {
  if (!report.pods) return std::nullopt;
  std::set<std::string> names;
  for (const PodUse& use : *report.pods) {
    if (holds(use)) names.insert(use.pod.empty() ? "unknown" : use.pod_namespace + '/' + use.pod);
  }
  return std::vector<std::string>(names.begin(), names.end());
}

// The elements of `values` at `kept`; empty when `values` is.
template <typename T>
std::vector<T> at_positions(const std::vector<T>& values, const std::vector<std::size_t>& kept) {
  std::vector<T> chosen;
  for (const std::size_t position : kept) {
    if (position < values.size()) chosen.push_back(values[position]);
  }
  return chosen;
}

std::vector<std::size_t> positions_of_devices(const NodeReport& report, const std::set<int>& indices) {
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < report.host.devices.size(); ++i) {
    if (indices.contains(report.host.devices[i].index)) kept.push_back(i);
  }
  return kept;
}

bool touches(const PodUse& use, const std::set<int>& devices, const std::set<std::string>& efas) {
  return std::ranges::any_of(use.devices, [&](int device) { return devices.contains(device); }) ||
         std::ranges::any_of(use.efas, [&](const auto& efa) { return efas.contains(efa); });
}

}  // namespace

std::vector<std::string> near_efa_names(const NodeReport& report, std::size_t position) {
  std::vector<std::string> names;
  if (position >= report.near_efas.size()) return names;
  for (const int efa : report.near_efas[position]) {
    names.push_back(name_of(report.host.efas[static_cast<std::size_t>(efa)]));
  }
  return names;
}

std::vector<int> near_devices(const NodeReport& report, std::size_t position) {
  std::vector<int> indices;
  for (std::size_t i = 0; i < report.near_efas.size(); ++i) {
    const auto& near = report.near_efas[i];
    const bool found = std::ranges::find(near, static_cast<int>(position)) != near.end();
    if (found) indices.push_back(report.host.devices[i].index);
  }
  return indices;
}

std::optional<std::vector<std::string>> pods_on_device(const NodeReport& report, int device_index) {
  return pods_where(report, [&](const PodUse& use) { return use.devices.contains(device_index); });
}

std::optional<std::vector<std::string>> pods_on_efa(const NodeReport& report, const std::string& name) {
  return pods_where(report, [&](const PodUse& use) { return use.efas.contains(name); });
}

NodeReport only_devices(const NodeReport& report, const std::set<int>& indices) {
  NodeReport chosen = report;
  const auto kept = positions_of_devices(report, indices);
  chosen.host.devices = at_positions(report.host.devices, kept);
  chosen.core_ids = at_positions(report.core_ids, kept);
  chosen.physical_cores = at_positions(report.physical_cores, kept);
  chosen.pci_keys = at_positions(report.pci_keys, kept);
  const auto near = at_positions(report.near_efas, kept);
  std::set<std::size_t> wanted;
  for (const auto& efas : near) wanted.insert(efas.begin(), efas.end());
  const std::vector<std::size_t> kept_efas(wanted.begin(), wanted.end());
  chosen.host.efas = at_positions(report.host.efas, kept_efas);
  chosen.near_efas.clear();
  for (const auto& efas : near) {
    auto& renumbered = chosen.near_efas.emplace_back();
    for (const int efa : efas) {
      const auto place = wanted.find(static_cast<std::size_t>(efa));
      renumbered.push_back(static_cast<int>(std::distance(wanted.begin(), place)));
    }
  }
  std::set<std::string> efa_names;
  for (const auto& efa : chosen.host.efas) efa_names.insert(efa.name);
  if (chosen.pods) std::erase_if(*chosen.pods, [&](const PodUse& use) { return !touches(use, indices, efa_names); });
  return chosen;
}

namespace {

void add_expectations(NodeReport& report) {
  const core::InstanceType* type = core::find_instance_type(report.host.instance_type);
  if (type == nullptr) return;
  report.expected_devices = type->device_count;
  if (type->efa_count_is_known) report.expected_efas = type->efa_count;
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
