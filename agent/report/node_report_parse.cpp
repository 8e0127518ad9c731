#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "agent/base/parse.h"
#include "agent/report/document_fields.h"
#include "agent/report/node_report.h"

namespace neuron::report {
namespace {

using nlohmann::json;

// Bounds: what the agent reads of a machine, or more.
constexpr int kMostIndex = 9999;  // of a device, a core, a NUMA node
constexpr std::size_t kMostDevices = 64;
constexpr int kMostCores = 32;  // of a device
constexpr std::size_t kMostEfas = 256;
constexpr std::size_t kMostProcesses = 4096;
constexpr std::size_t kMostPods = 4096;
constexpr std::size_t kMostProblems = 256;
constexpr std::size_t kMostNames = 1024;  // in one list

model::Health read_health(const Fields& parent, const char* key) {
  model::Health health;
  const auto fields = parent.object(key);
  if (!fields) return health;
  const auto state = fields->text("state");
  using State = model::HealthState;
  bool known = false;
  for (const State one : {State::healthy, State::degraded, State::unhealthy, State::unknown}) {
    if (state != model::to_string(one)) continue;
    health.state = one;
    known = true;
  }
  if (!known) fields->wrong("state", "a state of health");
  health.reason = fields->text("reason").value_or("");
  health.sentence = fields->text("sentence").value_or("");
  health.action = fields->text("action").value_or("");
  return health;
}

// The document has no key for it.
model::Presence presence_of(const model::Health& health) {
  if (health.reason == model::reason::kDeviceVanished || health.reason == model::reason::kEfaVanished) {
    return model::Presence::vanished;
  }
  if (health.reason == model::reason::kUnread) return model::Presence::unread;
  return health.reason == model::reason::kNotAnswering ? model::Presence::not_answering : model::Presence::present;
}

std::vector<model::ReadProblem> read_problems(const Fields& parent) {
  std::vector<model::ReadProblem> problems;
  for (std::string& sentence : parent.texts("problems", kMostProblems).value_or(std::vector<std::string>{})) {
    problems.push_back({model::ProblemKind::file, "", std::move(sentence)});
  }
  return problems;
}

std::optional<model::Bdf> read_bdf(const Fields& fields, const char* key) {
  const auto text = fields.text(key);
  const auto bdf = text ? model::parse_bdf(*text) : std::nullopt;
  if (text && !bdf) fields.wrong(key, "a PCI address");
  return bdf;
}

void read_signals(const Fields& device, model::DeviceSignals& signals) {
  const auto fields = device.object("signals");
  if (!fields) return;
  for (const DeviceCounter& counter : kDeviceCounters) signals.*counter.field = fields->count(counter.name);
  signals.unhealthy_components = fields->texts("unhealthy_components", kMostNames);
  signals.unreachable = fields->flag("unreachable");
  signals.reset_state = fields->number("reset_state", -kMostIndex, kMostIndex);
}

// Of a core only the state of its health is in the document; where it is the device's, so is the reason.
void read_cores(const Fields& parent, model::NeuronDevice& device) {
  int last = -1;
  for (const Fields& fields : parent.objects("physical_cores", kMostCores)) {
    model::CoreSignals& core = device.cores.emplace_back();
    const auto index = fields.number("physical_index", 0, kMostCores - 1);
    if (index.value_or(-1) <= last) return fields.wrong("physical_index", "above the one before");
    core.physical_index = last = *index;
    for (const CoreCounter& counter : kCoreCounters) core.*counter.field = fields.count(counter.name);
    const auto state = fields.text("health");
    if (!state) continue;
    device.core_health.resize(static_cast<std::size_t>(*index) + 1);
    model::Health& health = device.core_health.back();
    for (const auto one : {model::HealthState::healthy, model::HealthState::degraded, model::HealthState::unhealthy}) {
      if (*state == model::to_string(one)) health.state = one;
    }
    if (*state != model::to_string(health.state)) fields.wrong("health", "a state of health");
    if (health.state == device.health.state) health = device.health;
  }
}

void read_processes(const Fields& parent, model::NeuronDevice& device, NodeReport& report) {
  constexpr int kMostPid = 1 << 30;
  for (const Fields& fields : parent.objects("processes", kMostProcesses)) {
    model::Process& process =
        device.processes ? device.processes->emplace_back() : device.processes.emplace().emplace_back();
    const auto pid = fields.number("pid", -kMostPid, kMostPid);
    if (!pid) return fields.wrong("pid", "a number");
    process.pid = *pid;
    if (auto command = fields.text("command")) report.commands[*pid] = *std::move(command);
    if (const auto cores = fields.numbers("physical_cores", 8, 0, 7)) {
      process.core_mask.emplace();
      for (const int core : *cores) *process.core_mask |= static_cast<std::uint8_t>(1U << static_cast<unsigned>(core));
    }
    process.host_memory_bytes = fields.count("host_memory_bytes");
    process.device_memory_bytes = fields.count("device_memory_bytes");
  }
}

// Positions of the interfaces with these names, or addresses where they have no name.
std::vector<int> read_near_efas(const Fields& device, const std::vector<model::EfaInterface>& efas) {
  constexpr const char* kKey = "nearest_efa_interfaces";
  std::vector<int> positions;
  for (const std::string& name : device.texts(kKey, kMostEfas).value_or(std::vector<std::string>{})) {
    const auto found = std::ranges::find_if(efas, [&](const model::EfaInterface& efa) {
      return (efa.name.empty() ? model::to_string(efa.bdf) : efa.name) == name;
    });
    if (found == efas.end()) device.wrong(kKey, "a list of names in efa_interfaces");
    if (found != efas.end()) positions.push_back(static_cast<int>(found - efas.begin()));
  }
  return positions;
}

void read_device(const Fields& fields, NodeReport& report) {
  const int last = report.host.devices.empty() ? -1 : report.host.devices.back().index;
  model::NeuronDevice& device = report.host.devices.emplace_back();
  const auto index = fields.number("index", 0, static_cast<int>(kMostDevices) - 1);
  if (index.value_or(-1) <= last) return fields.wrong("index", "above the one before");
  device.index = *index;
  const auto family = fields.text("family");
  if (family) device.family = model::parse_family(*family);
  if (family && !device.family) fields.wrong("family", "a device family");
  device.arch = fields.text("arch").value_or("");
  device.serial = fields.text("serial");
  device.node_present = fields.flag("device_node").value_or(false);
  device.bdf = fields.sourced("bdf", [](const Fields& one) { return read_bdf(one, "value"); });
  device.numa_node = fields.sourced("numa_node", [](const Fields& one) { return one.number("value", -1, kMostIndex); });
  device.cpus = fields.sourced("cpus", [](const Fields& one) { return one.cpus("value"); });
  device.neighbours = fields.sourced(
      "connected_to", [](const Fields& one) { return one.numbers("value", kMostDevices, 0, kMostIndex); });
  device.memory_bytes = fields.count("memory_bytes");
  device.physical_cores =
      fields.sourced("physical_core_count", [](const Fields& one) { return one.number("value", 0, kMostCores); });
  device.logical_to_physical = fields.numbers("logical_to_physical", kMostCores, 0, kMostCores - 1);
  device.health = read_health(fields, "health");
  device.presence = presence_of(device.health);
  read_signals(fields, device.signals);
  read_cores(fields, device);
  if (fields.has("processes")) device.processes.emplace();
  read_processes(fields, device, report);
  device.problems = read_problems(fields);
  report.core_ids.push_back(fields.ascending("core_ids", kMostCores, kMostIndex).value_or(std::vector<int>{}));
  report.near_efas.push_back(read_near_efas(fields, report.host.efas));
}

model::EfaInterface read_efa(const Fields& fields) {
  model::EfaInterface efa;
  efa.name = fields.text("name").value_or("");
  const auto bdf = read_bdf(fields, "bdf");
  if (!bdf) fields.wrong("bdf", "a PCI address");
  efa.bdf = bdf.value_or(model::Bdf{});
  const auto id = fields.text("pci_device_id");
  const auto number = id ? parse_hex(*id) : std::nullopt;
  if (id && number.value_or(UINT32_MAX) > UINT16_MAX) fields.wrong("pci_device_id", "a PCI id");
  efa.pci_device_id = static_cast<std::uint16_t>(number.value_or(0));
  efa.driver_bound = fields.flag("driver_bound").value_or(false);
  efa.uverbs = fields.text("verbs_device");
  efa.node_present = fields.flag("device_node").value_or(false);
  efa.numa_node = fields.number("numa_node", -1, kMostIndex);
  efa.cpus = fields.cpus("cpus");
  efa.p2p = fields.text("peer_memory");
  efa.switch_key = fields.text("pci_parent").value_or("");
  efa.health = read_health(fields, "health");
  efa.presence = presence_of(efa.health);
  efa.problems = read_problems(fields);
  return efa;
}

PodUse read_pod(const Fields& fields) {
  constexpr std::size_t kMostHeld = kMostDevices * kMostCores;
  PodUse use;
  use.pod_namespace = fields.text("namespace").value_or("");
  use.pod = fields.text("pod").value_or("");
  use.container = fields.text("container").value_or("");
  use.claim = fields.text("claim").value_or("");
  const auto devices = fields.ascending("devices", kMostDevices, kMostIndex).value_or(std::vector<int>{});
  use.devices.insert(devices.begin(), devices.end());
  const auto cores = fields.ascending("core_ids", kMostHeld, kMostIndex).value_or(std::vector<int>{});
  use.cores.insert(cores.begin(), cores.end());
  const auto efas = fields.texts("efa_interfaces", kMostEfas).value_or(std::vector<std::string>{});
  use.efas.insert(efas.begin(), efas.end());
  return use;
}

void read_host(const Fields& document, NodeReport& report) {
  if (const auto fields = document.object("host")) {
    report.host.instance_type = fields->text("instance_type").value_or("");
    report.host.instance_id = fields->text("instance_id").value_or("");
    report.expected_devices = fields->number("expected_devices", 0, kMostIndex);
    report.missing_devices =
        fields->ascending("missing_devices", kMostDevices, kMostIndex).value_or(std::vector<int>{});
    report.missing_health = read_health(*fields, "missing_devices_health");
    report.host.kernel_log.node_health = read_health(*fields, "health");
    report.expected_efas = fields->number("expected_efa_interfaces", 0, kMostIndex);
    report.host.neuron_pci_functions = fields->number("neuron_pci_functions", 0, kMostIndex).value_or(0);
  }
  if (const auto fields = document.object("driver")) {
    report.host.driver_version = fields->text("version").value_or("");
    report.host.efa_driver_version = fields->text("efa_version").value_or("");
    const auto layout = fields->text("layout");
    using Layout = model::DriverLayout;
    for (const Layout one :
         {Layout::none, Layout::bare, Layout::stats, Layout::health_v1, Layout::health_v2, Layout::unknown}) {
      if (layout == model::to_string(one)) report.host.layout = one;
    }
    if (layout && *layout != model::to_string(report.host.layout)) fields->wrong("layout", "a layout of the driver");
  }
  report.host.lnc =
      document.sourced("logical_neuroncore_config", [](const Fields& one) { return one.number("value", 1, 2); });
  report.host.problems = read_problems(document);
}

Result<void> check_format(const json& document) {
  const auto found = document.find("format");
  if (found == document.end() || !found->is_string()) {
    return fail(ErrorCode::data_corrupt, "the node's document has no format; this program reads neuron-ls/1");
  }
  const auto& format = found->get_ref<const std::string&>();
  if (format == kFormat) return {};
  return fail(ErrorCode::data_corrupt,
              "the node's document has the format \"" + printable(format) + "\"; this program reads " + kFormat);
}

}  // namespace

Result<NodeReport> parse_node_report(std::string_view text) {
  if (text.size() > kMostDocumentBytes) {
    return fail(ErrorCode::data_corrupt,
                "the node's document is longer than " + std::to_string(kMostDocumentBytes) + " bytes");
  }
  const json document = json::parse(text, nullptr, false);
  if (!document.is_object()) return fail(ErrorCode::data_corrupt, "the node's document is not a JSON object");
  TRY(check_format(document));
  FirstProblem problem;
  const Fields fields(document, "", problem);
  NodeReport report;
  read_host(fields, report);
  for (const Fields& one : fields.objects("efa_interfaces", kMostEfas)) report.host.efas.push_back(read_efa(one));
  for (const Fields& one : fields.objects("devices", kMostDevices)) {
    read_device(one, report);
    if (problem.error) break;
  }
  if (fields.has("pods")) report.pods.emplace();
  for (const Fields& one : fields.objects("pods", kMostPods)) report.pods->push_back(read_pod(one));
  if (problem.error) return fail(std::move(*problem.error).with_context("the node's document"));
  add_picture(report);
  return report;
}

}  // namespace neuron::report
