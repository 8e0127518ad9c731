#include "tools/render/node_report.h"

#include <algorithm>
#include <string_view>

#include "agent/base/parse.h"
#include "tools/render/text.h"

namespace neuron::render {
namespace {

std::string name_of(const model::EfaInterface& efa) {
  return efa.name.empty() ? model::to_string(efa.bdf) : efa.name;
}

template <typename Holds>
std::optional<std::vector<std::string>> pods_where(const NodeReport& report, Holds holds) {
  if (!report.pods) return std::nullopt;
  std::set<std::string> names;
  for (const PodUse& use : *report.pods) {
    if (holds(use)) names.insert(use.pod_namespace + '/' + use.pod);
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

constexpr std::string_view kHeader =
    "device,family,serial,core_ids,memory_bytes,connected_to,connected_to_origin,bdf,bdf_origin,numa_node,"
    "numa_node_origin,cpus,health,reason,pids,nearest_efa_interfaces,pods\n";

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string cell = "\"";
  for (const char byte : text) cell += byte == '"' ? std::string("\"\"") : std::string(1, byte);
  return cell + '"';
}

template <typename T>
std::string origin_of(const model::Maybe<T>& maybe) {
  if (!maybe) return "";
  return maybe->origin == model::Origin::live ? "live" : "assumed";
}

std::string pids_of(const model::NeuronDevice& device) {
  std::vector<int> pids;
  if (!device.processes) return "";
  for (const model::Process& process : *device.processes) pids.push_back(process.pid);
  return joined(pids, " ");
}

std::vector<std::string> cells_of(const NodeReport& report, std::size_t position) {
  const model::NeuronDevice& device = report.host.devices[position];
  const auto pods = pods_on_device(report, device.index);
  return {
      std::to_string(device.index),
      device.family ? std::string(model::to_string(*device.family)) : "",
      device.serial.value_or(""),
      position < report.core_ids.size() ? joined(report.core_ids[position], " ") : "",
      device.memory_bytes ? std::to_string(*device.memory_bytes) : "",
      device.neighbours ? joined(device.neighbours->value, " ") : "",
      origin_of(device.neighbours),
      device.bdf ? model::to_string(device.bdf->value) : "",
      origin_of(device.bdf),
      device.numa_node ? std::to_string(device.numa_node->value) : "",
      origin_of(device.numa_node),
      device.cpus ? format_int_list(device.cpus->value) : "",
      is_assessed(device.health) ? std::string(model::to_string(device.health.state)) : "",
      device.health.reason,
      pids_of(device),
      joined(near_efa_names(report, position), " "),
      pods ? joined(*pods, " ") : "",
  };
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

std::string node_report_csv(const NodeReport& report) {
  std::string text(kHeader);
  for (std::size_t i = 0; i < report.host.devices.size(); ++i) {
    std::string line;
    for (const std::string& cell : cells_of(report, i)) line.append(line.empty() ? "" : ",").append(quoted(cell));
    text += line + '\n';
  }
  return text;
}

}  // namespace neuron::render
