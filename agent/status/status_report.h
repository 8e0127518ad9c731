#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "agent/model/host_scan.h"

// Labels and conditions of a Node about its devices (docs/node-status.md). Pure.
namespace neuron::status {

inline constexpr std::string_view kOwnPrefix = "neuron-agent/";  // of labels that only the agent writes
inline constexpr std::string_view kNeuronHealth = "NeuronHealth";
inline constexpr std::string_view kHardwareReady = "AcceleratedHardwareReady";

struct ReportSettings {
  bool hardware_ready = false;  // --accelerated-hardware-ready: that condition too
  int unhealthy_devices = 0;    // --unhealthy-devices-for-node; 0: half of the node's devices, rounded up
};

// An entry of status.conditions, without its times. Passive data.
struct Condition {
  std::string type;
  std::string status;   // "True", "False" or "Unknown"
  std::string reason;   // CamelCase
  std::string message;  // printable, at most 1 KiB
  friend bool operator==(const Condition&, const Condition&) = default;
};

inline constexpr std::string_view kUltraServerPrefix = "neuron.amazonaws.com/ultraserver-";  // of AWS's labels

inline constexpr const char* kPresentLabel = "neuron.amazonaws.com/present";  // "true"; selected by AWS's Observer

// The reason in AcceleratedHardwareReady for a reason in NeuronHealth ("SramEccUncorrected"): that of AWS's node
// monitoring agent, by which EKS's repair is configured, where it has one; else the same.
[[nodiscard]] std::string hardware_reason(const std::string& reason);

// All labels and conditions that the agent should own. Passive data.
struct StatusReport {
  std::map<std::string, std::string> labels;  // key to value, each valid at the API server; an unknown value is absent
  std::vector<Condition> conditions;          // none on a node that has no Neuron devices and should have none
  // A device, or the node by its kernel log, is unhealthy: written at once. Not an interface: it is in no condition,
  // and those of all nodes of a cluster mostly fail together, for lack of a module.
  bool problem = false;
  bool keeps_ultraserver = false;  // its files are unread: its labels stay as they are
  friend bool operator==(const StatusReport&, const StatusReport&) = default;
};

// Makes the report of an assessed host (agent/health/assess.h).
[[nodiscard]] StatusReport report(const model::HostScan& host, const ReportSettings& settings);

// "neuron3: 2 uncorrected SRAM errors (…); what to do: replace the instance (…)": the sentence, with the unit's name
// before it where it does not say it, and the action.
[[nodiscard]] std::string words_of(const std::string& unit, const model::Health& health);

// "mem_ecc_uncorrected" as "MemEccUncorrected".
[[nodiscard]] std::string camel_case(std::string_view code);

// `text` as a label's value (docs: Kubernetes, "Labels and Selectors"): at most 63 letters, digits, '-', '_' and '.',
// the ends letters or digits. Others become '_'; "" when nothing is left.
[[nodiscard]] std::string label_value(std::string_view text);

}  // namespace neuron::status
