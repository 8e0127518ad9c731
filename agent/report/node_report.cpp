#include "agent/report/node_report.h"

#include <algorithm>
#include <string_view>

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

}  // namespace neuron::report
