#include "agent/grant/cdi.h"

#include <nlohmann/json.hpp>

namespace neuron::grant {

std::string cdi_spec(const NodeUnits& node, model::Resource resource, const GrantOptions& options) {
  using nlohmann::ordered_json;
  const bool efa = resource == model::Resource::efa;
  ordered_json devices = ordered_json::array();
  for (const int unit : node.units(resource)) {
    const Grant answer = efa ? grant_of_efas(node, {unit}, options) : grant_of_cores(node, {unit}, {}, options);
    ordered_json nodes = ordered_json::array();
    for (const auto& each : answer.device_nodes) {
      nodes.push_back({{"path", each.container_path}, {"hostPath", each.host_path}, {"permissions", "rw"}});
    }
    if (nodes.empty()) continue;  // an EFA without a verbs node: nothing to give
    devices.push_back({{"name", node.id_of(resource, unit)}, {"containerEdits", {{"deviceNodes", nodes}}}});
  }
  if (devices.empty()) return "";
  const ordered_json spec = {
      {"cdiVersion", "0.5.0"}, {"kind", efa ? kCdiEfaKind : kCdiNeuronKind}, {"devices", devices}};
  return spec.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace neuron::grant
