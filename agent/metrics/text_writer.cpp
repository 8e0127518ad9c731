#include "agent/metrics/text_writer.h"

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

Head plain_head_of(const MetricFamily& family) {
  switch (family.type) {
    case MetricType::Counter:
      return {family.name, "counter"};
    case MetricType::Histogram:
      return {family.name, "histogram"};
    default:
      return {family.name, "gauge"};
  }
}

Head open_head_of(const MetricFamily& family) {
  const std::string_view name = family.name;
  const auto without = [name](std::string_view suffix) { return name.substr(0, name.size() - suffix.size()); };
  if (family.type == MetricType::Histogram) return {name, "histogram"};
  if (family.type == MetricType::Counter) {
    return name.ends_with("_total") ? Head{without("_total"), "counter"} : Head{name, "unknown"};
  }
  return name.ends_with("_info") ? Head{without("_info"), "info"} : Head{name, "gauge"};
}

// Counts as whole numbers; others as short as they can be and still be read back the same. Of no locale.
void append_number(double value, std::string& text) {
  constexpr double kExact = 9e15;  // below 2^53, where every whole number has a double of its own
  if (std::isinf(value)) {
    text += value > 0 ? "+Inf" : "-Inf";
    return;
  }
  std::array<char, 32> digits{};
  char* const end = digits.data() + digits.size();
  const bool whole = std::trunc(value) == value && std::abs(value) < kExact;
  const auto written = whole ? std::to_chars(digits.data(), end, static_cast<std::int64_t>(value))
                             : std::to_chars(digits.data(), end, value);
  text.append(digits.data(), written.ptr);
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

void append_comment(std::string_view keyword, const Head& head, std::string_view what, std::string& text) {
  text.append("# ").append(keyword).append(" ").append(head.name).append(" ").append(what).append("\n");
}

void append_head(const MetricFamily& family, TextFormat format, std::string& text) {
  const bool open = format == TextFormat::openmetrics;
  const Head head = open ? open_head_of(family) : plain_head_of(family);
  append_comment("HELP", head, family.help, text);
  append_comment("TYPE", head, head.type, text);
  if (!open || head.type == "info") return;
  for (const std::string_view unit : {"seconds", "bytes", "ratio"}) {
    if (head.name.ends_with(unit)) append_comment("UNIT", head, unit, text);
  }
}

}  // namespace

void append_text(const std::vector<MetricFamily>& families, TextFormat format, std::string& text) {
  for (const MetricFamily& family : families) {
    append_head(family, format, text);
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
