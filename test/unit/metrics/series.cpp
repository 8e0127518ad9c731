#include "test/unit/metrics/series.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "agent/metrics/exposition.h"

namespace neuron::test {

Series::Series(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    const std::size_t blank = line.rfind(' ');
    const bool is_new = all_.emplace(line.substr(0, blank), line.substr(blank + 1)).second;
    EXPECT_TRUE(is_new) << "twice: " << line;
  }
}

Series::Series(const metrics::MetricsInput& input)
    : Series(metrics::render_metrics(input, metrics::TextFormat::prometheus)) {}

std::vector<std::string> Series::of(const std::string& name, const std::vector<std::string>& labels) const {
  std::vector<std::string> values;
  for (const auto& [series, value] : all_) {
    if (series != name && !series.starts_with(name + '{')) continue;
    const bool has_all = std::all_of(labels.begin(), labels.end(), [&one = series](const std::string& label) {
      return one.find('{' + label) != std::string::npos || one.find(',' + label) != std::string::npos;
    });
    if (has_all) values.push_back(value);
  }
  return values;
}

}  // namespace neuron::test
