#include "agent/metrics/family_set.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "agent/base/parse.h"

namespace neuron::metrics {
namespace {

constexpr std::size_t kLongestValue = 255;  // bytes of a label's value: a pod's name may have 253

prometheus::MetricType type_of(MetricType type) {
  switch (type) {
    case MetricType::counter:
      return prometheus::MetricType::Counter;
    case MetricType::histogram:
      return prometheus::MetricType::Histogram;
    case MetricType::gauge:
    case MetricType::info:
      break;
  }
  return prometheus::MetricType::Gauge;
}

}  // namespace

FamilySet::FamilySet(std::span<const Metric> metrics) {
  for (const Metric& metric : metrics) {
    prometheus::MetricFamily& family = families_.emplace_back();
    family.name = metric.name;
    family.help = metric.help;
    family.type = type_of(metric.type);
  }
}

FamilySet::Family FamilySet::operator[](std::string_view metric) {
  const auto found =
      std::find_if(families_.begin(), families_.end(), [metric](const auto& family) { return family.name == metric; });
  if (found != families_.end()) return Family(*found);
  prometheus::MetricFamily& family = families_.emplace_back();
  family.name = metric;
  return Family(family);
}

std::vector<prometheus::MetricFamily> FamilySet::take() && {
  std::vector<prometheus::MetricFamily> families;
  for (prometheus::MetricFamily& family : families_) {
    if (!family.metric.empty()) families.push_back(std::move(family));
  }
  return families;
}

prometheus::ClientMetric& FamilySet::Family::append(Labels labels) {
  prometheus::ClientMetric& metric = family_->metric.emplace_back();
  metric.label = std::move(labels);
  for (auto& label : metric.label) label.value = printable_line(std::move(label.value), kLongestValue);
  return metric;
}

void FamilySet::Family::add(Labels labels, double value) {
  if (!std::isfinite(value)) return;
  prometheus::ClientMetric& metric = append(std::move(labels));
  (family_->type == prometheus::MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
}

void FamilySet::Family::add(Labels labels, const std::optional<std::uint64_t>& value) {
  if (value) add(std::move(labels), static_cast<double>(*value));
}

void FamilySet::Family::add(Labels labels, const std::optional<double>& value) {
  if (value) add(std::move(labels), *value);
}

void FamilySet::Family::add(Labels labels, prometheus::ClientMetric::Histogram value) {
  append(std::move(labels)).histogram = std::move(value);
}

Labels with(const Labels& labels, Labels more) {
  Labels all;
  all.reserve(labels.size() + more.size());
  all.insert(all.end(), labels.begin(), labels.end());
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  return all;
}

}  // namespace neuron::metrics
