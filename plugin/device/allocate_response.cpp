#include "plugin/device/allocate_response.h"

#include <algorithm>

#include "agent/base/parse.h"

namespace neuron::plugin {
namespace {

ContainerAnswer::DeviceNode node_at(const std::string& path, const ResponseOptions& options) {
  return {options.host_path_prefix + path, path};
}

}  // namespace

std::string visible_cores(const NodeView& view, const std::vector<int>& devices, const std::vector<int>& cores,
                          CoreNumbering numbering) {
  if (numbering == CoreNumbering::host) return format_int_list(cores);
  const int per_device = view.topology().cores_per_device;
  std::vector<int> local;
  for (const int core : cores) {
    const int device = view.device_of_core(core);
    const auto place = std::lower_bound(devices.begin(), devices.end(), device) - devices.begin();
    local.push_back(static_cast<int>(place) * per_device + core - device * per_device);
  }
  std::sort(local.begin(), local.end());
  return format_int_list(local);
}

ContainerAnswer answer_for_silicon(const NodeView& view, const std::vector<int>& devices, const std::vector<int>& cores,
                                   const ResponseOptions& options) {
  ContainerAnswer answer;
  answer.envs["NEURON_RT_VISIBLE_CORES"] = visible_cores(view, devices, cores, options.numbering);
  for (const int device : devices) {
    answer.device_nodes.push_back(node_at("/dev/neuron" + std::to_string(device), options));
    if (options.cdi_names) answer.cdi_names.push_back("aws.amazon.com/neuron=" + std::to_string(device));
  }
  return answer;
}

ContainerAnswer answer_for_efa(const NodeView& view, const std::vector<int>& efa_units,
                               const ResponseOptions& options) {
  ContainerAnswer answer;
  for (const int unit : efa_units) {
    const model::EfaInterface& efa = view.efa(unit);
    if (efa.uverbs) answer.device_nodes.push_back(node_at("/dev/infiniband/" + *efa.uverbs, options));
    if (options.cdi_names) answer.cdi_names.push_back("vpc.amazonaws.com/efa=" + efa.name);
  }
  return answer;
}

}  // namespace neuron::plugin
