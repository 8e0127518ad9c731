#include "agent/metrics/openmetrics.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string_view>

namespace neuron::metrics {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

// What a family is called apart from its samples, and as what.
struct Head {
  std::string_view name;
  std::string_view type;
};

Head head_of(const MetricFamily& family) {
  const std::string_view name = family.name;
  const auto without = [name](std::string_view suffix) { return name.substr(0, name.size() - suffix.size()); };
  if (family.type == MetricType::Histogram) return {name, "histogram"};
  if (family.type == MetricType::Counter) {
    return name.ends_with("_total") ? Head{without("_total"), "counter"} : Head{name, "unknown"};
  }
  return name.ends_with("_info") ? Head{without("_info"), "info"} : Head{name, "gauge"};
}

// A number as short as it can be and still be read back the same; of any locale.
void append_number(double value, std::string& text) {
  if (std::isinf(value)) {
    text += value > 0 ? "+Inf" : "-Inf";
    return;
  }
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  text.append(digits.data(), end.ptr);
}

void append_escaped(std::string_view value, std::string& text) {
  for (const char c : value) {
    if (c == '\\' || c == '"') text += '\\';
    if (c == '\n')
      text += "\\n";
    else
      text += c;
  }
}

void append_label(std::string_view name, std::string_view value, std::string& text) {
  text += text.back() == '{' ? "" : ",";
  text.append(name).append("=\"");
  append_escaped(value, text);
  text += '"';
}

// `bound`: value of the label "le" of a bucket; nullptr for none.
void append_sample(std::string_view name, std::string_view suffix, const ClientMetric& metric, const double* bound,
                   double value, std::string& text) {
  text.append(name).append(suffix);
  if (!metric.label.empty() || bound != nullptr) {
    text += '{';
    for (const auto& label : metric.label) append_label(label.name, label.value, text);
    if (bound != nullptr) {
      append_label("le", "", text);
      text.pop_back();
      append_number(*bound, text);
      text += '"';
    }
    text += '}';
  }
  text += ' ';
  append_number(value, text);
  text += '\n';
}

void append_histogram(std::string_view name, const ClientMetric& metric, std::string& text) {
  const auto number = [](std::uint64_t count) { return static_cast<double>(count); };
  for (const auto& bucket : metric.histogram.bucket) {
    append_sample(name, "_bucket", metric, &bucket.upper_bound, number(bucket.cumulative_count), text);
  }
  append_sample(name, "_count", metric, nullptr, number(metric.histogram.sample_count), text);
  append_sample(name, "_sum", metric, nullptr, metric.histogram.sample_sum, text);
}

void append_head(const Head& head, std::string_view help, std::string& text) {
  text.append("# TYPE ").append(head.name).append(" ").append(head.type).append("\n");
  for (const std::string_view unit : {"seconds", "bytes", "ratio"}) {
    if (head.type != "info" && head.name.ends_with(unit)) {
      text.append("# UNIT ").append(head.name).append(" ").append(unit).append("\n");
    }
  }
  text.append("# HELP ").append(head.name).append(" ");
  append_escaped(help, text);
  text += '\n';
}

}  // namespace

void append_openmetrics(const std::vector<MetricFamily>& families, std::string& text) {
  for (const MetricFamily& family : families) {
    append_head(head_of(family), family.help, text);
    for (const ClientMetric& metric : family.metric) {
      if (family.type == MetricType::Histogram) {
        append_histogram(family.name, metric, text);
      } else {
        const bool counts = family.type == MetricType::Counter;
        append_sample(family.name, "", metric, nullptr, counts ? metric.counter.value : metric.gauge.value, text);
      }
    }
  }
}

}  // namespace neuron::metrics
