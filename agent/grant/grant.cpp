#include "agent/grant/grant.h"

#include <algorithm>
#include <optional>

#include "agent/base/parse.h"

namespace neuron::grant {
namespace {

Grant::DeviceNode node_at(const std::string& path, const GrantOptions& options) {
  return {options.host_path_prefix + path, path};
}

// The LNC that a runtime has to be given because it would read another one.
std::optional<int> lnc_to_set(const NodeUnits& node) {
  const auto& numbered = node.snapshot().host.lnc;
  if (!numbered || !node.runtime_lnc() || *node.runtime_lnc() == numbered->value) return std::nullopt;
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

}  // namespace neuron::grant
