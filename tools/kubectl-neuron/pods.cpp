#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "agent/allocator/allocator.h"
#include "agent/base/parse.h"
#include "tools/kubectl-neuron/commands.h"
#include "tools/kubectl-neuron/fit.h"
#include "tools/kubectl-neuron/table.h"

namespace neuron::fleet {
namespace {

using Json = nlohmann::ordered_json;
using report::NodeReport;

// One pod's hardware, by the agent's document.
struct Row {
  const Pod* pod = nullptr;
  std::string state;  // "Running", "waits: Unschedulable", "refused: UnexpectedAdmissionError"
  std::optional<std::set<int>> devices;
  std::optional<std::set<int>> cores;
  std::optional<std::set<std::string>> efas;
  std::optional<bool> aligned;                // its devices are a set as the runtime takes them
  std::optional<bool> nearest;                // its interfaces are as near to its devices as any
  std::optional<double> percent;              // mean of its cores with a known utilization
  std::optional<std::uint64_t> memory_bytes;  // of its cores, in use now
};

bool is_waiting(const Pod& pod) {
  return !pod.deleting && pod.phase == "Pending" && pod.node.empty();
}

// Since when a pod waits: before the scheduler has seen it, since it was made. "": it does not wait, or unknown.
std::string waiting_since(const Pod& pod) {
  if (!is_waiting(pod)) return "";
  return pod.scheduled_since.empty() ? pod.created : pod.scheduled_since;
}

std::string state_of(const Pod& pod) {
  if (pod.deleting) return "Terminating";
  if (!pod.reason.empty() && pod.phase == "Failed") return pod.phase + ": " + pod.reason;
  if (is_waiting(pod)) return "Waiting" + (pod.scheduled_reason.empty() ? "" : ": " + pod.scheduled_reason);
  return pod.phase;
}

// The memory in use on a pod's logical cores; nullopt where the driver shows none.
std::optional<std::uint64_t> memory_of(const NodeReport& report, const std::set<int>& cores) {
  std::optional<std::uint64_t> sum;
  for (std::size_t i = 0; i < report.host.devices.size() && i < report.physical_cores.size(); ++i) {
    const auto& ids = report.core_ids[i];
    for (std::size_t place = 0; place < ids.size() && place < report.physical_cores[i].size(); ++place) {
      if (!cores.contains(ids[place])) continue;
      for (const model::CoreSignals& core : report.host.devices[i].cores) {
        const auto& mine = report.physical_cores[i][place];
        if (std::ranges::find(mine, core.physical_index) == mine.end() || !core.device_memory_bytes) continue;
        sum = sum.value_or(0) + *core.device_memory_bytes;
      }
    }
  }
  return sum;
}

std::optional<double> percent_of(const NodeUsage& usage, const std::set<int>& cores) {
  double sum = 0;
  int count = 0;
  for (const auto& [core, use] : usage.cores) {
    if (!use.percent || !cores.contains(core)) continue;
    sum += *use.percent;
    ++count;
  }
  return count > 0 ? std::optional(sum / count) : std::nullopt;
}

bool is_set(const allocator::Reason& reason) {
  using Kind = allocator::Reason::Kind;
  return reason.kind == Kind::aligned_group || reason.kind == Kind::run || reason.kind == Kind::everything;
}

std::optional<bool> alignment_of(const allocator::NodeTopology& topology, const std::set<int>& devices) {
  if (devices.empty()) return std::nullopt;
  allocator::ChooseRequest request;
  for (const auto& device : topology.devices) request.available.push_back(device.index);
  request.size = static_cast<int>(devices.size());
  const std::vector<int> chosen(devices.begin(), devices.end());
  const allocator::Reason reason = explain_devices(topology, request, chosen);
  return is_set(reason) || chosen.size() == 1;
}

std::optional<bool> nearness_of(const allocator::NodeTopology& topology, const std::set<int>& devices,
                                const std::set<std::string>& efas) {
  if (devices.empty() || efas.empty()) return std::nullopt;
  allocator::ChooseRequest request;
  std::vector<int> chosen;
  for (std::size_t i = 0; i < topology.efas.size(); ++i) {
    request.available.push_back(static_cast<int>(i));
    if (efas.contains(topology.efas[i].name)) chosen.push_back(static_cast<int>(i));
  }
  request.prefer_devices.assign(devices.begin(), devices.end());
  request.size = static_cast<int>(chosen.size());
  const auto own = explain_efas(topology, request, chosen).nearest;
  const auto best = explain_efas(topology, request, choose_efas(topology, request).ids).nearest;
  if (!own || !best) return std::nullopt;
  return *own >= *best;
}

void read_holdings(Row& row, const Node& node) {
  if (!node.report || !node.report->pods || has_ended(*row.pod)) return;
  row.devices.emplace();
  row.cores.emplace();
  row.efas.emplace();
  for (const report::PodUse& use : *node.report->pods) {
    if (use.pod_namespace != row.pod->pod_namespace || use.pod != row.pod->name) continue;
    row.devices->insert(use.devices.begin(), use.devices.end());
    row.cores->insert(use.cores.begin(), use.cores.end());
    row.efas->insert(use.efas.begin(), use.efas.end());
  }
  const auto topology = allocator::make_topology(node.report->host);
  row.aligned = alignment_of(topology, *row.devices);
  row.nearest = nearness_of(topology, *row.devices, *row.efas);
  row.memory_bytes = memory_of(*node.report, *row.cores);
}

std::vector<Row> rows_of(const Fleet& fleet, const Usages& usages, const std::string& only_namespace) {
  std::vector<Row> rows;
  for (const Pod& pod : fleet.pods) {
    const bool is_chosen = only_namespace.empty() || pod.pod_namespace == only_namespace;
    if (!is_chosen || !asks_for_hardware(pod) || pod.phase == "Succeeded") continue;
    Row& row = rows.emplace_back();
    row.pod = &pod;
    row.state = state_of(pod);
    const Node* node = find_node(fleet, pod.node);
    if (node != nullptr) read_holdings(row, *node);
    const auto usage = usages.find(pod.node);
    if (row.cores && usage != usages.end()) row.percent = percent_of(usage->second, *row.cores);
  }
  return rows;
}

std::string list_text(const std::optional<std::set<int>>& list) {
  return list ? format_int_list(std::vector<int>(list->begin(), list->end())) : "";
}

std::string yes_or_no(const std::optional<bool>& value) {
  if (!value) return "";
  return *value ? "yes" : "no";
}

std::string gib_text(const std::optional<std::uint64_t>& bytes) {
  if (!bytes) return "";
  const std::uint64_t tenths = *bytes * 10 >> 30U;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + "Gi";
}

std::string percent_text(const std::optional<double>& percent) {
  return percent ? std::to_string(std::lround(*percent)) + "%" : "";
}

std::string wants_text(const Pod& pod) {
  std::string text;
  for (const auto& [name, amount] : scheduled_amounts(pod)) {
    if (!text.empty()) text += ",";
    text += name.substr(name.rfind('/') + 1) + "=" + amount_text(amount);
  }
  if (!pod.claims.empty()) text += (text.empty() ? "" : ",") + counted(pod.claims.size(), "claim");
  return text;
}

Table table_of(const Fleet& fleet, const std::vector<Row>& rows, bool is_wide) {
  Table table;
  table.headers = {"NAMESPACE", "POD", "NODE",    "STATUS",  "WAITS", "ASKS",   "DEVICES",
                   "CORES",     "EFA", "ALIGNED", "NEAREST", "USE",   "MEMORY", "AGE"};
  if (is_wide) table.headers.insert(table.headers.end(), {"INTERFACES", "MESSAGE"});
  for (const Row& row : rows) {
    const Pod& pod = *row.pod;
    auto& cells = table.rows.emplace_back(std::vector<std::string>{
        pod.pod_namespace, pod.name, pod.node, row.state, age_text(waiting_since(pod), fleet.read_at), wants_text(pod),
        list_text(row.devices), list_text(row.cores), row.efas ? std::to_string(row.efas->size()) : "",
        yes_or_no(row.aligned), yes_or_no(row.nearest), percent_text(row.percent), gib_text(row.memory_bytes),
        age_text(pod.created, fleet.read_at)});
    if (!is_wide) continue;
    std::string names;
    for (const std::string& name : row.efas.value_or(std::set<std::string>())) {
      names += (names.empty() ? "" : " ") + name;
    }
    cells.insert(cells.end(), {names, pod.scheduled_message.empty() ? pod.message : pod.scheduled_message});
  }
  return table;
}

// Whether all pods of the namespace, or of all, were read.
bool is_whole(const Fleet& fleet, const std::string& only_namespace) {
  if (fleet.pods_unread.empty()) return true;
  return !only_namespace.empty() &&
         fleet.pods_unread.starts_with("pods of other namespaces than " + only_namespace + " ");
}

std::string sums_text(const std::vector<Row>& rows, bool are_all) {
  const auto waiting = std::ranges::count_if(rows, [](const Row& row) { return is_waiting(*row.pod); });
  std::string text = counted(rows.size(), "pod") + (are_all ? "" : " of those that could be read");
  if (waiting > 0) text += ", " + std::to_string(waiting) + " waiting (kubectl neuron why POD says for what)";
  return text + '\n';
}

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json row_json(const Fleet& fleet, const Row& row) {
  const Pod& pod = *row.pod;
  const auto age = time_between(pod.created, fleet.read_at);
  const std::string since = waiting_since(pod);
  const std::string& words = pod.scheduled_message.empty() ? pod.message : pod.scheduled_message;
  return {{"namespace", pod.pod_namespace},
          {"pod", pod.name},
          {"node", pod.node.empty() ? Json(nullptr) : Json(pod.node)},
          {"status", row.state},
          {"waiting_since", since.empty() ? Json(nullptr) : Json(since)},
          {"requests", Json(scheduled_amounts(pod))},
          {"claims", pod.claims.size()},
          {"devices", or_null(row.devices)},
          {"cores", or_null(row.cores)},
          {"efa_interfaces", or_null(row.efas)},
          {"aligned", or_null(row.aligned)},
          {"nearest", or_null(row.nearest)},
          {"utilization_percent", or_null(row.percent)},
          {"memory_bytes", or_null(row.memory_bytes)},
          {"age_seconds", age ? Json(age->count()) : Json(nullptr)},
          {"message", words.empty() ? Json(nullptr) : Json(words)}};
}

std::string json_text(const Fleet& fleet, const std::vector<Row>& rows) {
  Json document = {{"format", "kubectl-neuron-pods/1"}, {"read_at", fleet.read_at}, {"pods", Json::array()}};
  for (const Row& row : rows) document["pods"].push_back(row_json(fleet, row));
  document["unknown"] = fleet.unknown;
  return document.dump(2, ' ', true, Json::error_handler_t::replace) + '\n';
}

}  // namespace

std::string pods_listing(const Fleet& fleet, const Usages& usages, Output output, const std::string& only_namespace) {
  const std::vector<Row> rows = rows_of(fleet, usages, only_namespace);
  if (output == Output::json) return json_text(fleet, rows);
  if (output == Output::csv) return table_csv(table_of(fleet, rows, true));
  if (rows.empty()) {
    const std::string where = only_namespace.empty() ? "any namespace" : "namespace " + printable(only_namespace);
    if (is_whole(fleet, only_namespace)) return "no pod of " + where + " asks for Neuron devices or EFA interfaces\n";
    return "cannot tell which pods of " + where + " ask for Neuron devices: " + printable(fleet.pods_unread, 600) +
           '\n';
  }
  return table_text(table_of(fleet, rows, output == Output::wide)) + '\n' +
         sums_text(rows, is_whole(fleet, only_namespace));
}

void add_pods(CLI::App& command, PodsOptions& own) {
  add_output(command, own.output);
  command.add_flag("-A,--all-namespaces", own.all_namespaces, "Pods of all namespaces");
}

int run_pods(const Options& options, const PodsOptions& own) {
  auto documents = documents_of(options, {.reports = true, .metrics = true});
  if (!documents) return fail_with(documents.error());
  const Usages usages = usages_of(*documents, 0);
  const Fleet fleet = make_fleet(*std::move(documents));
  print_unknown(fleet);
  const std::string only = own.all_namespaces ? "" : namespace_of(options, fleet);
  const bool is_unknown = !is_whole(fleet, only) && rows_of(fleet, usages, only).empty();
  return print(pods_listing(fleet, usages, output_of(own.output), only), is_unknown ? kExitUnknown : kExitOk);
}

}  // namespace neuron::fleet
