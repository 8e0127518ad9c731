#include "agent/metrics/exposition.h"

#include "agent/metrics/families.h"
#include "agent/metrics/text_writer.h"

namespace neuron::metrics {

std::string render_metrics(const MetricsInput& input, TextFormat format) {
  std::string text;
  make_families(input,
                [&](const std::vector<prometheus::MetricFamily>& families) { append_text(families, format, text); });
  if (format == TextFormat::openmetrics) text += "# EOF\n";
  return text;
}

std::string_view content_type(TextFormat format) {
  return format == TextFormat::openmetrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                           : "text/plain; version=0.0.4; charset=utf-8";
}

}  // namespace neuron::metrics
