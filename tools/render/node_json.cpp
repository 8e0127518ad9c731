#include <nlohmann/json.hpp>

#include "agent/base/parse.h"
#include "tools/render/node_view.h"

namespace neuron::render {
namespace {

using Json = nlohmann::ordered_json;  // keys in the order of insertion

constexpr const char* kUnknown = "NA";

Json processes_json(const std::vector<ProcessView>& processes) {
  Json list = Json::array();
  for (const ProcessView& process : processes) {
    Json entry;
    entry["pid"] = process.pid;
    entry["command"] = process.command;
    entry["neuron_runtime_version"] = process.runtime_version;
    list.push_back(std::move(entry));
  }
  return list;
}

Json device_object(const NodeView& view, const DeviceView& device) {
  Json object;
  if (!view.instance_type.empty()) object["instance_type"] = view.instance_type;
  if (!view.instance_id.empty()) object["instance_id"] = view.instance_id;
  object["neuron_device"] = device.index;
  object["bdf"] = device.bdf ? model::to_string(*device.bdf) : kUnknown;
  object["cpu_affinity"] = device.cpus ? format_int_list(*device.cpus) : kUnknown;
  object["numa_node"] = device.numa_node ? std::to_string(*device.numa_node) : kUnknown;
  object["connected_to"] = device.neighbours.empty() ? Json(nullptr) : Json(device.neighbours);
  object["nc_count"] = device.core_ids ? Json(device.core_ids->size()) : Json(nullptr);
  if (view.lnc) object["logical_neuroncore_config"] = *view.lnc;
  object["memory_size"] = device.memory_bytes ? Json(*device.memory_bytes) : Json(nullptr);
  object["neuroncore_ids"] = device.core_ids.value_or(std::vector<int>{});
  object["neuron_processes"] = processes_json(device.processes);
  return object;
}

}  // namespace

std::string device_json(const NodeView& view) {
  Json list = Json::array();
  for (const DeviceView& device : view.devices) list.push_back(device_object(view, device));
  return list.dump(4, ' ', false, Json::error_handler_t::replace);
}

}  // namespace neuron::render
