#pragma once

#include <string>
#include <string_view>

#include "agent/metrics/metrics_input.h"

namespace neuron::metrics {

// How the answer to a scrape is written: Prometheus' text format 0.0.4, or OpenMetrics 1.0 for who asks for it.
enum class TextFormat { prometheus, openmetrics };

// All metrics of `input` (docs/metrics.md) as text. What nobody could say has no sample, and a family without samples
// is left out. Pure: reads no clock, file or locale; any thread.
[[nodiscard]] std::string render_metrics(const MetricsInput& input, TextFormat format);

// The header Content-Type that goes with the text.
[[nodiscard]] std::string_view content_type(TextFormat format);

}  // namespace neuron::metrics
