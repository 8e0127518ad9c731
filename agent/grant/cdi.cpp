#include "agent/grant/cdi.h"

#include <nlohmann/json.hpp>

namespace neuron::grant {

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
