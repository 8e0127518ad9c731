#include <algorithm>

#include "agent/base/parse.h"
#include "tools/render/node_report.h"
#include "tools/render/text.h"

namespace neuron::render {
namespace {

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
