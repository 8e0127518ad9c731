#include "tools/neuron-agent/node_status_options.h"

#include <CLI/CLI.hpp>

#include "agent/kube/api.h"

namespace neuron::agent {

void add_node_status_options(CLI::App& command, NodeStatusOptions& options) {
  constexpr int kMostDevices = 64;  // as devices are numbered
  command
      .add_option_function<std::string>(
          "--node-status", [&options](const std::string& word) { options.enabled = word == "on"; },
          "Write labels, conditions and events of this node\nto the API server: on or off")
      ->envname("NEURON_AGENT_NODE_STATUS")
      ->type_name("WORD")
      ->check(CLI::IsMember({"on", "off"}).description(""))
      ->default_str("off");
  command
      .add_flag("--accelerated-hardware-ready", options.report.hardware_ready,
                "Also write AcceleratedHardwareReady, unless\nanother writes it; with --node-status on")
      ->envname("NEURON_AGENT_ACCELERATED_HARDWARE_READY");
  command
      .add_option("--unhealthy-devices-for-node", options.report.unhealthy_devices,
                  "Number of unhealthy devices from which the node\ncounts as unhealthy (default: half of them)")
      ->envname("NEURON_AGENT_UNHEALTHY_DEVICES_FOR_NODE")
      ->type_name("N")
      ->check(CLI::Range(1, kMostDevices).description(""));
}

Result<void> check_node_status_options(const NodeStatusOptions& options, std::string_view node_name) {
  if (!options.enabled) return {};
  if (node_name.empty()) {
    return fail(ErrorCode::invalid_argument,
                "--node-status on needs --node-name (or NODE_NAME), the name of this node's object in the API server");
  }
  if (auto name = kube::check_node_name(node_name); !name) {
    return fail(std::move(name).error().with_context("--node-name"));
  }
  return {};
}

std::vector<std::string> describe_node_status(const NodeStatusOptions& options) {
  const int devices = options.report.unhealthy_devices;
  return {std::string("node-status=") + (options.enabled ? "on" : "off"),
          std::string("accelerated-hardware-ready=") + (options.report.hardware_ready ? "true" : "false"),
          "unhealthy-devices-for-node=" + (devices > 0 ? std::to_string(devices) : "half")};
}

}  // namespace neuron::agent
