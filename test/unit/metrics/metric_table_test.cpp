// The table of metrics against what is rendered, and docs/metrics.md against the table.
#include "agent/metrics/families.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>

#include "agent/base/parse.h"
#include "agent/metrics/exposition.h"
#include "test/fakes/paths.h"
#include "test/unit/metrics/loaded_node.h"

namespace neuron::test {
namespace {

using metrics::Held;
using metrics::Metric;
using metrics::MetricGroup;
using metrics::MetricsInput;
using metrics::MetricType;

using Names = std::set<std::string>;

Names names_in(std::string_view list) {
  Names names;
  for (const std::string_view name : split(list, ',')) names.emplace(name);
  return names;
}

struct Row {
  const Metric* metric = nullptr;
  Names labels;
};

std::map<std::string, Row, std::less<>> rows() {
  std::map<std::string, Row, std::less<>> all;
  for (const MetricGroup& group : metrics::metric_groups()) {
    for (const Metric& metric : group.metrics) {
      Row row{&metric, names_in(group.labels)};
      row.labels.merge(names_in(metric.labels));
      if (metric.held == Held::yes) row.labels.merge(Names{"namespace", "pod", "container"});
      EXPECT_TRUE(all.emplace(metric.name, row).second) << "twice: " << metric.name;
    }
  }
  return all;
}

prometheus::MetricType type_of(const Metric& metric) {
  if (metric.type == MetricType::counter) return prometheus::MetricType::Counter;
  if (metric.type == MetricType::histogram) return prometheus::MetricType::Histogram;
  return prometheus::MetricType::Gauge;
}

// A node on which everything has a sample: processes, both generations of ECC counters.
MetricsInput everything() {
  MetricsInput input = loaded_node("trn2.48xlarge", 1);
  model::KernelLog& log = host_of(input).kernel_log;
  log.state = model::KernelLogState::reading;
  log.node_health = {model::HealthState::healthy, "", "", ""};
  log.errors.push_back({model::KernelErrorKind::sram, "SRAM_UNCORRECTABLE_ERROR", 3, 1, {}, "", 2, {}, {}});
  for (model::NeuronDevice& device : host_of(input).devices) {
    device.processes = {{1000 + device.index, std::uint8_t{0xff}, 1000, 2000}};
    device.signals.hbm_ecc_errors = device.signals.repairable_hbm_ecc_errors = device.signals.sram_ecc_errors = 0;
    auto before = std::make_shared<model::UsageSample>(*input.before);
    for (model::UsageSample* sample : {before.get(), &usage_of(input)}) {
      sample->processes.push_back({1000 + device.index, "python", {}, sample == before.get() ? 0U : 5U, 0U, {}, 1U});
    }
    input.before = before;
  }
  return input;
}

TEST(MetricTable, EveryFamilyIsInItWithItsLabels) {
  const auto table = rows();
  Names seen;
  metrics::make_families(everything(), [&](const std::vector<prometheus::MetricFamily>& families) {
    for (const prometheus::MetricFamily& family : families) {
      seen.insert(family.name);
      const auto row = table.find(family.name);
      ASSERT_NE(row, table.end()) << family.name;
      EXPECT_EQ(family.help, row->second.metric->help) << family.name;
      EXPECT_EQ(family.type, type_of(*row->second.metric)) << family.name;
      for (const prometheus::ClientMetric& metric : family.metric) {
        Names labels;
        for (const auto& label : metric.label) EXPECT_TRUE(labels.insert(label.name).second) << family.name;
        EXPECT_EQ(labels, row->second.labels) << family.name;
      }
    }
  });
  Names all;
  for (const auto& [name, row] : table) all.insert(name);
  EXPECT_EQ(seen, all);
}

TEST(MetricTable, IsWhole) {
  for (const auto& [name, row] : rows()) {
    EXPECT_FALSE(row.metric->help.empty()) << name;
    EXPECT_FALSE(row.metric->help.ends_with('.')) << name;
    EXPECT_EQ(row.metric->help.find_first_of("\"\\\n"), std::string_view::npos) << name;
    EXPECT_EQ(row.metric->type == MetricType::info, name.ends_with("_info")) << name;
  }
  for (const MetricGroup& group : metrics::metric_groups()) {
    EXPECT_FALSE(group.about.empty()) << group.title;
    for (const Metric& metric : group.metrics) {
      EXPECT_EQ(metric.source.empty(), group.metrics.front().source.empty()) << metric.name;
    }
  }
}

// Series of one scrape; a histogram counts as its buckets, sum and count.
std::size_t count_series(const MetricsInput& input) {
  std::size_t count = 0;
  metrics::make_families(input, [&count](const std::vector<prometheus::MetricFamily>& families) {
    for (const prometheus::MetricFamily& family : families) {
      for (const prometheus::ClientMetric& metric : family.metric) {
        const bool histogram = family.type == prometheus::MetricType::Histogram;
        count += histogram ? metric.histogram.bucket.size() + 2 : 1;
      }
    }
  });
  return count;
}

// docs/metrics.md says these numbers: the largest node there is, each core as a unit of its own, and as usual.
TEST(MetricTable, TheLargestNodeHasSoManySeries) {
  const std::size_t most = count_series(everything());
  const std::size_t usual = count_series(loaded_node("trn2.48xlarge", 2));
  EXPECT_LE(most, 5000U);
  std::ifstream file(fakes::source_dir() + "/docs/metrics.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  EXPECT_NE(page.find(std::to_string(most) + " series"), std::string::npos) << most;
  EXPECT_NE(page.find(std::to_string(usual) + " series"), std::string::npos) << usual;
}

std::string row_of(const Metric& metric, Held of_all) {
  std::string text = "- `" + std::string(metric.name) + "` (" + std::string(to_string(metric.type));
  for (const std::string_view label : split(metric.labels, ',')) text += ", `" + std::string(label) + "`";
  if (metric.held == Held::yes && of_all == Held::no) text += ", holder";
  text += "): " + std::string(metric.help);
  if (!metric.source.empty()) text += ". From " + std::string(metric.source);
  return text + '\n';
}

std::string generated() {
  std::string text;
  for (const MetricGroup& group : metrics::metric_groups()) {
    const auto held = [](const Metric& metric) { return metric.held == Held::yes; };
    const Held of_all = std::ranges::all_of(group.metrics, held) ? Held::yes : Held::no;
    text += "### " + std::string(group.title) + "\n\n" + std::string(group.about);
    if (!group.labels.empty()) {
      std::string labels;
      for (const std::string_view label : split(group.labels, ',')) {
        labels += (labels.empty() ? "`" : ", `") + std::string(label) + "`";
      }
      text += " Labels of all: " + labels + (of_all == Held::yes ? ", holder." : ".");
    }
    text += "\n\n";
    for (const Metric& metric : group.metrics) text += row_of(metric, of_all);
    text += '\n';
  }
  return text;
}

constexpr std::string_view kBegin = "<!-- generated from the table of metrics: UPDATE_GOLDEN=1 -->\n\n";
constexpr std::string_view kEnd = "<!-- end of what is generated -->\n";

TEST(MetricDocument, HasTheRowsOfTheTable) {
  const std::string path = fakes::source_dir() + "/docs/metrics.md";
  std::ifstream file(path);
  ASSERT_TRUE(file) << path;
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  const std::size_t begin = page.find(kBegin);
  const std::size_t end = page.find(kEnd);
  ASSERT_NE(begin, std::string::npos);
  ASSERT_NE(end, std::string::npos);
  const std::size_t first = begin + kBegin.size();
  if (std::getenv("UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path) << page.substr(0, first) + generated() + page.substr(end);
    return;
  }
  EXPECT_EQ(page.substr(first, end - first), generated()) << "UPDATE_GOLDEN=1 writes it";
}

}  // namespace
}  // namespace neuron::test
