#include "tools/render/node_view.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "agent/base/parse.h"
#include "tools/render/text.h"

namespace neuron::render {
namespace {

template <typename T>
std::optional<T> value_of(const model::Maybe<T>& maybe) {
  if (!maybe) return std::nullopt;
  return maybe->value;
}

// The driver does not report which processes use the runtime. A monitor attaches without locking a core or allocating
// memory. Where processes come from proc and not from the driver, their holdings are unknown, and every process that
// has the device open counts.
bool uses_runtime(const model::Process& process) {
  const auto holds = [](const auto& amount) { return !amount || *amount != 0; };
  return holds(process.core_mask) || holds(process.device_memory_bytes) || holds(process.host_memory_bytes);
}

std::vector<ProcessView> processes_of(const model::NeuronDevice& device, const ViewRequest& request) {
  std::map<int, ProcessView> by_pid;
  for (const model::Process& process : device.processes.value_or(std::vector<model::Process>{})) {
    if (request.filter == ProcessFilter::with_runtime && !uses_runtime(process)) continue;
    ProcessView& view = by_pid[process.pid];
    view.pid = process.pid;
    if (const auto command = request.commands.find(process.pid); command != request.commands.end()) {
      view.command = shorten(command->second, request.command_width);
    }
  }
  std::vector<ProcessView> processes;
  for (auto& [pid, view] : by_pid) processes.push_back(std::move(view));
  return processes;
}

DeviceView device_view(const model::NeuronDevice& device, const ViewRequest& request) {
  DeviceView view;
  view.index = device.index;
  view.host_index = device.index;
  view.memory_bytes = device.memory_bytes;
  if (device.neighbours) view.neighbours = device.neighbours->value;
  view.neighbours_marked = request.mark_assumed_neighbours && !view.neighbours.empty() &&
                           device.neighbours->origin == model::Origin::assumed;
  view.bdf = value_of(device.bdf);
  view.cpus = value_of(device.cpus);
  view.numa_node = value_of(device.numa_node);
  view.processes = processes_of(device, request);
  return view;
}

// Numbers devices and cores from 0, as the runtime counts inside a container. After a device whose core count is
// unknown, no core id is known either.
void number_from_zero(std::vector<DeviceView>& devices) {
  int next_index = 0;
  int next_core = 0;
  bool is_known = true;  // next_core
  for (DeviceView& device : devices) {
    device.index = next_index++;
    is_known = is_known && device.core_ids;
    if (!is_known) {
      device.core_ids.reset();
      continue;
    }
    std::iota(device.core_ids->begin(), device.core_ids->end(), next_core);
    next_core += static_cast<int>(device.core_ids->size());
  }
}

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

bool has_logical_core_choice(const model::NeuronDevice& device) {
  return device.family == model::Family::trainium2 || device.family == model::Family::trainium3;
}

NodeView make_node_view(const model::HostScan& scan, const ViewRequest& request) {
  NodeView view;
  view.instance_type = scan.instance_type;
  view.instance_id = scan.instance_id;
  view.switched = request.switched;
  if (std::ranges::any_of(scan.devices, has_logical_core_choice)) view.lnc = value_of(scan.lnc);
  for (std::size_t i = 0; i < scan.devices.size(); ++i) {
    const bool vanished = scan.devices[i].presence == model::Presence::vanished;
    if (!scan.devices[i].node_present && !vanished) continue;
    DeviceView& device = view.devices.emplace_back(device_view(scan.devices[i], request));
    if (i < request.core_ids.size() && !request.core_ids[i].empty()) device.core_ids = request.core_ids[i];
    if (request.health == HealthShown::yes) device.health = scan.devices[i].health;
    if (i < request.efas.size()) device.efas = request.efas[i];
    if (i < request.pods.size()) device.pods = request.pods[i];
  }
  if (view.devices.size() < scan.devices.size()) number_from_zero(view.devices);
  return view;
}

std::string device_json(const NodeView& view) {
  Json list = Json::array();
  for (const DeviceView& device : view.devices) list.push_back(device_object(view, device));
  return list.dump(4, ' ', false, Json::error_handler_t::replace);
}

}  // namespace neuron::render
