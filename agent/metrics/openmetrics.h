#pragma once

#include <prometheus/metric_family.h>

#include <string>
#include <vector>

namespace neuron::metrics {

// Appends the families as OpenMetrics 1.0, without the final "# EOF", for which prometheus-cpp has no serializer. The
// names of series are those of the Prometheus format, so that nothing else changes for who scrapes:
// - a counter whose name does not end in "_total", which OpenMetrics demands, has the type unknown;
// - a gauge whose name ends in "_info" has the type info;
// - the unit is told where the name ends in one (seconds, bytes, ratio).
void append_openmetrics(const std::vector<prometheus::MetricFamily>& families, std::string& text);

}  // namespace neuron::metrics
