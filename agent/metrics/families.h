#pragma once

#include <prometheus/metric_family.h>

#include <chrono>
#include <functional>
#include <vector>

#include "agent/metrics/metrics_input.h"

namespace neuron::metrics {

// A sample of counters that is older than this is as good as none: its values would look like the present. Several
// times the interval at which they are taken (tools/neuron-agent/metrics_sources.cpp).
inline constexpr std::chrono::seconds kOldestUsage{90};

using FamilySink = std::function<void(const std::vector<prometheus::MetricFamily>&)>;

// Gives `sink` the families of a scrape, some at a time, so that those of a large node are not all in memory at once;
// in the order of the table of metrics (metric_table.h). Families without samples are left out. Pure; any thread.
void make_families(const MetricsInput& input, const FamilySink& sink);

}  // namespace neuron::metrics
