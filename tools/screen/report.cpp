#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/screen/panels.h"

namespace neuron::screen {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

template <typename T>
void put_if_known(Json& object, const char* key, const std::optional<T>& value) {
  if (value) object[key] = *value;
}

Json health_of(const model::Health& health) {
  return {{"state", model::to_string(health.state)},
          {"reason", health.reason},
          {"sentence", health.sentence},
          {"action", health.action}};
}

const CoreView* find_core(const ViewModel& model, int id) {
  for (const DeviceView& device : model.devices) {
    for (const CoreView& core : device.cores) {
      if (core.id == id) return &core;
    }
  }
  return nullptr;
}

Json core_counters(const ViewModel& model, const ProcessView& process) {
  Json cores = Json::object();
  for (const int id : process.cores) {
    const CoreView* core = find_core(model, id);
    if (core == nullptr || !core->percent) continue;
    Json& entry = cores[std::to_string(id)];
    entry["neuroncore_utilization"] = *core->percent;
    put_if_known(entry, "effective_flops", core->flops_per_second);
  }
  return {{"period", model.seconds}, {"neuroncores_in_use", std::move(cores)}, {"error", model.no_utilization}};
}

Json runtime_of(const ViewModel& model, const ProcessView& process) {
  Json usage = Json::object();
  put_if_known(usage, "user", process.user_percent);
  put_if_known(usage, "system", process.system_percent);
  const std::string no_cpu = process.user_percent ? "" : "unknown for this process";
  Json report;
  report["neuroncore_counters"] = core_counters(model, process);
  Json used = Json::object();
  put_if_known(used, "host", process.host_bytes);
  put_if_known(used, "neuron_device", process.device_bytes);
  const std::string no_memory = process.device_bytes ? "" : "the driver was not asked";
  report["memory_used"] = {
      {"period", model.seconds}, {"neuron_runtime_used_bytes", std::move(used)}, {"error", no_memory}};
  report["neuron_runtime_vcpu_usage"] = {
      {"period", model.seconds}, {"vcpu_usage", std::move(usage)}, {"error", no_cpu}};
  return {{"pid", process.pid},
          {"address", ""},
          {"neuron_runtime_tag", process.label},
          {"error", ""},
          {"report", std::move(report)}};
}

Json hardware_counters(const ViewModel& model) {
  Json devices = Json::array();
  for (const DeviceView& device : model.devices) {
    Json entry = {{"neuron_device_index", device.index}};
    put_if_known(entry, "mem_ecc_corrected", device.ecc.memory_corrected);
    put_if_known(entry, "mem_ecc_uncorrected", device.ecc.memory_uncorrected);
    put_if_known(entry, "sram_ecc_corrected", device.ecc.sram_corrected);
    put_if_known(entry, "sram_ecc_uncorrected", device.ecc.sram_uncorrected);
    devices.push_back(std::move(entry));
  }
  return {{"period", model.seconds}, {"neuron_devices", std::move(devices)}, {"error", model.no_devices}};
}

std::string why_no_cpu(const ViewModel& model) {
  if (model.cpu) return "";
  return model.no_rates.empty() ? "needs two readings of proc/stat" : model.no_rates;
}

Json system_data(const ViewModel& model) {
  Json system;
  system["neuron_hw_counters"] = hardware_counters(model);
  Json average = Json::object();
  if (model.cpu) {
    average = {{"user", model.cpu->user_percent},
               {"system", model.cpu->system_percent},
               {"idle", 100 - model.cpu->user_percent - model.cpu->system_percent - model.cpu->steal_percent}};
  }
  system["vcpu_usage"] = {
      {"period", model.seconds}, {"average_usage", std::move(average)}, {"error", why_no_cpu(model)}};
  Json memory = {{"period", model.seconds}};
  if (const auto& host = model.memory) {
    memory["memory_total_bytes"] = host->total_bytes;
    memory["memory_used_bytes"] = host->total_bytes - std::min(host->available_bytes, host->total_bytes);
    if (host->swap_total_bytes && host->swap_free_bytes) {
      memory["swap_total_bytes"] = *host->swap_total_bytes;
      memory["swap_used_bytes"] = *host->swap_total_bytes - std::min(*host->swap_free_bytes, *host->swap_total_bytes);
    }
  }
  memory["error"] = model.memory ? "" : "proc/meminfo cannot be read";
  system["memory_info"] = std::move(memory);
  return system;
}

Json hardware_info(const ViewModel& model) {
  Json info = {{"neuroncore_version", model.core_version}, {"neuron_device_count", model.devices.size()}};
  if (!model.devices.empty()) {
    const DeviceView& first = model.devices.front();
    put_if_known(info, "neuron_device_memory_size", first.memory_size);
    info["neuroncore_per_device_count"] = first.cores.size();
  }
  if (model.lnc > 0) info["logical_neuroncore_config"] = model.lnc;
  info["error"] = model.no_devices;
  return info;
}

Json kinds_of(const std::vector<MemoryKind>& kinds) {
  Json object = Json::object();
  for (const MemoryKind& kind : kinds) {
    std::string name;
    for (const char c : kind.name) {
      if (c != '.') name += c == ' ' ? '_' : static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    }
    object[name] = or_null(kind.bytes);
  }
  return object;
}

Json core_json(const CoreView& core) {
  return {{"core", core.id},
          {"utilization_percent", or_null(core.percent)},
          {"flops_per_second", or_null(core.flops_per_second)},
          {"device_memory_bytes", or_null(core.device_bytes)},
          {"host_memory_bytes", or_null(core.host_bytes)},
          {"device_memory_kinds", kinds_of(device_kinds({core.kinds}))}};
}

Json device_json(const DeviceView& device) {
  Json cores = Json::array();
  for (const CoreView& core : device.cores) cores.push_back(core_json(core));
  Json power = nullptr;
  if (device.power) {
    power = {{"min_percent", device.power->min_percent},
             {"max_percent", device.power->max_percent},
             {"average_percent", device.power->average_percent}};
  }
  const EccView& ecc = device.ecc;
  return {{"device", device.index},
          {"utilization_percent", or_null(device.percent)},
          {"device_memory_bytes", or_null(device.device_bytes)},
          {"device_memory_size_bytes", or_null(device.memory_size)},
          {"host_memory_bytes", or_null(device.host_bytes)},
          {"host_memory_kinds", kinds_of(host_kinds({device.host_kinds}))},
          {"power", std::move(power)},
          {"health", health_of(device.health)},
          {"ecc",
           {{"sram_corrected", or_null(ecc.sram_corrected)},
            {"sram_uncorrected", or_null(ecc.sram_uncorrected)},
            {"memory_corrected", or_null(ecc.memory_corrected)},
            {"memory_uncorrected", or_null(ecc.memory_uncorrected)},
            {"memory_repairable", or_null(ecc.memory_repairable)}}},
          {"pids", device.pids},
          {"cores", std::move(cores)}};
}

Json efa_json(const EfaView& efa) {
  return {{"name", efa.name},
          {"rx_bytes_per_second", or_null(efa.rx)},
          {"tx_bytes_per_second", or_null(efa.tx)},
          {"rdma_read_bytes_per_second", or_null(efa.rdma_read)},
          {"rdma_write_bytes_per_second", or_null(efa.rdma_write)},
          {"retransmits_per_second", or_null(efa.retransmits)},
          {"errors_per_second", or_null(efa.errors)},
          {"errors_total", or_null(efa.errors_total)},
          {"numa_node", or_null(efa.numa_node)},
          {"health", health_of(efa.health)}};
}

Json own_values(const ViewModel& model, std::int64_t time_ms) {
  Json devices = Json::array();
  for (const DeviceView& device : model.devices) devices.push_back(device_json(device));
  Json efas = Json::array();
  for (const EfaView& efa : model.efas) efas.push_back(efa_json(efa));
  Json processes = Json::array();
  for (const ProcessView& process : model.processes) {
    processes.push_back({{"pid", process.pid},
                         {"command", process.command},
                         {"devices", process.devices},
                         {"cores", process.cores_known ? Json(process.cores) : Json(nullptr)},
                         {"resident_bytes", or_null(process.resident_bytes)}});
  }
  Json pods = Json::array();
  for (const PodView& pod : model.pods) {
    pods.push_back({{"pod", pod.name},
                    {"container", pod.container},
                    {"claim", pod.claim.empty() ? Json(nullptr) : Json(pod.claim)},
                    {"claim_namespace", pod.claim_namespace.empty() ? Json(nullptr) : Json(pod.claim_namespace)},
                    {"devices", pod.devices},
                    {"cores", pod.cores},
                    {"efas", pod.efas}});
  }
  return {{"schema", kReportSchema},
          {"version", model.version},
          {"time_ms", time_ms},
          {"period", model.seconds},
          {"driver_version", model.driver_version},
          {"utilization_percent", or_null(model.mean_percent)},
          {"no_utilization", model.no_utilization},
          {"no_processes", model.no_processes},
          {"no_pods", model.no_pods},
          {"devices", std::move(devices)},
          {"efas", std::move(efas)},
          {"processes", std::move(processes)},
          {"pods", std::move(pods)},
          {"problems", model.problems}};
}

}  // namespace

std::string report_line(const ViewModel& model, std::int64_t time_ms) {
  Json runtimes = Json::array();
  for (const ProcessView& process : model.processes) runtimes.push_back(runtime_of(model, process));
  Json report;
  report["neuron_runtime_data"] = std::move(runtimes);
  report["system_data"] = system_data(model);
  report["instance_info"] = {{"instance_id", model.instance_id}, {"instance_type", model.instance_type}, {"error", ""}};
  report["neuron_hardware_info"] = hardware_info(model);
  report["neuron_top"] = own_values(model, time_ms);
  return report.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace neuron::screen
