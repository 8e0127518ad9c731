#include <nlohmann/json.hpp>

#include "tools/kubectl-neuron/top.h"

namespace neuron::fleet {
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
  return {{"devices", held(row.devices)},
          {"cores", held(row.cores)},
          {"idle_cores", row.percent ? Json(row.idle_cores) : Json(nullptr)},
          {"efas", held(row.efas)},
          {"utilization_percent", or_null(row.percent)},
          {"device_memory_bytes", or_null(row.memory_bytes)},
          {"device_memory_size_bytes", or_null(row.memory_size)},
          {"rx_bytes_per_second", or_null(row.rx_bytes_per_second)},
          {"tx_bytes_per_second", or_null(row.tx_bytes_per_second)},
          {"unhealthy", row.unhealthy},
          {"degraded", row.degraded}};
}

Json with_values(Json object, const TopRow& row) {
  object.update(values_of(row));
  return object;
}

Json node_json(const TopRow& row) {
  return with_values({{"node", row.name},
                      {"instance_type", text_or_null(row.instance_type)},
                      {"condition", text_or_null(row.condition)},
                      {"all_devices", row.all_devices},
                      {"all_cores", row.all_cores},
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
                                {"pods", top.sum.pods},
                                {"all_devices", top.sum.all_devices},
                                {"all_cores", top.sum.all_cores}},
                               top.sum);
  const Json report = {{"schema", kTopSchema}, {"time_ms", time_ms},    {"read_at", top.read_at},
                       {"sum", sum},           {"nodes", nodes},        {"namespaces", namespaces},
                       {"pods", pods},         {"unknown", top.unknown}};
  return report.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace neuron::fleet
