#include <algorithm>
#include <nlohmann/json.hpp>

#include "agent/base/parse.h"
#include "tools/kubectl-neuron/commands.h"
#include "tools/kubectl-neuron/counts.h"
#include "tools/kubectl-neuron/table.h"

namespace neuron::fleet {
namespace {

using Json = nlohmann::ordered_json;

std::string mode_text(Mode mode) {
  if (mode == Mode::claims) return "claims";
  return mode == Mode::device_plugin ? "plugin" : "";
}

std::string units_text(const std::optional<Units>& units) {
  if (!units) return "";
  if (!units->are_apart) return std::to_string(units->free()) + "/-/-";
  return std::to_string(units->free()) + "/" + std::to_string(units->held) + "/" + std::to_string(units->unhealthy);
}

std::string health_text(const Node& node, const NodeCounts& counts) {
  if (node.ready == false) return "not ready";
  if (!node.report) return "";
  if (counts.unhealthy > 0) return std::to_string(counts.unhealthy) + " unhealthy";
  return counts.degraded > 0 ? std::to_string(counts.degraded) + " degraded" : "healthy";
}

std::string label_of(const Node& node, const char* name) {
  const auto found = node.labels.find(name);
  return found == node.labels.end() ? "" : found->second;
}

std::string driver_of(const Node& node) {
  return node.report ? node.report->host.driver_version : label_of(node, "neuron-agent/driver");
}

std::string lnc_of(const Node& node) {
  if (!node.report) return label_of(node, "neuron-agent/lnc");
  return node.report->host.lnc ? std::to_string(node.report->host.lnc->value) : "";
}

void add_units(std::optional<Units>& sum, const std::optional<Units>& units) {
  if (!units) return;
  if (!sum) sum.emplace();
  sum->total += units->total;
  sum->held += units->held;
  sum->unhealthy += units->unhealthy;
  sum->are_apart = sum->are_apart && units->are_apart;
}

struct Row {
  const Node* node;
  NodeCounts counts;
};

std::vector<Row> rows_of(const Fleet& fleet) {
  const Asked asked = asked_by_node(fleet);
  std::vector<Row> rows;
  for (const Node& node : fleet.nodes) {
    const NodeCounts counts = count_node(node, asked);
    if (has_hardware(node)) rows.push_back({&node, counts});
  }
  return rows;
}

NodeCounts sum_of(const std::vector<Row>& rows) {
  NodeCounts sum;
  for (const Row& row : rows) {
    add_units(sum.devices, row.counts.devices);
    add_units(sum.cores, row.counts.cores);
    add_units(sum.efas, row.counts.efas);
    sum.unhealthy += row.counts.unhealthy;
    sum.degraded += row.counts.degraded;
    if (row.counts.largest_group) {
      sum.largest_group = std::max(sum.largest_group.value_or(0), *row.counts.largest_group);
    }
  }
  return sum;
}

std::string number_text(const std::optional<int>& number) {
  return number ? std::to_string(*number) : "";
}

Table table_of(const Fleet& fleet, const std::vector<Row>& rows, bool is_wide) {
  Table table;
  table.headers = {"NAME",   "TYPE",   "MODE", "DEVICES(F/H/U)", "CORES(F/H/U)", "GROUP", "EFA(F/H/U)",
                   "HEALTH", "DRIVER", "LNC",  "AGENT",          "AGE"};
  if (is_wide) table.headers.insert(table.headers.end(), {"AGENT-POD", "UNKNOWN"});
  for (const Row& row : rows) {
    const Node& node = *row.node;
    const NodeCounts& counts = row.counts;
    auto& cells = table.rows.emplace_back(std::vector<std::string>{
        node.name, node.instance_type, mode_text(node.mode), units_text(counts.devices), units_text(counts.cores),
        number_text(counts.largest_group), units_text(counts.efas), health_text(node, counts), driver_of(node),
        lnc_of(node), node.agent_version, age_text(node.created, fleet.read_at)});
    if (is_wide) cells.insert(cells.end(), {node.agent_pod, node.report_missing});
  }
  return table;
}

std::string sums_text(const std::vector<Row>& rows) {
  const NodeCounts sum = sum_of(rows);
  std::string text = counted(rows.size(), "node");
  const auto add = [&](const std::optional<Units>& units, const char* noun) {
    if (!units) return;
    text += "; " + counted(units->total, noun) + ": " + std::to_string(units->free()) + " free, ";
    text += units->are_apart ? std::to_string(units->held) + " held, " + std::to_string(units->unhealthy) + " unhealthy"
                             : std::to_string(units->held + units->unhealthy) + " held or unhealthy";
  };
  add(sum.devices, "device");
  add(sum.cores, "core");
  add(sum.efas, "interface");
  const auto silent = std::ranges::count_if(rows, [](const Row& row) { return !row.node->report; });
  const auto uncounted = std::ranges::count_if(
      rows, [](const Row& row) { return !row.counts.devices && !row.counts.cores && !row.counts.efas; });
  if (uncounted > 0) text += "\n" + counted(uncounted, "node") + " whose units are not known, and in no sum";
  if (silent > 0) text += "\n" + counted(silent, "node") + " without an answer of the agent (-o wide says why)";
  return text + '\n';
}

Json units_json(const std::optional<Units>& units) {
  if (!units) return nullptr;
  Json json = {{"total", units->total}, {"free", units->free()}, {"held", nullptr}, {"unhealthy", nullptr}};
  if (units->are_apart) json.update({{"held", units->held}, {"unhealthy", units->unhealthy}});
  return json;
}

Json text_json(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

Json node_json(const Fleet& fleet, const Row& row) {
  const Node& node = *row.node;
  const auto age = time_between(node.created, fleet.read_at);
  return {{"name", node.name},
          {"instance_type", text_json(node.instance_type)},
          {"mode", text_json(mode_text(node.mode))},
          {"ready", node.ready ? Json(*node.ready) : Json(nullptr)},
          {"unschedulable", node.unschedulable},
          {"devices", units_json(row.counts.devices)},
          {"cores", units_json(row.counts.cores)},
          {"largest_group", row.counts.largest_group ? Json(*row.counts.largest_group) : Json(nullptr)},
          {"efa_interfaces", units_json(row.counts.efas)},
          {"health", text_json(health_text(node, row.counts))},
          {"driver", text_json(driver_of(node))},
          {"lnc", text_json(lnc_of(node))},
          {"agent_version", text_json(node.agent_version)},
          {"agent_pod", text_json(node.agent_pod)},
          {"age_seconds", age ? Json(age->count()) : Json(nullptr)},
          {"unknown", text_json(node.report_missing)}};
}

std::string json_text(const Fleet& fleet, const std::vector<Row>& rows) {
  const NodeCounts sum = sum_of(rows);
  Json document = {{"format", "kubectl-neuron-nodes/1"}, {"read_at", fleet.read_at}, {"nodes", Json::array()}};
  for (const Row& row : rows) document["nodes"].push_back(node_json(fleet, row));
  document["sum"] = {
      {"devices", units_json(sum.devices)}, {"cores", units_json(sum.cores)}, {"efa_interfaces", units_json(sum.efas)}};
  document["unknown"] = fleet.unknown;
  return document.dump(2, ' ', true, Json::error_handler_t::replace) + '\n';
}

}  // namespace

std::string nodes_listing(const Fleet& fleet, Output output) {
  const std::vector<Row> rows = rows_of(fleet);
  if (output == Output::json) return json_text(fleet, rows);
  if (output == Output::csv) return table_csv(table_of(fleet, rows, true));
  const std::string& unread = fleet.nodes_unread;
  if (rows.empty()) {
    return unread.empty() ? "no node has Neuron devices or EFA interfaces, as far as this user may read\n"
                          : "cannot tell which nodes have Neuron devices: " + printable(unread, 600) + '\n';
  }
  return table_text(table_of(fleet, rows, output == Output::wide)) + '\n' + sums_text(rows) +
         (unread.empty() ? "" : "of the nodes that could be read: " + printable(unread, 600) + '\n');
}

void add_nodes(CLI::App& command, NodesOptions& own) {
  command.add_option("NODE", own.nodes, "Only these nodes")->type_name("");
  add_output(command, own.output);
}

int run_nodes(const Options& options, const NodesOptions& own) {
  auto fleet = read_fleet(options, {.context = false});
  if (!fleet) return fail_with(fleet.error());
  print_unknown(*fleet);
  if (const auto kept = keep_nodes(*fleet, own.nodes); !kept) return fail_with(kept.error());
  const bool is_unknown = !fleet->nodes_unread.empty() && std::ranges::none_of(fleet->nodes, has_hardware);
  return print(nodes_listing(*fleet, output_of(own.output)), is_unknown ? kExitUnknown : kExitOk);
}

}  // namespace neuron::fleet
