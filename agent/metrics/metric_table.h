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

// Whether a series has the labels `namespace`, `pod` and `container` of the holder of its device, core or interface.
enum class Held { no, yes };

struct Metric {
  std::string_view name;
  MetricType type{};
  std::string_view labels;  // "neuroncore, runtime_tag": besides those of the group and of the holder
  Held held{};
  std::string_view help;    // in the text of a scrape and in docs/metrics.md
  std::string_view source;  // in docs/metrics.md: a file, or another origin; "" where the group's `about` is enough
};

// Metrics of one subject, a section of docs/metrics.md.
struct MetricGroup {
  std::string_view title;
  std::string_view labels;  // of every metric of the group, "" for none
  std::string_view about;   // how `source` is to be read
  std::span<const Metric> metrics;
};

// Labels of every series of neuron-monitor; `ultraserver_id` only where there is one.
inline constexpr std::string_view kInstanceLabels =
    "instance_name, instance_id, instance_type, availability_zone, region, subnet_id, ultraserver_id";

// EFA counters are node_amazonefa_<file>, so that dashboards of the EFA node exporter find them.
inline constexpr std::string_view kEfaCounterPrefix = "node_amazonefa_";

[[nodiscard]] std::span<const MetricGroup> metric_groups();  // in the order of a scrape; names are unique

enum class Subject {
  neuron_monitor,
  devices,
  cores,
  efas,
  efa_counters,
  kernel_log,
  agent
};  // the groups, in this order
[[nodiscard]] std::span<const Metric> metrics_of(Subject subject);

}  // namespace neuron::metrics
