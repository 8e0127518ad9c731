#include "agent/metrics/accept.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <string>

#include "agent/base/parse.h"

namespace neuron::metrics {
namespace {

constexpr std::array<std::string_view, 2> kOpenMetricsVersions = {"1.0.0", "0.0.1"};

std::string lower(std::string_view text) {
  std::string small(text);
  std::transform(small.begin(), small.end(), small.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return small;
}

// One entry of the header.
struct Wish {
  std::string type;     // lower case
  std::string version;  // "" = any
  double weight = 1;    // 0 to 1
};

// "0", "0.5", "1.000"; a weight that is none counts as none given.
double weight_of(std::string_view text) {
  double weight = 1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), weight, std::chars_format::fixed);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  return is_number && weight >= 0 && weight <= 1 ? weight : 1;
}

Wish parse_wish(std::string_view text) {
  Wish wish;
  bool first = true;
  for (const std::string_view raw : split(text, ';')) {
    const std::string part = lower(trim(raw));
    if (first) wish.type = part;
    first = false;
    if (part.starts_with("q=")) wish.weight = weight_of(std::string_view(part).substr(2));
    if (part.starts_with("version=")) wish.version = part.substr(std::string_view("version=").size());
  }
  return wish;
}

bool is_open_metrics(const Wish& wish) {
  const bool known = wish.version.empty() || std::find(kOpenMetricsVersions.begin(), kOpenMetricsVersions.end(),
                                                       wish.version) != kOpenMetricsVersions.end();
  return wish.type == "application/openmetrics-text" && known;
}

}  // namespace

TextFormat format_for(std::string_view accept) {
  double open_metrics = 0;
  double plain = 0;
  for (const std::string_view text : split(accept, ',')) {
    const Wish wish = parse_wish(text);
    if (is_open_metrics(wish)) open_metrics = std::max(open_metrics, wish.weight);
    if (wish.type == "text/plain") plain = std::max(plain, wish.weight);
  }
  return open_metrics > plain ? TextFormat::openmetrics : TextFormat::prometheus;
}

}  // namespace neuron::metrics
