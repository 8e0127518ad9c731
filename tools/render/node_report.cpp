#include "tools/render/node_report.h"

#include <string_view>

#include "agent/base/parse.h"
#include "tools/render/text.h"

namespace neuron::render {
namespace {

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
