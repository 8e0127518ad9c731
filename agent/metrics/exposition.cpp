#include "agent/metrics/exposition.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "agent/base/parse.h"
#include "agent/metrics/families.h"

namespace neuron::metrics {
namespace {

constexpr std::array<std::string_view, 2> kOpenMetricsVersions = {"1.0.0", "0.0.1"};

std::string lower(std::string_view text) {
  std::string small(text);
  std::transform(small.begin(), small.end(), small.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return small;
}

// One entry of the header Accept.
struct AcceptEntry {
  std::string type;     // lower case
  std::string version;  // "" = any
  double weight = 1;    // 0 to 1
};

// "0", "0.5", "1.000"; 1 for a malformed weight.
double weight_of(std::string_view text) {
  double weight = 1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), weight, std::chars_format::fixed);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  return is_number && weight >= 0 && weight <= 1 ? weight : 1;
}

AcceptEntry parse_entry(std::string_view text) {
  AcceptEntry entry;
  bool first = true;
  for (const std::string_view raw : split(text, ';')) {
    const std::string part = lower(trim(raw));
    if (first) entry.type = part;
    first = false;
    if (part.starts_with("q=")) entry.weight = weight_of(std::string_view(part).substr(2));
    if (part.starts_with("version=")) entry.version = part.substr(std::string_view("version=").size());
  }
  return entry;
}

bool is_open_metrics(const AcceptEntry& entry) {
  const bool known =
      entry.version.empty() || std::ranges::find(kOpenMetricsVersions, entry.version) != kOpenMetricsVersions.end();
  return entry.type == "application/openmetrics-text" && known;
}

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using FamilyType = prometheus::MetricType;

// Name and type in the lines before the samples.
struct Head {
  std::string_view name;
  std::string_view type;
};

Head plain_head_of(const MetricFamily& family) {
  switch (family.type) {
    case FamilyType::Counter:
      return {family.name, "counter"};
    case FamilyType::Histogram:
      return {family.name, "histogram"};
    default:
      return {family.name, "gauge"};
  }
}

Head open_head_of(const MetricFamily& family) {
  const std::string_view name = family.name;
  const auto without = [name](std::string_view suffix) { return name.substr(0, name.size() - suffix.size()); };
  if (family.type == FamilyType::Histogram) return {name, "histogram"};
  if (family.type == FamilyType::Counter) {
    return name.ends_with("_total") ? Head{without("_total"), "counter"} : Head{name, "unknown"};
  }
  return name.ends_with("_info") ? Head{without("_info"), "info"} : Head{name, "gauge"};
}

// Counts as whole numbers; others in the shortest form that reads back as the same value. Independent of the locale.
void append_number(double value, std::string& text) {
  constexpr double kExact = 9e15;  // below 2^53, where every whole number is exact
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

// Appends the families; of OpenMetrics all but the final "# EOF". prometheus-cpp has no serializer for OpenMetrics, and
// its own for the other format writes byte by byte through a stream, seven times as slow; a test compares the two. The
// names of series are the same in both formats. OpenMetrics has stricter types:
// - a counter whose name does not end in "_total" has the type unknown;
// - a gauge whose name ends in "_info" has the type info;
// - a unit is given where the name ends in one (seconds, bytes, ratio).
// Help has neither quotes nor backslashes nor line breaks. Independent of the locale.
void append_text(const std::vector<MetricFamily>& families, TextFormat format, std::string& text) {
  for (const MetricFamily& family : families) {
    append_head(family, format, text);
    for (const ClientMetric& metric : family.metric) {
      if (family.type == FamilyType::Histogram) {
        append_histogram(family.name, metric, text);
      } else {
        const bool counts = family.type == FamilyType::Counter;
        append_sample(family.name, "", metric, nullptr, counts ? metric.counter.value : metric.gauge.value, text);
      }
    }
  }
}

}  // namespace

TextFormat format_for(std::string_view accept) {
  double open_metrics = 0;
  double plain = 0;
  for (const std::string_view text : split(accept, ',')) {
    const AcceptEntry entry = parse_entry(text);
    if (is_open_metrics(entry)) open_metrics = std::max(open_metrics, entry.weight);
    if (entry.type == "text/plain") plain = std::max(plain, entry.weight);
  }
  return open_metrics > plain ? TextFormat::openmetrics : TextFormat::prometheus;
}

std::string render_metrics(const MetricsInput& input, TextFormat format) {
  std::string text;
  make_families(input, [&](const std::vector<MetricFamily>& families) { append_text(families, format, text); });
  if (format == TextFormat::openmetrics) text += "# EOF\n";
  return text;
}

std::string_view content_type(TextFormat format) {
  return format == TextFormat::openmetrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                           : "text/plain; version=0.0.4; charset=utf-8";
}

}  // namespace neuron::metrics
