#include "tools/render/node_report.h"

#include <algorithm>
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

using model::Health;
using model::HealthState;

// A verdict in two lines: the observation, then state, reason and advice.
std::string verdict_text(const std::string& seen, const Health& health, ColourDepth colour) {
  const Role role = health.state == HealthState::unhealthy ? Role::bad : Role::warning;
  std::string text =
      "  " + seen + "\n    " + painted(colour, role, model::to_string(health.state)) + ", " + health.reason;
  if (!health.action.empty()) text += ": " + health.action;
  return text + '\n';
}
std::string verdict_text(const Health& health, ColourDepth colour) {
  return verdict_text(health.sentence.empty() ? health.reason : health.sentence, health, colour);
}

std::string missing_devices(const NodeReport& report, ColourDepth colour) {
  if (report.missing_devices.empty() || !report.expected_devices) return "";
  return verdict_text(report.host.instance_type + " has " +
                          counted(static_cast<std::size_t>(*report.expected_devices), "device") +
                          "; missing: " + format_int_list(report.missing_devices),
                      report.missing_health, colour);
}

std::string missing_efas(const NodeReport& report) {
  if (!report.found_efas || *report.found_efas >= report.expected_efas.value_or(0)) return "";
  return "  " + report.host.instance_type + " can have " +
         counted(static_cast<std::size_t>(*report.expected_efas), "EFA interface") + "; this instance has " +
         std::to_string(*report.found_efas) + '\n';
}

// A container is shown every device in sysfs, but given nodes of its own only.
std::string without_node(const NodeReport& report) {
  if (!report.own_dev) return "";
  std::vector<int> indices;
  for (const model::NeuronDevice& device : report.host.devices) {
    const bool vanished = device.presence == model::Presence::vanished;
    if (!device.node_present && !vanished) indices.push_back(device.index);
  }
  if (indices.empty()) return "";
  return "No device node here, which is normal in a container: " +
         std::string(indices.size() == 1 ? "device " : "devices ") + format_int_list(indices) + " of the host.\n";
}

// A cause common to all units has the same verdict on each, which is printed once.
template <typename Unit>
std::string verdicts(const std::vector<Unit>& units, ColourDepth colour) {
  std::string text;
  const Health* last = nullptr;
  for (const Unit& unit : units) {
    const Health& health = unit.health;
    if (!is_assessed(health)) continue;
    const bool printed = last != nullptr && !health.sentence.empty() && *last == health;
    if (health.state != HealthState::healthy && !printed) text += verdict_text(health, colour);
    last = &health;
  }
  return text;
}

// Beside the verdict on a device: its cores with other faults, and those that are not affected.
std::string core_notes(const NodeReport& report, ColourDepth colour) {
  std::string text;
  for (const model::NeuronDevice& device : report.host.devices) {
    if (device.health.state != HealthState::unhealthy) continue;
    std::vector<int> unaffected;
    for (std::size_t core = 0; core < device.core_health.size(); ++core) {
      const Health& health = device.core_health[core];
      if (health.state != HealthState::unhealthy) {
        unaffected.push_back(static_cast<int>(core));
      } else if (health != device.health) {
        text += verdict_text(health, colour);
      }
    }
    if (unaffected.empty()) continue;
    text += "  neuron" + std::to_string(device.index) + ": physical " + (unaffected.size() == 1 ? "core " : "cores ") +
            format_int_list(unaffected) + (unaffected.size() == 1 ? " is" : " are") + " not affected\n";
  }
  return text;
}

// A neighbour that is among the missing devices is already listed as missing.
bool is_orphan(const model::ReadProblem& problem, const NodeReport& report) {
  if (problem.kind != model::ProblemKind::absent_neighbours) return false;
  const auto named = parse_int_list(problem.detail, 9999);
  const auto& missing = report.missing_devices;
  return named && std::ranges::all_of(*named, [&](int index) { return std::ranges::binary_search(missing, index); });
}

std::string unread(const NodeReport& report) {
  const model::HostScan& host = report.host;
  std::string text;
  const auto add = [&](const std::vector<model::ReadProblem>& problems) {
    for (const model::ReadProblem& problem : problems) {
      if (!is_orphan(problem, report)) text += "  " + sentence(problem) + '\n';
    }
  };
  add(host.problems);
  for (const auto& device : host.devices) add(device.problems);
  for (const auto& efa : host.efas) add(efa.problems);
  return text;
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

std::string health_notes(const NodeReport& report, ColourDepth colour) {
  const Health& node = report.host.kernel_log.node_health;
  const bool node_has_finding = node.state != HealthState::healthy && is_assessed(node);
  const std::string findings =
      missing_devices(report, colour) + missing_efas(report) + (node_has_finding ? verdict_text(node, colour) : "") +
      verdicts(report.host.devices, colour) + core_notes(report, colour) + verdicts(report.host.efas, colour);
  const std::string gaps = unread(report);
  std::string text;
  if (findings.empty()) {
    text = counted(report.host.devices.size(), "device");
    if (!report.host.efas.empty()) text += " and " + counted(report.host.efas.size(), "EFA interface");
    text += ": all healthy.\n";
  } else {
    text = "Problems:\n" + findings;
  }
  text += without_node(report);
  return text + (gaps.empty() ? "" : "Could not be read:\n" + gaps);
}

}  // namespace neuron::render
