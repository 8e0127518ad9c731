#include <unistd.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "agent/base/parse.h"
#include "tools/kubectl-neuron/commands.h"
#include "tools/kubectl-neuron/top.h"
#include "tools/kubectl-neuron/top_screen.h"
#include "tools/screen/live.h"

namespace neuron::fleet {
namespace {

using std::chrono::milliseconds;

constexpr Wanted kWanted{.reports = true, .metrics = true, .context = false};
constexpr milliseconds kShortest{1000};

Result<milliseconds> interval_of(const std::string& text) {
  constexpr int kMostSeconds = 3600;
  if (const auto seconds = parse_int(text, 1, kMostSeconds)) return std::chrono::seconds(*seconds);
  const auto duration = parse_duration(text);
  if (duration && *duration >= kShortest && *duration <= std::chrono::seconds(kMostSeconds)) return *duration;
  return fail(ErrorCode::invalid_argument, "--interval `" + printable(text) + "' is not a time from 1s to 60m");
}

TopState state_of(const TopOptions& own) {
  TopState state;
  state.by = parse_top_by(own.by).value_or(TopBy::node);
  state.sort = parse_top_sort(own.sort).value_or(TopSort::name);
  for (const char c : own.filter.substr(0, screen::kMaxFilter)) {
    state.filter += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return state;
}

int print_once(const Options& options, const TopOptions& own) {
  auto documents = documents_of(options, kWanted);
  if (!documents) return fail_with(documents.error());
  const Usages usages = usages_of(*documents, 0);
  const Top top = make_top(make_fleet(*std::move(documents)), usages);
  const TopState state = state_of(own);
  const int code = top.is_partial && top.nodes.empty() ? kExitUnknown : kExitOk;
  if (own.json) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return print(top_json(top, state.sort, state.filter, std::chrono::duration_cast<milliseconds>(now).count()), code);
  }
  render::Style style = screen::style_of_stdout();
  if (options.no_color) style.colour = render::ColourDepth::none;
  return print(print_top(top, state, style.charset, screen::print_columns()).to_text(style.colour), code);
}

}  // namespace

void add_top(CLI::App& command, TopOptions& own) {
  command.add_option("--by", own.by, "node, namespace or pod")
      ->check(CLI::IsMember({"node", "namespace", "pod"}))
      ->type_name("WHAT")
      ->take_last();
  command.add_option("--sort", own.sort, "name, utilization, memory, devices or health")
      ->check(CLI::IsMember({"name", "utilization", "memory", "devices", "health"}))
      ->type_name("KEY")
      ->take_last();
  command.add_option("--filter", own.filter, "Only rows with this text")->type_name("TEXT")->take_last();
  command.add_option("--interval", own.interval, "Time between readings (default: 5)")->type_name("TIME")->take_last();
  command.add_flag("--once", own.once, "Print the table and exit");
  command.add_flag("--json", own.json, "Print one JSON object and exit");
}

int run_top(const Options& options, const TopOptions& own) {
  const auto interval = interval_of(own.interval);
  if (!interval) return fail_with(interval.error());
  const bool has_screen = ::isatty(STDIN_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0;
  if (own.once || own.json || !has_screen) return print_once(options, own);
  const auto shown = show_top(options, *interval, state_of(own));
  return shown ? kExitOk : fail_with(shown.error());
}

namespace {

using Json = nlohmann::ordered_json;

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

Json values_of(const TopRow& row) {
  const auto held = [&](std::size_t count) { return row.holders_known ? Json(count) : Json(nullptr); };
  const auto reported = [&](std::size_t count) { return row.has_report ? Json(count) : Json(nullptr); };
  return {{"devices", held(row.devices)},
          {"cores", held(row.cores)},
          {"idle_cores", row.percent ? Json(row.idle_cores) : Json(nullptr)},
          {"efas", held(row.efas)},
          {"utilization_percent", or_null(row.percent)},
          {"device_memory_bytes", or_null(row.memory_bytes)},
          {"device_memory_size_bytes", or_null(row.memory_size)},
          {"rx_bytes_per_second", or_null(row.rx_bytes_per_second)},
          {"tx_bytes_per_second", or_null(row.tx_bytes_per_second)},
          {"unhealthy", reported(row.unhealthy)},
          {"degraded", reported(row.degraded)}};
}

Json with_values(Json object, const TopRow& row) {
  object.update(values_of(row));
  return object;
}

Json node_json(const TopRow& row) {
  return with_values({{"node", row.name},
                      {"instance_type", text_or_null(row.instance_type)},
                      {"condition", text_or_null(row.condition)},
                      {"all_devices", row.has_report ? Json(row.all_devices) : Json(nullptr)},
                      {"all_cores", row.has_report ? Json(row.all_cores) : Json(nullptr)},
                      {"pods", row.holders_known ? Json(row.pods) : Json(nullptr)}},
                     row);
}

}  // namespace

std::string top_json(const Top& top, TopSort sort, const std::string& filter, std::int64_t time_ms) {
  Json nodes = Json::array();
  for (const TopRow* row : shown_rows(top, TopBy::node, sort, filter)) nodes.push_back(node_json(*row));
  Json namespaces = Json::array();
  for (const TopRow* row : shown_rows(top, TopBy::name_space, sort, filter)) {
    namespaces.push_back(with_values({{"namespace", row->name}, {"nodes", row->nodes}, {"pods", row->pods}}, *row));
  }
  Json pods = Json::array();
  for (const TopRow* row : shown_rows(top, TopBy::pod, sort, filter)) {
    pods.push_back(with_values({{"pod", row->name}, {"node", row->node}}, *row));
  }
  const Json sum = with_values({{"nodes", top.sum.nodes},
                                {"pods", top.sum.holders_known ? Json(top.sum.pods) : Json(nullptr)},
                                {"all_devices", top.sum.has_report ? Json(top.sum.all_devices) : Json(nullptr)},
                                {"all_cores", top.sum.has_report ? Json(top.sum.all_cores) : Json(nullptr)}},
                               top.sum);
  const Json report = {{"format", kTopFormat}, {"time_ms", time_ms},    {"read_at", top.read_at},
                       {"sum", sum},           {"nodes", nodes},        {"namespaces", namespaces},
                       {"pods", pods},         {"unknown", top.unknown}};
  return report.dump(-1, ' ', true, Json::error_handler_t::replace) + '\n';
}

}  // namespace neuron::fleet
