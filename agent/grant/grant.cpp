#include "agent/grant/grant.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "agent/base/parse.h"

namespace neuron::grant {
namespace {

Grant::DeviceNode node_at(const std::string& path, const GrantOptions& options) {
  return {options.host_path_prefix + path, path};
}

// The LNC that a runtime has to be given because it would read another one, or may.
std::optional<int> lnc_to_set(const NodeUnits& node) {
  const auto& numbered = node.snapshot().host.lnc;
  if (!numbered || node.runtime_lnc() == numbered->value) return std::nullopt;
  return numbered->value;
}

}  // namespace

std::string visible_cores(const NodeUnits& node, const std::vector<int>& devices, const std::vector<int>& cores,
                          CoreNumbering numbering) {
  if (numbering == CoreNumbering::host) return format_int_list(cores);
  const int per_device = node.topology().cores_per_device;
  std::vector<int> local;
  for (const int core : cores) {
    const int device = node.device_of_core(core);
    const auto place = std::lower_bound(devices.begin(), devices.end(), device) - devices.begin();
    local.push_back(static_cast<int>(place) * per_device + core - device * per_device);
  }
  std::sort(local.begin(), local.end());
  return format_int_list(local);
}

Grant grant_of_cores(const NodeUnits& node, const std::vector<int>& devices, const std::vector<int>& cores,
                     const GrantOptions& options) {
  Grant answer;
  answer.envs["NEURON_RT_VISIBLE_CORES"] = visible_cores(node, devices, cores, options.numbering);
  if (const auto lnc = lnc_to_set(node)) answer.envs[kLncVariable] = std::to_string(*lnc);
  for (const int device : devices) {
    answer.device_nodes.push_back(node_at("/dev/neuron" + std::to_string(device), options));
    if (options.cdi_names) answer.cdi_names.push_back("aws.amazon.com/neuron=" + std::to_string(device));
  }
  return answer;
}

Grant grant_of_efas(const NodeUnits& node, const std::vector<int>& efa_units, const GrantOptions& options) {
  Grant answer;
  for (const int unit : efa_units) {
    const model::EfaInterface& efa = node.efa(unit);
    if (efa.uverbs) answer.device_nodes.push_back(node_at("/dev/infiniband/" + *efa.uverbs, options));
    if (options.cdi_names) answer.cdi_names.push_back("vpc.amazonaws.com/efa=" + efa.name);
  }
  return answer;
}

std::string cdi_text(const std::string& kind, const std::vector<CdiDevice>& devices) {
  using nlohmann::ordered_json;
  ordered_json list = ordered_json::array();
  for (const CdiDevice& device : devices) {
    ordered_json edits = ordered_json::object();
    for (const auto& each : device.device_nodes) {
      edits["deviceNodes"].push_back(
          {{"path", each.container_path}, {"hostPath", each.host_path}, {"permissions", device.permissions}});
    }
    for (const auto& [name, value] : device.envs) edits["env"].push_back(name + "=" + value);
    if (edits.empty()) continue;
    list.push_back({{"name", device.name}, {"containerEdits", std::move(edits)}});
  }
  if (list.empty()) return "";
  const ordered_json spec = {{"cdiVersion", "0.5.0"}, {"kind", kind}, {"devices", std::move(list)}};
  return spec.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

std::string cdi_spec(const NodeUnits& node, model::Resource resource, const GrantOptions& options) {
  const bool efa = resource == model::Resource::efa;
  std::vector<CdiDevice> devices;
  for (const int unit : node.units(resource)) {
    Grant answer = efa ? grant_of_efas(node, {unit}, options) : grant_of_cores(node, {unit}, {}, options);
    devices.push_back({node.id_of(resource, unit), std::move(answer.device_nodes), "rw", {}});
  }
  return cdi_text(efa ? kCdiEfaKind : kCdiNeuronKind, devices);
}

}  // namespace neuron::grant
