#pragma once

#include <string>
#include <string_view>

#include "agent/metrics/metrics_input.h"

namespace neuron::metrics {

// Format of the answer to a scrape: Prometheus' text format 0.0.4, or OpenMetrics 1.0 on request.
enum class TextFormat { prometheus, openmetrics };

// All metrics of `input` (docs/metrics.md) as text. An unknown value has no sample; a family without samples is left
// out. Pure: reads no clock, file or locale; any thread.
[[nodiscard]] std::string render_metrics(const MetricsInput& input, TextFormat format);

// The header Content-Type that goes with the text.
[[nodiscard]] std::string_view content_type(TextFormat format);

// The format that a client prefers by its header Accept (RFC 9110, 12.5.1): OpenMetrics where the header names a
// supported version of it with a higher weight than plain text; else Prometheus' format, also for an empty or malformed
// header. `accept` is foreign. Pure.
[[nodiscard]] TextFormat format_for(std::string_view accept);

}  // namespace neuron::metrics
