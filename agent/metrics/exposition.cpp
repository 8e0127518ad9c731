#include "agent/metrics/exposition.h"

namespace neuron::metrics {

std::string render_metrics(const MetricsInput& /*input*/, TextFormat format) {
  return format == TextFormat::openmetrics ? "# EOF\n" : "";
}

std::string_view content_type(TextFormat format) {
  return format == TextFormat::openmetrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                           : "text/plain; version=0.0.4; charset=utf-8";
}

}  // namespace neuron::metrics
