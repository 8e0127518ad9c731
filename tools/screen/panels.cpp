#include "tools/screen/panels.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "agent/base/parse.h"
#include "tools/render/text.h"

namespace neuron::screen {
namespace {

TableCell health_cell(const model::Health& health) {
  return {std::string(model::to_string(health.state)), role_of(health.state)};
}

// A count of errors: red when there are any, `unknown` faint.
TableCell error_cell(std::optional<std::uint64_t> count, Role role) {
  if (!count) return {std::string(kUnknown), Role::dim};
  return {count_text(count), *count > 0 ? role : Role::plain};
}

// The path without the folder of the device, which the row names.
std::string without_folder(const std::string& problem) {
  constexpr std::string_view kDevices = "sys/class/neuron_device/";
  if (!problem.starts_with(kDevices)) return problem;
  const auto end = problem.find('/', kDevices.size());
  return end == std::string::npos ? problem : problem.substr(end + 1);
}

// The verdict's sentence and action, else the first read problem.
std::string why(const model::Health& health, const std::vector<std::string>& problems) {
  if (health.sentence.empty() && health.action.empty()) {
    if (problems.empty()) return "";
    const std::string first = without_folder(problems.front());
    return problems.size() == 1 ? first : fmt::format("{} (+{} more)", first, problems.size() - 1);
  }
  if (health.sentence.empty()) return health.action;
  return health.action.empty() ? health.sentence : health.sentence + "; " + health.action;
}

// A healthy device has a reason too when some of its files cannot be read.
Role reason_role(const model::Health& health) {
  return health.state == model::HealthState::healthy ? Role::warning : role_of(health.state);
}

TableCell value_cell(std::string text) {
  const Role role = text == kUnknown ? Role::dim : Role::plain;
  return {std::move(text), role};
}

TableCell held_cell(std::optional<std::uint64_t> bytes) {
  return {memory_text(bytes), bytes ? Role::good : Role::dim};
}

std::string cores_text(const ProcessView& process) {
  if (!process.cores_known) return "n/a";
  return process.cores.empty() ? "-" : format_int_list(process.cores);
}

std::string devices_text(const std::vector<int>& devices) {
  return devices.empty() ? "-" : format_int_list(devices);
}

constexpr int kTrendWidth = 16;

// The common scale of the sparklines of all interfaces.
struct Trends {
  bool shown = false;  // there is something to draw: two samples at least
  double top = 0;
};

Trends trends_of(const Scene& scene) {
  Trends trends;
  for (const EfaView& efa : scene.model.efas) {
    const auto values = scene.history.of(efa_series(efa.name));
    trends.shown = trends.shown || values.size() > 1;
    for (const auto& value : values) trends.top = std::max(trends.top, value.value_or(0));
  }
  return trends;
}

TableRow efa_row(const Scene& scene, const EfaView& efa, const Table& table, const Trends& trends) {
  TableRow row{efa.name, {{efa.name, Role::plain}}, why(efa.health, efa.problems)};
  for (const auto& rate : {efa.rx, efa.tx, efa.rdma_read, efa.rdma_write}) {
    row.cells.push_back(value_cell(rate_text(rate)));
  }
  row.cells.push_back(value_cell(frequency_text(efa.retransmits)));
  row.cells.push_back(error_cell(efa.errors_total, Role::warning));
  row.cells.push_back({frequency_text(efa.errors), efa.errors.value_or(0) > 0 ? Role::bad : Role::dim});
  row.cells.push_back(value_cell(efa.numa_node ? std::to_string(*efa.numa_node) : std::string(kUnknown)));
  row.cells.push_back(health_cell(efa.health));
  if (trends.shown) {
    const auto values = scene.history.of(efa_series(efa.name));
    row.cells.push_back({render::sparkline(values, kTrendWidth, trends.top, scene.charset), Role::good});
  }
  if (!scene.model.pods.empty()) row.cells.push_back({pods_of_efa(scene.model, efa.name), Role::plain});
  if (row.cells.size() < table.columns.size()) row.cells.push_back({row.detail, reason_role(efa.health)});
  return row;
}

}  // namespace

Role role_of(model::HealthState state) {
  using State = model::HealthState;
  if (state == State::healthy) return Role::good;
  if (state == State::unknown) return Role::dim;
  return state == State::degraded ? Role::warning : Role::bad;
}

Table condition_table(const Scene& scene) {
  Table table;
  table.columns = {{""},
                   {"Health"},
                   {"Power", Align::right, 1},
                   {"max", Align::right, 4},
                   {"SRAM CE", Align::right, 3},
                   {"SRAM UE", Align::right},
                   {"HBM CE", Align::right, 3},
                   {"HBM UE", Align::right},
                   {"repair", Align::right, 2},
                   {"What was seen", Align::left, 0, true}};
  for (const DeviceView* device : shown_devices(scene.model, scene.state)) {
    const auto& power = device->power;
    const EccView& ecc = device->ecc;
    TableRow row{std::to_string(device->index), {{fmt::format("ND{}", device->index), Role::plain}}, ""};
    row.cells.push_back(health_cell(device->health));
    row.cells.push_back(value_cell(power ? percent_text(power->average_percent, 1) : std::string(kUnknown)));
    row.cells.push_back(value_cell(power ? percent_text(power->max_percent, 1) : std::string(kUnknown)));
    row.cells.push_back(error_cell(ecc.sram_corrected, Role::warning));
    row.cells.push_back(error_cell(ecc.sram_uncorrected, Role::bad));
    row.cells.push_back(error_cell(ecc.memory_corrected, Role::warning));
    row.cells.push_back(error_cell(ecc.memory_uncorrected, Role::bad));
    row.cells.push_back(error_cell(ecc.memory_repairable, Role::warning));
    row.detail = why(device->health, device->problems);
    row.cells.push_back({row.detail, reason_role(device->health)});
    table.rows.push_back(std::move(row));
  }
  if (table.rows.empty()) {
    table.note = scene.model.no_devices.empty() ? "no device passes the filter" : scene.model.no_devices;
  }
  return table;
}

Table efa_table(const Scene& scene) {
  const Trends trends = trends_of(scene);
  Table table;
  table.columns = {{"Interface"},
                   {"Receive", Align::right},
                   {"Send", Align::right},
                   {"RDMA read", Align::right, 4},
                   {"write", Align::right, 4},
                   {"Retrans/s", Align::right, 3},
                   {"Errors", Align::right},
                   {"/s", Align::right, 2},
                   {"NUMA", Align::right, 5},
                   {"Health"}};
  if (trends.shown) table.columns.push_back({"Receive + send", Align::left, 5});
  if (!scene.model.pods.empty()) table.columns.push_back({"Pods", Align::left, 1});
  const auto has_text = [](const EfaView& efa) { return !why(efa.health, efa.problems).empty(); };
  if (std::ranges::any_of(scene.model.efas, has_text)) {
    table.columns.push_back({"What was seen", Align::left, 0, true});
  }
  for (const EfaView* efa : shown_efas(scene.model, scene.state)) {
    table.rows.push_back(efa_row(scene, *efa, table, trends));
  }
  if (table.rows.empty()) {
    table.note = scene.model.efas.empty() ? "this machine has no EFA interface" : "no interface passes the filter";
  }
  return table;
}

Table process_table(const Scene& scene) {
  Table table;
  table.columns = {{"PID", Align::right},     {"Tag", Align::left, 2},       {"Devices"},
                   {"Cores", Align::left, 2}, {"Device mem.", Align::right}, {"Host mem.", Align::right, 4},
                   {"RSS", Align::right, 5},  {"CPU user", Align::right, 3}, {"system", Align::right, 3}};
  if (!scene.model.pods.empty()) table.columns.push_back({"Pod", Align::left, 1});
  table.columns.push_back({"Command", Align::left, 0, true});
  for (const ProcessView* process : shown_processes(scene.model, scene.state)) {
    const std::string pid = std::to_string(process->pid);
    TableRow row{pid, {{pid, Role::plain}}, ""};
    row.cells.push_back({process->label == pid ? "-" : process->label, Role::plain});
    row.cells.push_back({devices_text(process->devices), Role::plain});
    row.cells.push_back({cores_text(*process), Role::plain});
    row.cells.push_back(held_cell(process->device_bytes));
    row.cells.push_back(held_cell(process->host_bytes));
    row.cells.push_back(value_cell(memory_text(process->resident_bytes)));
    row.cells.push_back(value_cell(percent_text(process->user_percent)));
    row.cells.push_back(value_cell(percent_text(process->system_percent)));
    if (!scene.model.pods.empty()) row.cells.push_back({pods_of_process(scene.model, *process), Role::plain});
    row.cells.push_back({process->command.empty() ? "-" : process->command, Role::dim});
    table.rows.push_back(std::move(row));
  }
  if (table.rows.empty()) {
    table.note = scene.model.processes.empty() ? "no process uses a Neuron device" : "no process passes the filter";
    if (!scene.model.no_processes.empty()) table.note = "n/a: " + scene.model.no_processes;
  }
  return table;
}

Table pod_table(const Scene& scene) {
  Table table;
  const bool claims = std::ranges::any_of(scene.model.pods, [](const PodView& pod) { return !pod.claim.empty(); });
  table.columns = {{"Pod"}, {"Container", Align::left, 2}};
  if (claims) table.columns.push_back({"Claim", Align::left, 1});
  table.columns.insert(table.columns.end(), {{"Devices"}, {"Cores"}, {"EFA", Align::left, 0, true}});
  for (const PodView& pod : scene.model.pods) {
    const std::string efas = render::joined(pod.efas, ",");
    TableRow row{pod.name + '/' + pod.container + '/' + pod.claim,
                 {{pod.name, Role::plain}, {pod.container, Role::plain}}};
    if (claims) row.cells.push_back({pod.claim.empty() ? "-" : pod.claim, Role::plain});
    row.cells.push_back({devices_text(pod.devices), Role::plain});
    row.cells.push_back({devices_text(pod.cores), Role::plain});
    row.cells.push_back({efas.empty() ? "-" : efas, Role::dim});
    table.rows.push_back(std::move(row));
  }
  if (!scene.model.no_pods.empty()) table.note = "n/a: " + scene.model.no_pods;
  if (table.rows.empty() && table.note.empty()) table.note = "no container holds a device";
  return table;
}

Table panel_table(const Scene& scene, int columns) {
  switch (scene.state.panel) {
    case Panel::memory:
      return memory_table(scene.model, scene.state);
    case Panel::condition:
      return condition_table(scene);
    case Panel::efa:
      return efa_table(scene);
    case Panel::processes:
      return process_table(scene);
    case Panel::history:
      return history_table(scene, columns);
  }
  return {};
}

std::string panel_title(const Scene& scene) {
  constexpr std::array<const char*, 5> kTitles = {"Memory Usage Details", "Device Health, ECC and Power",
                                                  "EFA Interfaces", "Processes and Pods", "History"};  // as Panel
  return kTitles[static_cast<std::size_t>(scene.state.panel)];
}

std::vector<std::string> panel_rows(const ViewModel& model, const ViewState& state) {
  constexpr int kAnyWidth = 80;
  const History none;
  std::vector<std::string> keys;
  for (const TableRow& row : panel_table({model, none, state}, kAnyWidth).rows) keys.push_back(row.key);
  return keys;
}

}  // namespace neuron::screen
