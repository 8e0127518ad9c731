#include "tools/render/node_tables.h"

#include <algorithm>
#include <array>
#include <utility>

#include "agent/base/parse.h"
#include "tools/render/text.h"

namespace neuron::render {
namespace {

constexpr const char* kUnknown = "NA";
constexpr const char* kNone = "-";

// In the order of Column.
constexpr std::array<std::array<const char*, 2>, 15> kHeaders = {{
    {"NEURON", "DEVICE"},
    {"NEURON", "CORES"},
    {"NEURON", "CORE IDS"},
    {"NEURON", "MEMORY"},
    {"CONNECTED", "DEVICES"},
    {"PCI", "BDF"},
    {"PCI", "BDF"},
    {"PID", ""},
    {"COMMAND", ""},
    {"CPU", "AFFINITY"},
    {"NUMA", "NODE"},
    {"RUNTIME", "VERSION"},
    {"HEALTH", ""},
    {"NEAREST", "EFA"},
    {"POD", ""},
}};

TextTable::Header header_of(Column column) {
  const auto& [upper, lower] = kHeaders[static_cast<std::size_t>(column)];
  return {upper, lower};
}

bool is_process_column(Column column) {
  return column == Column::pid || column == Column::command || column == Column::runtime_version;
}

std::string or_none(std::string text) {
  return text.empty() ? kNone : std::move(text);
}

template <typename Texts>
std::string joined_or_none(const Texts& texts) {
  return or_none(joined(texts, ", "));
}

std::string pods_text(const std::optional<std::vector<std::string>>& pods) {
  if (!pods) return kUnknown;
  return pods->size() > 1 ? std::to_string(pods->size()) + " pods" : joined_or_none(*pods);
}

std::string memory_text(const std::optional<std::uint64_t>& bytes) {
  constexpr std::uint64_t kGib = 1ULL << 30U;
  if (!bytes) return kUnknown;
  const std::uint64_t tenths = (*bytes % kGib) * 10 / kGib;
  return std::to_string(*bytes / kGib) + (tenths == 0 ? "" : "." + std::to_string(tenths)) + " GB";
}

std::string bdf_text(const std::optional<model::Bdf>& bdf, Column form) {
  if (!bdf) return kUnknown;
  const std::string full = model::to_string(*bdf);
  return form == Column::short_bdf && bdf->domain == 0 ? full.substr(full.find(':') + 1) : full;
}

std::string device_cell(const DeviceView& device, Column column) {
  switch (column) {
    case Column::device:
      return std::to_string(device.index);
    case Column::cores:
      return device.core_ids ? std::to_string(device.core_ids->size()) : kUnknown;
    case Column::core_ids:
      return device.core_ids ? format_int_list(*device.core_ids) : kUnknown;
    case Column::memory:
      return memory_text(device.memory_bytes);
    case Column::connected:
      return joined(device.neighbours, ", ") + (device.neighbours_marked ? " *" : "");
    case Column::affinity:
      return device.cpus ? format_int_list(*device.cpus) : kUnknown;
    case Column::numa_node:
      return device.numa_node ? std::to_string(*device.numa_node) : kUnknown;
    case Column::health:
      return std::string(device.health ? model::to_string(device.health->state) : kUnknown);
    case Column::nearest_efa:
      return joined_or_none(device.efas);
    case Column::pod:
      return pods_text(device.pods);
    default:
      return bdf_text(device.bdf, column);
  }
}

std::string process_cell(const ProcessView& process, Column column) {
  if (column == Column::pid) return std::to_string(process.pid);
  return column == Column::command ? process.command : process.runtime_version;
}

std::vector<TextTable::Row> rows_of(const DeviceView& device, const std::vector<Column>& columns) {
  const bool per_process = std::ranges::any_of(columns, is_process_column);
  const std::size_t count = per_process ? std::max<std::size_t>(device.processes.size(), 1) : 1;
  std::vector<TextTable::Row> rows(count, TextTable::Row(columns.size()));
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (!is_process_column(columns[i])) {
      rows[0][i] = device_cell(device, columns[i]);
    } else if (device.processes.empty()) {
      rows[0][i] = kUnknown;
    } else {
      for (std::size_t row = 0; row < rows.size(); ++row) {
        rows[row][i] = process_cell(device.processes[row], columns[i]);
      }
    }
  }
  return rows;
}

bool any_neighbours(const NodeView& view) {
  return std::ranges::any_of(view.devices, [](const auto& d) { return !d.neighbours.empty(); });
}

std::string ranges(const std::set<int>& values) {
  return or_none(format_int_list({values.begin(), values.end()}));
}

std::string verbs_text(const model::EfaInterface& efa) {
  if (!efa.uverbs) return kNone;
  return efa.node_present ? *efa.uverbs : *efa.uverbs + " (no node)";
}

bool shows_health(const NodeReport& report) {
  return std::ranges::any_of(report.host.efas, [](const model::EfaInterface& efa) { return is_assessed(efa.health); });
}

TextTable::Row efa_row(const NodeReport& report, std::size_t position) {
  const model::EfaInterface& efa = report.host.efas[position];
  TextTable::Row row = {efa.driver_bound ? or_none(efa.name) : "(no driver)",
                        verbs_text(efa),
                        model::to_string(efa.bdf),
                        efa.numa_node ? std::to_string(*efa.numa_node) : kUnknown,
                        efa.p2p ? or_none(*efa.p2p) : kUnknown,
                        or_none(format_int_list(near_devices(report, position)))};
  if (shows_health(report)) {
    row.emplace_back(is_assessed(efa.health) ? model::to_string(efa.health.state) : std::string_view(kUnknown));
  }
  if (report.pods) row.push_back(joined_or_none(pods_on_efa(report, efa.name).value_or(std::vector<std::string>{})));
  return row;
}

// The colour of a text of the health column.
Role role_of_health(std::string_view state) {
  if (state == model::to_string(model::HealthState::healthy)) return Role::good;
  if (state == model::to_string(model::HealthState::unhealthy)) return Role::bad;
  return Role::warning;
}

}  // namespace

std::vector<Column> default_columns(const NodeView& view) {
  bool processes = false;
  bool commands = false;
  for (const DeviceView& device : view.devices) {
    for (const ProcessView& process : device.processes) {
      processes = true;
      commands = commands || !process.command.empty();
    }
  }
  std::vector<Column> columns = {Column::device, Column::cores, Column::core_ids, Column::memory};
  if (any_neighbours(view)) columns.push_back(Column::connected);
  columns.push_back(Column::bdf);
  if (processes) columns.push_back(Column::pid);
  if (commands) columns.push_back(Column::command);
  columns.insert(columns.end(), {Column::affinity, Column::numa_node});
  if (processes) columns.push_back(Column::runtime_version);
  return columns;
}

std::vector<Column> topology_columns(const NodeView& view) {
  std::vector<Column> columns = {Column::device, Column::cores, Column::memory};
  if (any_neighbours(view)) columns.push_back(Column::connected);
  columns.push_back(Column::short_bdf);
  return columns;
}

std::string header_lines(const NodeView& view) {
  std::string text;
  if (!view.instance_type.empty()) text += "instance-type: " + view.instance_type + '\n';
  if (!view.instance_id.empty()) text += "instance-id: " + view.instance_id + '\n';
  if (view.lnc) text += "logical-neuroncore-config: " + std::to_string(*view.lnc) + '\n';
  return text;
}

std::string device_table(const NodeView& view, const std::vector<Column>& columns, ColourDepth colour) {
  std::vector<TextTable::Header> headers;
  for (const Column column : columns) headers.push_back(header_of(column));
  TextTable table(std::move(headers));
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i] == Column::health) table.paint_column(i, role_of_health);
  }
  bool marked = false;
  for (const DeviceView& device : view.devices) {
    table.add_group(rows_of(device, columns));
    marked = marked || device.neighbours_marked;
  }
  return table.to_string(colour) +
         (marked ? "* The driver shows no connections; these are from the official table.\n" : "");
}

std::string efa_table(const NodeReport& report, ColourDepth colour) {
  if (report.host.efas.empty()) return "No EFA interface.\n";
  std::vector<TextTable::Header> headers = {{"EFA", "INTERFACE"}, {"VERBS", "DEVICE"}, {"PCI", "BDF"},
                                            {"NUMA", "NODE"},     {"PEER", "MEMORY"},  {"NEAREST", "DEVICES"}};
  const std::size_t health_column = headers.size();
  if (shows_health(report)) headers.push_back({"HEALTH", ""});
  if (report.pods) headers.push_back({"POD", ""});
  TextTable table(std::move(headers));
  if (shows_health(report)) table.paint_column(health_column, role_of_health);
  for (std::size_t i = 0; i < report.host.efas.size(); ++i) table.add_group({efa_row(report, i)});
  return table.to_string(colour);
}

std::string pod_table(const NodeReport& report) {
  if (!report.pods) return "";
  if (report.pods->empty()) return "No pod holds a device, a core or an interface.\n";
  const bool with_claims = std::ranges::any_of(*report.pods, [](const PodUse& use) { return !use.claim.empty(); });
  std::vector<TextTable::Header> headers = {{"NAMESPACE", ""}, {"POD", ""}, {"CONTAINER", ""}};
  if (with_claims) headers.push_back({"CLAIM", ""});
  headers.insert(headers.end(), {{"NEURON", "DEVICES"}, {"NEURON", "CORE IDS"}, {"EFA", "INTERFACES"}});
  TextTable table(std::move(headers));
  for (const PodUse& use : *report.pods) {
    TextTable::Row row = {use.pod_namespace, use.pod, use.container};
    if (with_claims) row.push_back(or_none(use.claim));
    row.insert(row.end(), {ranges(use.devices), ranges(use.cores), joined_or_none(use.efas)});
    table.add_group({std::move(row)});
  }
  return table.to_string();
}

}  // namespace neuron::render
