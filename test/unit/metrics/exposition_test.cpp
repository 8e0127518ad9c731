// The text of a scrape: of simulated hosts as golden files, in both formats, in any locale, as promtool reads it.
#include "agent/metrics/exposition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <locale>
#include <regex>
#include <sstream>

#include "agent/base/child_process.h"
#include "agent/health/assess.h"
#include "agent/host/scanner.h"
#include "agent/host/usage_reader.h"
#include "agent/metrics/families.h"
#include "test/fakes/fake_host.h"
#include "test/unit/metrics/loaded_node.h"
#include "test/unit/metrics/series.h"
#include "test/unit/render/golden.h"

namespace neuron::test {
namespace {

using fakes::FakeHost;
using metrics::MetricsInput;
using metrics::TextFormat;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace std::chrono_literals;
using namespace std::string_literals;

// A simulated host as the agent reads it, at two moments ten seconds apart; `between` happens in the meantime.
template <typename Between>
MetricsInput read_twice(FakeHost& host, Between between) {
  const auto root = *host::FsRoot::open(host.path());
  host::Scanner::Options options;
  options.with_topology = false;
  host::Scanner scanner(root, options);
  health::AssessMemory memory;
  const auto first = health::assess(scanner.scan(), memory, SteadyTime{}).host;
  host::UsageReader reader(root);
  model::UsageRequest all;
  all.efa_every_counter = all.flops = all.executions = all.memory_kinds_of_all = true;
  MetricsInput input;
  input.before = std::make_shared<model::UsageSample>(reader.read(first, all, SteadyTime{}));
  between();
  auto snapshot = std::make_shared<model::Snapshot>();
  snapshot->host = health::assess(scanner.scan(), memory, SteadyTime{} + 10s).host;
  model::UsageSample now = reader.read(snapshot->host, all, SteadyTime{} + 10s);
  if (now.cpu) {  // a simulated machine's clock stands still
    now.cpu->user += 100;
    now.cpu->idle += 900;
  }
  input.now = std::make_shared<model::UsageSample>(std::move(now));
  input.usage_age = 2s;
  input.snapshot = snapshot;
  input.instance = {"node-1", snapshot->host.instance_id, snapshot->host.instance_type, "", "", "", ""};
  input.agent.version = "0.1.0";
  input.agent.start_time_seconds = 1789180800;
  return input;
}

MetricsInput read_twice(FakeHost& host) {
  return read_twice(host, [] {});
}

void expect_text(const std::string& name, const MetricsInput& input, TextFormat format = TextFormat::prometheus) {
  expect_golden_file("test/unit/metrics/golden/" + name, render_metrics(input, format));
}

TEST(Exposition, IdleHost) {
  FakeHost host("trn1.2xlarge");
  host.write();
  expect_text("idle.txt", read_twice(host));
}

TEST(Exposition, BusyHost) {
  FakeHost host("trn2.3xlarge");
  host.write();
  MetricsInput input = read_twice(host, [&] {
    for (const char* core : {"neuron0/core0", "neuron0/core1"}) {
      host.set(core, "nc_time_in_use=5000000", "flop_count=99", "inference_count=7", "device_mem=4096", "success=7",
               "timeout=1", "hw_error=0");
    }
    host.set("neuron0", "power=POWER_STATUS_VALID,1789180860,1.00,30.00,20.00");
  });
  holdings::Holding& holding = holdings_of(input).emplace_back();
  holding.units = holding.cores = {0};
  holding.devices = {0};
  holding.holder = holding.shown_as = "default/train-0/worker";
  input.offered.push_back({model::Resource::neuroncore, 4, 4, 1, 3, 2});
  input.agent.calls["Allocate"] = {{0.001, 0.01}, {1, 2, 1}, 0.5};
  input.agent.refusals["held"] = 1;
  input.agent.registered["aws.amazon.com/neuroncore"] = true;
  expect_text("busy.txt", input);
  expect_text("busy.openmetrics", input, TextFormat::openmetrics);
}

TEST(Exposition, IllHost) {
  FakeHost host("trn2.3xlarge");
  host.write();
  expect_text("ill.txt", read_twice(host, [&] {
                host.set("neuron0", "mem_ecc_repairable_uncorrected=2", "sram_ecc_corrected=5");
                host.set("neuron0/core3", "hw_nc_ue_error=1");
              }));
}

TEST(Exposition, HostWithInterfacesAndNoDevices) {
  FakeHost host("p4d.24xlarge");
  host.write();
  expect_text("no_devices.txt", read_twice(host));
}

TEST(Exposition, HostWithoutADriver) {
  FakeHost host("trn1.2xlarge");
  host.without(sim::Part::driver).write();
  expect_text("no_driver.txt", read_twice(host));
}

void expect_same_series(const std::string& text, const std::string& other_text) {
  const Series series(text);
  const Series others(other_text);
  ASSERT_EQ(series.all().size(), others.all().size());
  for (auto one = series.all().begin(), other = others.all().begin(); one != series.all().end(); ++one, ++other) {
    EXPECT_EQ(one->first, other->first);
    EXPECT_DOUBLE_EQ(std::stod(one->second), std::stod(other->second)) << one->first;
  }
}

std::vector<std::string> comments_of(const std::string& text) {
  std::vector<std::string> comments;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) comments.push_back(line);
  }
  return comments;
}

TEST(Exposition, SaysWhatTheLibraryWouldSay) {
  const MetricsInput input = loaded_node("trn2.48xlarge", 2);
  const std::string ours = render_metrics(input, TextFormat::prometheus);
  std::string theirs;
  metrics::make_families(input, [&theirs](const std::vector<prometheus::MetricFamily>& families) {
    theirs += prometheus::TextSerializer().Serialize(families);
  });
  expect_same_series(ours, theirs);
  EXPECT_EQ(comments_of(ours), comments_of(theirs));
}

TEST(Exposition, BothFormatsSayTheSame) {
  const MetricsInput input = loaded_node("trn2.48xlarge", 2);
  expect_same_series(render_metrics(input, TextFormat::prometheus), render_metrics(input, TextFormat::openmetrics));
}

TEST(Exposition, OpenMetricsEndsAndNamesCounters) {
  const std::string text = render_metrics(loaded_node("trn1.32xlarge", 1), TextFormat::openmetrics);
  EXPECT_TRUE(text.ends_with("\n# EOF\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE hardware_ecc_events counter\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE neuron_hardware info\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE node_amazonefa_tx_bytes unknown\n# UNIT node_amazonefa_tx_bytes bytes\n"));
  EXPECT_THAT(text, HasSubstr("le=\"+Inf\"} "));
  EXPECT_EQ(content_type(TextFormat::openmetrics), "application/openmetrics-text; version=1.0.0; charset=utf-8");
  EXPECT_EQ(content_type(TextFormat::prometheus), "text/plain; version=0.0.4; charset=utf-8");
}

struct DecimalComma : std::numpunct<char> {
  [[nodiscard]] char do_decimal_point() const override { return ','; }
  [[nodiscard]] char do_thousands_sep() const override { return '.'; }
  [[nodiscard]] std::string do_grouping() const override { return "\3"; }
};

TEST(Exposition, IsTheSameInEveryLocale) {
  const MetricsInput input = loaded_node("trn1.2xlarge", 1);
  const std::string plain = render_metrics(input, TextFormat::prometheus);
  const std::string open = render_metrics(input, TextFormat::openmetrics);
  const std::locale before = std::locale::global(std::locale(std::locale::classic(), new DecimalComma));
  const std::string plain_with_comma = render_metrics(input, TextFormat::prometheus);
  const std::string open_with_comma = render_metrics(input, TextFormat::openmetrics);
  std::locale::global(before);
  EXPECT_EQ(plain, plain_with_comma);
  EXPECT_EQ(open, open_with_comma);
}

TEST(Exposition, ForeignTextIsMadeHarmless) {
  MetricsInput input = loaded_node("trn1.2xlarge", 1);
  input.instance.name = "a\"b\\c\n\x1b[31m\xff} 1";
  input.agent.version = std::string(4000, 'x');
  for (const TextFormat format : {TextFormat::prometheus, TextFormat::openmetrics}) {
    const std::string text = render_metrics(input, format);
    EXPECT_THAT(text, HasSubstr(R"(instance_name="a\"b\\c\\x0a\\x1b[31m\\xff} 1")"));
    EXPECT_THAT(text, Not(HasSubstr("\xff")));
    EXPECT_THAT(text, HasSubstr("xxx...\"} 1\n"));
    std::istringstream lines(text);
    const std::regex sample(R"re([a-z_]+(\{([a-z_]+="([^"\\]|\\.)*",?)+\})? [-+.e0-9]+)re");
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with('#')) {
        EXPECT_TRUE(std::regex_match(line, sample)) << line;
      }
    }
  }
}

// promtool's complaints are of names that others chose: counters of the EFA node exporter without "_total", and one of
// neuron-monitor's.
TEST(Exposition, PromtoolReadsIt) {
  if (::access("/usr/bin/promtool", X_OK) != 0) GTEST_SKIP() << "no /usr/bin/promtool here";
  const auto folder = std::filesystem::temp_directory_path() / ("metrics-" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  std::ofstream(folder / "text") << render_metrics(loaded_node("trn2.48xlarge", 1), TextFormat::prometheus);
  const auto checked = run_program({"/bin/sh", "-c", "exec promtool check metrics < " + (folder / "text").string()},
                                   30s, std::size_t{1} << 20U);
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(checked) << checked.error().message;
  std::istringstream lines(checked->output + checked->errors);
  for (std::string line; std::getline(lines, line);) {
    const bool efa_counter =
        line.starts_with("node_amazonefa_") && line.ends_with("counter metrics should have \"_total\" suffix");
    EXPECT_TRUE(efa_counter || line.starts_with("system_vcpu_count ")) << line;
  }
}

}  // namespace
}  // namespace neuron::test
