#include "agent/status/status_report.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <utility>

#include "agent/base/parse.h"
#include "agent/core/catalogue.h"
#include "agent/core/logical_cores.h"
#include "agent/health/reasons.h"

namespace neuron::status {
namespace {

using model::HealthState;
using Labels = std::map<std::string, std::string>;

constexpr std::size_t kMaxMessage = 1024;

bool is_unhealthy(const model::NeuronDevice& device) {
  return device.health.state == HealthState::unhealthy;
}

// By the table of reasons: only a replacement of the instance repairs the device.
bool wants_another_instance(const model::Health& health) {
  const auto reasons = health::all_reasons();
  return std::ranges::any_of(reasons, [&](const health::Reason& reason) {
    return reason.code == health.reason && reason.state == health.state && reason.action == health::reasons::kReplace;
  });
}

std::string name_of(const model::NeuronDevice& device) {
  return "neuron" + std::to_string(device.index);
}

// ---- Labels

void put(Labels& labels, std::string key, const std::string& text) {
  if (std::string value = label_value(text); !value.empty()) labels.emplace(std::move(key), std::move(value));
}
void put_own(Labels& labels, std::string_view name, const std::string& text) {
  put(labels, std::string(kOwnPrefix).append(name), text);
}

// Of the devices that are present. nullopt: unknown for one of them.
std::optional<int> logical_cores(const model::HostScan& host) {
  int cores = 0;
  for (const model::NeuronDevice& device : host.devices) {
    if (device.presence == model::Presence::vanished) continue;
    const auto of_device = core::logical_cores_of(device, host);
    if (!of_device) return std::nullopt;
    cores += *of_device;
  }
  return cores;
}

// AWS's own labels (docs/reference/kubernetes-stack.md). There is none for a size that the driver does not name.
void add_ultraserver(Labels& labels, const model::UltraServer& ultraserver) {
  const std::string prefix(kUltraServerPrefix);
  std::string modes;
  for (const int mode : ultraserver.modes) modes += (modes.empty() ? "" : "_") + std::to_string(mode);
  if (!ultraserver.busy) put(labels, prefix + "mode", modes);
  for (const auto& member : ultraserver.memberships) {
    if (member.nodes == 0) continue;
    const std::string size = std::to_string(member.nodes);
    put(labels, prefix + "server-id-" + size, member.server_id);
    put(labels, prefix + "node-id-" + size, std::to_string(member.node_id));
  }
}

template <typename Unit>
int count_there(const std::vector<Unit>& units) {
  return static_cast<int>(
      std::ranges::count_if(units, [](const Unit& unit) { return unit.presence != model::Presence::vanished; }));
}

template <typename Unit>
HealthState worst(const std::vector<Unit>& units, HealthState so_far) {
  for (const Unit& unit : units) {
    if (badness(unit.health.state) > badness(so_far)) so_far = unit.health.state;
  }
  return so_far;
}

Labels labels_of(const model::HostScan& host) {
  Labels labels;
  const int devices = count_there(host.devices);
  const int efas = count_there(host.efas);
  if (host.devices.empty() && host.efas.empty()) return labels;
  const std::size_t dot = host.instance_type.find('.');
  if (dot != std::string::npos) put_own(labels, "family", host.instance_type.substr(0, dot));
  if (devices > 0) {
    labels.emplace(kPresentLabel, "true");
    put_own(labels, "devices", std::to_string(devices));
    if (const auto cores = logical_cores(host)) put_own(labels, "cores", std::to_string(*cores));
    if (host.lnc) put_own(labels, "lnc", std::to_string(host.lnc->value));
    put_own(labels, "driver", host.driver_version);
  }
  if (efas > 0) put_own(labels, "efas", std::to_string(efas));
  // The log can only worsen the state: where it is not read, its state is unknown and counts as healthy.
  const HealthState logged = host.kernel_log.node_health.state;
  const HealthState node = badness(logged) > badness(HealthState::unknown) ? logged : HealthState::healthy;
  const HealthState state = worst(host.efas, worst(host.devices, node));
  put_own(labels, "health", std::string(to_string(state)));
  if (host.ultraserver) add_ultraserver(labels, *host.ultraserver);
  return labels;
}

// ---- Conditions

std::string list_of(const model::HostScan& host, bool (*is_meant)(const model::NeuronDevice&)) {
  std::string names;
  for (const model::NeuronDevice& device : host.devices) {
    if (is_meant(device)) names += (names.empty() ? "" : ", ") + name_of(device);
  }
  return names;
}

std::string unhealthy_words(const model::HostScan& host) {
  const auto unhealthy = std::ranges::count_if(host.devices, is_unhealthy);
  return std::to_string(unhealthy) + " of " + std::to_string(host.devices.size()) + " devices " +
         (unhealthy == 1 ? "is" : "are") + " unhealthy: " + list_of(host, is_unhealthy);
}

std::string words_of(const model::NeuronDevice& device) {
  return status::words_of(name_of(device), device.health);
}

// NeuronHealth by AWS's rules: True is a problem.
Condition neuron_health(std::string_view status, std::string reason, const std::string& message) {
  return {std::string(kNeuronHealth), std::string(status), std::move(reason), printable(message, kMaxMessage)};
}

// Devices that the node should have and that the driver does not show.
std::optional<Condition> without_devices(const model::HostScan& host) {
  const core::InstanceType* type = core::find_instance_type(host.instance_type);
  const int expected = type != nullptr ? type->device_count : host.neuron_pci_functions;
  if (expected == 0) return std::nullopt;
  if (is_unread_list(host, model::ScanPart::Kind::devices)) {
    return neuron_health("Unknown", "Unread",
                         "the list of Neuron devices cannot be read, and was not read since the agent started; what to "
                         "do: run neuron-agent check on the node");
  }
  return neuron_health("Unknown", "NoNeuronDevice",
                       "the driver shows none of " + std::to_string(expected) +
                           " Neuron devices; what to do: run neuron-agent check on the node");
}

Condition below_threshold(const model::HostScan& host, int threshold) {
  const auto is_not_healthy = [](const model::NeuronDevice& device) {
    return device.health.state != HealthState::healthy;
  };
  const auto is_unknown = [](const model::NeuronDevice& device) { return device.health.state == HealthState::unknown; };
  const auto& devices = host.devices;
  if (std::ranges::none_of(devices, is_not_healthy)) {
    return neuron_health("False", "NeuronHasNoError", "Neuron has no error");  // AWS's words
  }
  if (std::ranges::all_of(devices, is_unknown)) {
    const model::NeuronDevice& first = devices.front();
    const bool assessed = is_assessed(first.health);
    return neuron_health("Unknown", assessed ? camel_case(first.health.reason) : "NotAssessed", words_of(first));
  }
  const auto first = std::ranges::find_if(devices, is_unhealthy);
  if (first != devices.end()) {
    return neuron_health("False", "BelowThreshold",
                         unhealthy_words(host) + "; the node counts as unhealthy from " + std::to_string(threshold) +
                             " on. " + words_of(*first));
  }
  return neuron_health("False", "SomeDevicesNotHealthy",
                       "no device is unhealthy, but some are not healthy: " + list_of(host, is_not_healthy) + ". " +
                           words_of(*std::ranges::find_if(devices, is_not_healthy)));
}

std::optional<Condition> health_condition(const model::HostScan& host, const ReportSettings& settings) {
  if (host.devices.empty()) return without_devices(host);
  const int devices = static_cast<int>(host.devices.size());
  const int threshold = settings.unhealthy_devices > 0 ? settings.unhealthy_devices : (devices + 1) / 2;
  const auto unhealthy = std::ranges::count_if(host.devices, is_unhealthy);
  auto worst = std::ranges::find_if(host.devices, [](const model::NeuronDevice& device) {
    return is_unhealthy(device) && wants_another_instance(device.health);
  });
  const model::Health& node = host.kernel_log.node_health;
  if (worst == host.devices.end() && node.state == HealthState::unhealthy) {
    return neuron_health("True", camel_case(node.reason),
                         status::words_of("node", node) + (unhealthy > 0 ? ". " + unhealthy_words(host) : ""));
  }
  if (worst == host.devices.end()) {
    if (unhealthy < threshold) return below_threshold(host, threshold);
    worst = std::ranges::find_if(host.devices, is_unhealthy);
  }
  return neuron_health("True", camel_case(worst->health.reason), words_of(*worst) + ". " + unhealthy_words(host));
}

// The condition of AWS's node monitoring agent, by which Karpenter and EKS repair; True is healthy, with that agent's
// reason and message.
Condition hardware_ready(const Condition& health) {
  Condition ready = health;
  ready.type = kHardwareReady;
  if (health.status == "Unknown") return ready;
  ready.status = health.status == "True" ? "False" : "True";
  if (ready.status == "False") {
    ready.reason = hardware_reason(health.reason);
    return ready;
  }
  ready.reason = "NeuronAcceleratedHardwareIsReady";
  ready.message = "Monitoring for the Neuron AcceleratedHardware system is active";
  return ready;
}

}  // namespace

std::string words_of(const std::string& unit, const model::Health& health) {
  const bool is_named = health.sentence.find(unit) != std::string::npos;
  std::string words = is_named ? health.sentence : unit + ": " + health.sentence;
  if (!health.action.empty()) words += "; what to do: " + health.action;
  return words;
}

std::string camel_case(std::string_view code) {
  std::string name;
  bool begins = true;
  for (const char letter : code) {
    if (letter != '_') name += static_cast<char>(begins ? std::toupper(static_cast<unsigned char>(letter)) : letter);
    begins = letter == '_';
  }
  return name;
}

std::string label_value(std::string_view text) {
  constexpr std::size_t kMaxBytes = 63;
  const auto is_end = [](char letter) { return std::isalnum(static_cast<unsigned char>(letter)) != 0; };
  std::string value(text.substr(0, kMaxBytes));
  for (char& letter : value) {
    const bool is_ascii = static_cast<unsigned char>(letter) < 0x80;
    if (!is_ascii || (!is_end(letter) && letter != '-' && letter != '.')) letter = '_';
  }
  while (!value.empty() && !is_end(value.back())) value.pop_back();
  const auto begin = std::ranges::find_if(value, is_end);
  value.erase(value.begin(), begin);
  return value;
}

std::string hardware_reason(const std::string& reason) {
  namespace code = model::reason;
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kAws = {{
      {code::kSramEccUncorrected, "NeuronSRAMUncorrectableError"},
      {code::kMemEccUncorrected, "NeuronHBMUncorrectableError"},
      {code::kHwHbmUeError, "NeuronHBMUncorrectableError"},
      {code::kHwNcUeError, "NeuronNCUncorrectableError"},
      {code::kHwDmaAbortError, "NeuronDMAError"},
  }};
  for (const auto& [ours, theirs] : kAws) {
    if (camel_case(ours) == reason) return std::string(theirs);
  }
  return reason;
}

StatusReport report(const model::HostScan& host, const ReportSettings& settings) {
  StatusReport report;
  report.labels = labels_of(host);
  report.keeps_ultraserver = host.ultraserver_is_unread;
  const auto health = health_condition(host, settings);
  if (health) report.conditions.push_back(*health);
  if (health && settings.hardware_ready) report.conditions.push_back(hardware_ready(*health));
  report.problem = worst(host.devices, host.kernel_log.node_health.state) == HealthState::unhealthy;
  return report;
}

}  // namespace neuron::status
