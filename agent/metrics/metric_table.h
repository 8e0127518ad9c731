#pragma once

#include <span>
#include <string_view>

// The one table of the metrics that a scrape shows. The families take type and help from it, docs/metrics.md is
// compared with it. Pure; static lifetime, any thread.
namespace neuron::metrics {

enum class MetricType {
  counter,
  gauge,
  info,       // a gauge of 1; its labels are the facts
  histogram,  // with the label `le`
};

[[nodiscard]] std::string_view to_string(MetricType type);  // the enumerator's name

// Whether a series also says which container holds the device, core or interface that it is of: labels `namespace`,
// `pod`, `container`.
enum class Held { no, yes };

struct Metric {
  std::string_view name;
  MetricType type{};
  std::string_view labels;  // "neuroncore, runtime_tag": besides those of the group and of the holder
  Held held{};
  std::string_view help;    // for people, in the text and in docs/metrics.md
  std::string_view source;  // docs/metrics.md: a file, or where else it comes from
};

// Metrics of one subject, a section of docs/metrics.md.
struct MetricGroup {
  std::string_view title;
  std::string_view labels;  // of every metric of the group, "" for none
  std::string_view about;   // how `source` is to be read
  std::span<const Metric> metrics;
};

// Labels that neuron-monitor puts on everything it shows; `ultraserver_id` only where there is one.
inline constexpr std::string_view kInstanceLabels =
    "instance_name, instance_id, instance_type, availability_zone, region, subnet_id, ultraserver_id";

// EFA counters are node_amazonefa_<file>, so that dashboards of the EFA node exporter find them.
inline constexpr std::string_view kEfaCounterPrefix = "node_amazonefa_";

[[nodiscard]] std::span<const MetricGroup> metric_groups();  // in the order of a scrape; names are unique

// The parts of it, one file each.
[[nodiscard]] std::span<const Metric> neuron_monitor_metrics();
[[nodiscard]] std::span<const Metric> device_metrics();
[[nodiscard]] std::span<const Metric> core_metrics();
[[nodiscard]] std::span<const Metric> efa_metrics();
[[nodiscard]] std::span<const Metric> efa_counter_metrics();  // node_amazonefa_<file>
[[nodiscard]] std::span<const Metric> kernel_log_metrics();
[[nodiscard]] std::span<const Metric> agent_metrics();

}  // namespace neuron::metrics
