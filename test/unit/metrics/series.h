#pragma once

#include <map>
#include <string>
#include <vector>

#include "agent/metrics/exposition.h"

namespace neuron::test {

// The samples of a text as a scraper sees them: "name{label="value",…}" to its value as text. For asking in tests.
class Series {
 public:
  explicit Series(const std::string& text);             // either format
  explicit Series(const metrics::MetricsInput& input);  // in Prometheus' format

  // Values of the series of that name which have these labels, given as `label="value"`, among others; by series.
  [[nodiscard]] std::vector<std::string> of(const std::string& name, const std::vector<std::string>& labels = {}) const;
  [[nodiscard]] const std::map<std::string, std::string>& all() const { return all_; }

 private:
  std::map<std::string, std::string> all_;
};

}  // namespace neuron::test
