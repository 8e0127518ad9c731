#include <nlohmann/json.hpp>

#include "agent/base/parse.h"
#include "agent/report/document_fields.h"
#include "agent/report/node_report.h"

namespace neuron::report {
namespace {

using Json = nlohmann::ordered_json;  // keys in the order of insertion
using model::CoreSignals;
using model::DeviceSignals;

// An object with room for so many keys: one that grows copies what it holds, since its keys are const.
Json make_object(std::size_t keys) {
  Json object = Json::object();
  object.get_ref<Json::object_t&>().reserve(keys);
  return object;
}

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json text_or_null(std::string_view text) {
  return text.empty() ? Json(nullptr) : Json(std::string(text));
}

Json sourced(Json value, model::Origin origin) {
  Json object = make_object(2);
  object["value"] = std::move(value);
  object["origin"] = origin == model::Origin::live ? "live" : "assumed";
  return object;
}

template <typename T>
Json sourced_or_null(const model::Maybe<T>& maybe) {
  return maybe ? sourced(Json(maybe->value), maybe->origin) : Json(nullptr);
}

Json health_json(const model::Health& health) {
  if (!is_assessed(health)) return nullptr;
  Json object = make_object(4);
  object["state"] = std::string(model::to_string(health.state));
  object["reason"] = text_or_null(health.reason);
  object["sentence"] = text_or_null(health.sentence);
  object["action"] = text_or_null(health.action);
  return object;
}

Json signals_json(const DeviceSignals& signals) {
  Json object = make_object(std::size(kDeviceCounters) + 3);
  for (const DeviceCounter& counter : kDeviceCounters) object[counter.name] = or_null(signals.*counter.field);
  object["unhealthy_components"] = or_null(signals.unhealthy_components);
  object["unreachable"] = or_null(signals.unreachable);
  object["reset_state"] = or_null(signals.reset_state);
  return object;
}

// The state of one physical core; null when it was not assessed.
Json core_state_json(const model::NeuronDevice& device, int core) {
  if (core < 0 || static_cast<std::size_t>(core) >= device.core_health.size()) return nullptr;
  return std::string(model::to_string(device.core_health[static_cast<std::size_t>(core)].state));
}

Json physical_cores_json(const model::NeuronDevice& device) {
  Json list = Json::array();
  for (const CoreSignals& core : device.cores) {
    Json object = make_object(std::size(kCoreCounters) + 2);
    object["physical_index"] = core.physical_index;
    object["health"] = core_state_json(device, core.physical_index);
    for (const CoreCounter& counter : kCoreCounters) object[counter.name] = or_null(core.*counter.field);
    list.push_back(std::move(object));
  }
  return list;
}

Json cores_of(const model::Process& process) {
  if (!process.core_mask) return nullptr;
  Json cores = Json::array();
  for (int core = 0; core < 8; ++core) {
    if ((*process.core_mask >> static_cast<unsigned>(core) & 1U) != 0) cores.push_back(core);
  }
  return cores;
}

Json processes_json(const NodeReport& report, const model::NeuronDevice& device) {
  if (!device.processes) return nullptr;
  Json list = Json::array();
  for (const model::Process& process : *device.processes) {
    Json object = make_object(5);
    const auto command = report.commands.find(process.pid);
    object["pid"] = process.pid;
    object["command"] = command == report.commands.end() ? Json(nullptr) : Json(command->second);
    object["physical_cores"] = cores_of(process);
    object["host_memory_bytes"] = or_null(process.host_memory_bytes);
    object["device_memory_bytes"] = or_null(process.device_memory_bytes);
    list.push_back(std::move(object));
  }
  return list;
}

Json core_ids_json(const NodeReport& report, std::size_t position) {
  const bool known = position < report.core_ids.size() && !report.core_ids[position].empty();
  return known ? Json(report.core_ids[position]) : Json(nullptr);
}

Json device_object(const NodeReport& report, std::size_t position) {
  const model::NeuronDevice& device = report.host.devices[position];
  Json object = make_object(20);
  object["index"] = device.index;
  object["family"] = device.family ? Json(std::string(model::to_string(*device.family))) : Json(nullptr);
  object["arch"] = text_or_null(device.arch);
  object["serial"] = or_null(device.serial);
  object["device_node"] = device.node_present;
  object["bdf"] = device.bdf ? sourced(model::to_string(device.bdf->value), device.bdf->origin) : Json(nullptr);
  object["numa_node"] = sourced_or_null(device.numa_node);
  object["cpus"] = device.cpus ? sourced(format_int_list(device.cpus->value), device.cpus->origin) : Json(nullptr);
  object["connected_to"] = sourced_or_null(device.neighbours);
  object["memory_bytes"] = or_null(device.memory_bytes);
  object["physical_core_count"] = sourced_or_null(device.physical_cores);
  object["core_ids"] = core_ids_json(report, position);
  object["logical_to_physical"] = or_null(device.logical_to_physical);
  object["health"] = health_json(device.health);
  object["signals"] = signals_json(device.signals);
  object["physical_cores"] = physical_cores_json(device);
  object["processes"] = processes_json(report, device);
  object["nearest_efa_interfaces"] = near_efa_names(report, position);
  object["pods"] = or_null(pods_on_device(report, device.index));
  object["problems"] = sentences(device.problems);
  return object;
}

std::string hex_id(std::uint16_t value) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text = "0x";
  for (unsigned shift = 16; shift > 0; shift -= 4) text += kDigits[value >> (shift - 4) & 0xfU];
  return text;
}

Json efa_object(const NodeReport& report, std::size_t position) {
  const model::EfaInterface& efa = report.host.efas[position];
  Json object = make_object(14);
  object["name"] = text_or_null(efa.name);
  object["bdf"] = model::to_string(efa.bdf);
  object["pci_device_id"] = hex_id(efa.pci_device_id);
  object["driver_bound"] = efa.driver_bound;
  object["verbs_device"] = or_null(efa.uverbs);
  object["device_node"] = efa.node_present;
  object["numa_node"] = or_null(efa.numa_node);
  object["cpus"] = efa.cpus ? Json(format_int_list(*efa.cpus)) : Json(nullptr);
  object["peer_memory"] = or_null(efa.p2p);
  object["pci_parent"] = text_or_null(efa.switch_key);
  object["health"] = health_json(efa.health);
  object["nearest_devices"] = near_devices(report, position);
  object["pods"] = efa.name.empty() ? Json(nullptr) : or_null(pods_on_efa(report, efa.name));
  object["problems"] = sentences(efa.problems);
  return object;
}

Json pods_json(const std::optional<std::vector<PodUse>>& pods) {
  if (!pods) return nullptr;
  Json list = Json::array();
  for (const PodUse& use : *pods) {
    Json object = make_object(8);
    object["namespace"] = text_or_null(use.pod_namespace);
    object["pod"] = text_or_null(use.pod);
    object["container"] = text_or_null(use.container);
    object["claim"] = text_or_null(use.claim);
    object["claim_namespace"] = text_or_null(use.claim.empty() ? "" : use.pod_namespace);
    object["devices"] = use.devices;
    object["core_ids"] = use.cores;
    object["efa_interfaces"] = use.efas;
    list.push_back(std::move(object));
  }
  return list;
}

Json host_json(const NodeReport& report) {
  Json object = make_object(8);
  object["instance_type"] = text_or_null(report.host.instance_type);
  object["instance_id"] = text_or_null(report.host.instance_id);
  object["expected_devices"] = or_null(report.expected_devices);
  object["missing_devices"] = report.missing_devices;
  if (!report.missing_devices.empty()) object["missing_devices_health"] = health_json(report.missing_health);
  const model::Health& node = report.host.kernel_log.node_health;
  if (is_assessed(node) && node.state != model::HealthState::healthy) object["health"] = health_json(node);
  object["expected_efa_interfaces"] = or_null(report.expected_efas);
  object["neuron_pci_functions"] = report.host.neuron_pci_functions;
  return object;
}

}  // namespace

std::string node_report_json(const NodeReport& report, JsonLayout layout) {
  Json document = make_object(8);
  document["format"] = kFormat;
  document["host"] = host_json(report);
  document["driver"]["version"] = text_or_null(report.host.driver_version);
  document["driver"]["layout"] = std::string(model::to_string(report.host.layout));
  document["driver"]["efa_version"] = text_or_null(report.host.efa_driver_version);
  document["logical_neuroncore_config"] = sourced_or_null(report.host.lnc);
  document["devices"] = Json::array();
  for (std::size_t i = 0; i < report.host.devices.size(); ++i) {
    document["devices"].push_back(device_object(report, i));
  }
  document["efa_interfaces"] = Json::array();
  for (std::size_t i = 0; i < report.host.efas.size(); ++i) {
    document["efa_interfaces"].push_back(efa_object(report, i));
  }
  document["pods"] = pods_json(report.pods);
  document["problems"] = sentences(report.host.problems);
  return document.dump(layout == JsonLayout::indented ? 2 : -1, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace neuron::report
