// A day on one node: which share of the requests got a set the runtime accepts, under our allocator, other policies and
// a bound, all on the same streams. Prints tables; writes CSV and SVG on request (docs/allocation.md).
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "test/bench/fragmentation_plot.h"
#include "test/bench/fragmentation_simulation.h"
#include "test/unit/core/make_host.h"

namespace neuron::bench {
namespace {

struct Settings {
  int seeds = 200;
  double load = 0.8;
  std::string csv;      // file, "" none
  std::string svg_dir;  // folder, "" none
};

constexpr std::uint64_t kFirstSeed = 20260101;

const std::vector<std::string> kNodes = {"trn1.32xlarge", "trn2.48xlarge", "inf2.48xlarge"};
const std::string kBound = "bound by count";

struct Row {
  std::string node;
  std::string mix;
  Waiting waiting = Waiting::lost;
  double load = 0;
  std::string policy;
  Measures measures;
};

std::vector<Policy> policies(std::uint64_t seed) {
  return {ours(), aligned_first_fit(), pairwise_greedy(), lowest_index(), kubelet_order(seed)};
}

// One row per policy and one for the bound, over all seeds.
std::vector<Row> run_cell(const Fabric& fabric, const std::string& node, const Mix& mix, Waiting waiting, double load,
                          int seeds) {
  std::vector<Row> rows;
  for (const Policy& policy : policies(0)) rows.push_back({node, mix.name, waiting, load, policy.name, {}});
  rows.push_back({node, mix.name, waiting, load, kBound, {}});
  for (int i = 0; i < seeds; ++i) {
    const std::uint64_t seed = kFirstSeed + static_cast<std::uint64_t>(i);
    const std::vector<Request> stream = make_stream(fabric.topology(), mix, load, seed);
    std::size_t row = 0;
    for (const Policy& policy : policies(seed)) rows[row++].measures += simulate(fabric, policy, stream, waiting);
    rows[row].measures += simulate_by_count(fabric, stream, waiting);
  }
  return rows;
}

const char* text_of(Waiting waiting) {
  return waiting == Waiting::lost ? "lost" : "queued";
}

double to_bound(const std::vector<Row>& rows, std::size_t i) {
  return rows[i].measures.fitted_share() / rows.back().measures.fitted_share();
}

void print_line(const Row& row, double of_bound) {
  const Measures& m = row.measures;
  const auto or_dash = [](bool there, int digits, double value) {
    return there ? fmt::format("{:.{}f}", value, digits) : std::string("-");
  };
  const auto share = [&](double part) { return part / m.offered; };
  const bool bound = row.policy == kBound;
  const bool lost = row.waiting == Waiting::lost;
  const bool nics = m.with_nics > 0;
  fmt::print("  {:<18} {:>7.4f} {:>9.4f} {:>8} {:>7.4f} {:>8} {:>7} {:>6} {:>6} {:>7} {:>6}\n", row.policy,
             m.fitted_share(), of_bound, or_dash(lost, 4, m.room_share()), m.work_share(),
             or_dash(!bound, 4, share(m.refused)), or_dash(!bound, 4, share(m.missed)),
             or_dash(!bound, 3, m.mean_hops()), or_dash(nics, 3, m.aligned_share()),
             or_dash(nics, 3, static_cast<double>(m.alignable_nics) / m.with_nics), or_dash(!lost, 1, m.mean_wait()));
}

void print_cell(const std::vector<Row>& rows) {
  fmt::print("\n{}, {}, {} ({} requests)\n", rows.front().node, rows.front().mix, text_of(rows.front().waiting),
             rows.front().measures.offered);
  fmt::print("  {:<18} {:>7} {:>9} {:>8} {:>7} {:>8} {:>7} {:>6} {:>6} {:>7} {:>6}\n", "policy", "fitted", "of bound",
             "of room", "work", "refused", "missed", "hops", "NICs", "(could)", "wait");
  for (std::size_t i = 0; i < rows.size(); ++i) print_line(rows[i], to_bound(rows, i));
}

bool write_csv(const std::string& path, const std::vector<Row>& rows) {
  std::ofstream file(path);
  file << "node,mix,waiting,load,policy,offered,fitted,room,refused,missed,work_share,mean_hops,"
          "with_nics,aligned_nics,alignable_nics,mean_wait\n";
  for (const Row& row : rows) {
    const Measures& m = row.measures;
    file << fmt::format("{},{},{},{},{},{},{},{},{},{},{:.5f},{:.4f},{},{},{},{:.2f}\n", row.node, row.mix,
                        text_of(row.waiting), row.load, row.policy, m.offered, m.fitted, m.room, m.refused, m.missed,
                        m.work_share(), m.mean_hops(), m.with_nics, m.aligned_nics, m.alignable_nics, m.mean_wait());
  }
  file.flush();
  return file.good();
}

// Panels are nodes, groups are mixes, bars are policies.
BarChart chart_of(const std::vector<Row>& rows, const std::string& title, const std::string& axis,
                  const std::function<std::optional<double>(const Measures&)>& value, bool with_bound) {
  BarChart chart{title, axis, {}, {}};
  for (const Row& row : rows) {
    if (!with_bound && row.policy == kBound) continue;
    const auto bar = value(row.measures);
    if (!bar) continue;
    if (chart.panels.empty() || chart.panels.back().name != row.node) chart.panels.push_back({row.node, {}});
    auto& groups = chart.panels.back().groups;
    if (groups.empty() || groups.back().name != row.mix) groups.push_back({row.mix, {}});
    groups.back().bars.push_back(*bar);
    if (chart.panels.size() == 1 && groups.size() == 1) chart.series.push_back(row.policy);
  }
  return chart;
}

bool write_svgs(const std::string& folder, const std::vector<Row>& all) {
  std::vector<Row> lost;
  for (const Row& row : all) {
    if (row.waiting == Waiting::lost) lost.push_back(row);
  }
  const auto fitted = chart_of(
      lost, "Requests that started with a valid shape", "share of requests",
      [](const Measures& m) { return std::optional(m.fitted_share()); }, true);
  const auto nics = chart_of(
      lost, "Started requests whose NICs are all nearest to their devices", "share of requests with NICs",
      [](const Measures& m) { return m.with_nics > 0 ? std::optional(m.aligned_share()) : std::nullopt; }, false);
  const auto save = [&](const std::string& name, const BarChart& chart) {
    std::ofstream file(folder + "/" + name);
    file << render_svg(chart);
    file.flush();
    return file.good();
  };
  return save("fragmentation.svg", fitted) && save("nic-alignment.svg", nics);
}

// Ours against the bound as the node gets fuller.
void print_sweep(const Fabric& fabric, const std::string& node, int seeds) {
  for (const Mix& mix : mixes_of(fabric.topology())) {
    fmt::print("{:<14} {:<10}", node, mix.name);
    for (const double load : {0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2}) {
      const std::vector<Row> rows = run_cell(fabric, node, mix, Waiting::lost, load, seeds);
      fmt::print(" {:>7.4f}", to_bound(rows, 0));
    }
    fmt::print("\n");
  }
}

int run(const Settings& settings) {
  fmt::print("{} seeds, a day each after {} h of warm-up, offered load {}\n", settings.seeds, kWarmUp / 60,
             settings.load);
  std::vector<Row> all;
  std::vector<Fabric> fabrics;
  for (const std::string& node : kNodes) {
    fabrics.emplace_back(test::topology_of(node));
    for (const Waiting waiting : {Waiting::lost, Waiting::queued}) {
      for (const Mix& mix : mixes_of(fabrics.back().topology())) {
        const std::vector<Row> rows = run_cell(fabrics.back(), node, mix, waiting, settings.load, settings.seeds);
        print_cell(rows);
        all.insert(all.end(), rows.begin(), rows.end());
      }
    }
  }
  fmt::print(
      "\nours / bound by count, requests lost, by offered load\n{:<25} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7}\n", "",
      0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2);
  for (std::size_t i = 0; i < kNodes.size(); ++i) print_sweep(fabrics[i], kNodes[i], settings.seeds / 2);
  if (!settings.csv.empty() && !write_csv(settings.csv, all)) {
    fmt::print(stderr, "cannot write {}\n", settings.csv);
    return 1;
  }
  if (!settings.svg_dir.empty() && !write_svgs(settings.svg_dir, all)) {
    fmt::print(stderr, "cannot write below {}\n", settings.svg_dir);
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace neuron::bench

int main(int argc, char** argv) {
  neuron::bench::Settings settings;
  CLI::App app("Fragmentation benchmark: policies side by side on the same simulated days");
  app.add_option("--seeds", settings.seeds, "simulated days per cell")->check(CLI::Range(2, 10000));
  app.add_option("--load", settings.load, "core-minutes asked for over core-minutes there are")
      ->check(CLI::Range(0.05, 10.0));
  app.add_option("--csv", settings.csv, "file for all figures");
  app.add_option("--svg-dir", settings.svg_dir, "folder for the plots");
  CLI11_PARSE(app, argc, argv);
  return neuron::bench::run(settings);
}
