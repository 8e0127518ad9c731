#include "agent/metrics/exposition.h"

#include <prometheus/text_serializer.h>

#include "agent/metrics/families.h"
#include "agent/metrics/openmetrics.h"

namespace neuron::metrics {

std::string render_metrics(const MetricsInput& input, TextFormat format) {
  std::string text;
  const prometheus::TextSerializer serializer;
  make_families(input, [&](const std::vector<prometheus::MetricFamily>& families) {
    if (format == TextFormat::openmetrics)
      append_openmetrics(families, text);
    else
      text += serializer.Serialize(families);  // in the classic locale, whatever the program's is
  });
  if (format == TextFormat::openmetrics) text += "# EOF\n";
  return text;
}

std::string_view content_type(TextFormat format) {
  return format == TextFormat::openmetrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                           : "text/plain; version=0.0.4; charset=utf-8";
}

}  // namespace neuron::metrics
