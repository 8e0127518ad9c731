#pragma once

#include <prometheus/metric_family.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/metrics/metric_table.h"

namespace neuron::metrics {

using Labels = std::vector<prometheus::ClientMetric::Label>;

// Families of one scrape, those of a group of the table of metrics, in its order. Sees to it that what nobody could say
// has no sample, that a label's value is printable and bounded whatever was in it, and that a family without samples is
// left out. Not synchronised.
class FamilySet {
 public:
  // One family that samples are added to. Valid as long as the set. Cheap to copy.
  class Family {
   public:
    void add(Labels labels, double value);  // no sample for what is no number
    void add(Labels labels, const std::optional<std::uint64_t>& value);
    void add(Labels labels, const std::optional<double>& value);
    void add(Labels labels, prometheus::ClientMetric::Histogram value);

   private:
    friend class FamilySet;
    explicit Family(prometheus::MetricFamily& family) : family_(&family) {}
    prometheus::ClientMetric& append(Labels labels);

    prometheus::MetricFamily* family_;
  };

  explicit FamilySet(std::span<const Metric> metrics);

  // The family of one of the metrics. Another name is a mistake in the program; its family has no help, which tests
  // find.
  [[nodiscard]] Family operator[](std::string_view metric);

  [[nodiscard]] std::vector<prometheus::MetricFamily> take() &&;

 private:
  std::deque<prometheus::MetricFamily> families_;  // does not move what it holds
};

// `labels` and what follows: with(common, {{"usage_type", "user"}}).
[[nodiscard]] Labels with(const Labels& labels, Labels more);

}  // namespace neuron::metrics
