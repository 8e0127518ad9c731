#pragma once

#include <prometheus/metric_family.h>

#include <string>
#include <vector>

#include "agent/metrics/exposition.h"

namespace neuron::metrics {

// Appends the families as text; of OpenMetrics all but the final "# EOF". prometheus-cpp has no serializer for
// OpenMetrics, and its own for the other format writes byte by byte through a stream, seven times as slow; a test
// compares what both say. The names of series are the same in both formats. OpenMetrics has stricter types:
// - a counter whose name does not end in "_total" has the type unknown;
// - a gauge whose name ends in "_info" has the type info;
// - the unit is told where the name ends in one (seconds, bytes, ratio).
// Help has neither quotes nor backslashes nor line breaks. Locales do not matter.
void append_text(const std::vector<prometheus::MetricFamily>& families, TextFormat format, std::string& text);

}  // namespace neuron::metrics
