// What `kubectl neuron top` makes of agents' metrics: rows, sums, rates, keys, screens.
#include "tools/kubectl-neuron/top.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "test/fakes/paths.h"
#include "test/unit/kubectl_neuron/fleets.h"
#include "test/unit/render/golden.h"
#include "test/unit/render/json_schema.h"
#include "test/unit/render/ls_program.h"
#include "tools/kubectl-neuron/top_screen.h"
#include "tools/screen/screen.h"

namespace neuron::fleet {
namespace {

using screen::KeyCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30U;

// Cores of a held device are busy by a pattern that is always the same.
NodeUsage usage_of(const Node& node, double read_at) {
  NodeUsage usage;
  usage.read_at = read_at;
  usage.cpu_count = 192;
  usage.cpu_user_percent = 12;
  usage.cpu_system_percent = 3;
  usage.memory_total = 2048 * kGiB;
  usage.memory_used = 300 * kGiB;
  for (const auto& ids : node.report->core_ids) {
    for (const int id : ids) {
      CoreUse& core = usage.cores[id];
      core.percent = id % 16 == 3 ? 0 : 40 + id % 7 * 8;
      core.device_bytes = static_cast<std::uint64_t>(id % 5 + 1) * kGiB;
      core.host_bytes = kGiB / 4;
    }
  }
  for (const auto& efa : node.report->host.efas)
    usage.efas[efa.name].counters = {{"rx_bytes", 1e9 * read_at}, {"tx_bytes", 5e8 * read_at}};
  return usage;
}

struct Sample {
  Fleet fleet = test::small_fleet();
  Usages usages;

  Sample() {
    Usages before;
    for (const Node& node : fleet.nodes) {
      if (!node.report) continue;
      before[node.name] = usage_of(node, 10);
      usages[node.name] = usage_of(node, 25);
    }
    add_rates(before, usages);
  }
  [[nodiscard]] Top top() const { return make_top(fleet, usages); }
};

const TopRow& row_of(const std::vector<TopRow>& rows, const std::string& name) {
  const auto found = std::ranges::find(rows, name, &TopRow::name);
  EXPECT_NE(found, rows.end()) << name;
  return *found;
}

TEST(Top, RowsAreOfHoldersAndSumsOfRows) {
  const Top top = Sample().top();
  const TopRow& pod = row_of(top.pods, "training/llama-0");
  EXPECT_EQ(pod.devices, 4U);
  EXPECT_EQ(pod.cores, 16U);
  EXPECT_EQ(pod.efas, 4U);
  EXPECT_EQ(pod.idle_cores, 1U);
  EXPECT_DOUBLE_EQ(pod.rx_bytes_per_second.value(), 4e9);
  EXPECT_EQ(pod.memory_size, 4 * 96 * kGiB);
  const TopRow& training = row_of(top.namespaces, "training");
  EXPECT_EQ(training.pods, 3U);
  EXPECT_EQ(training.nodes, 2U);
  EXPECT_EQ(training.devices, 24U);
  EXPECT_EQ(top.sum.devices, 28U);
  EXPECT_EQ(top.sum.all_devices, 44U);
  EXPECT_EQ(top.sum.unhealthy, 1U);
  const TopRow& shared = row_of(top.pods, "notebooks/ada");
  EXPECT_EQ(shared.cores, 1U);
  EXPECT_EQ(shared.memory_size, 24 * kGiB) << "its share of the device";
}

TEST(Top, UnknownIsNeitherIdleNorZero) {
  Sample sample;
  sample.usages.clear();
  const Top top = sample.top();
  EXPECT_FALSE(top.sum.percent);
  EXPECT_FALSE(top.sum.memory_bytes);
  EXPECT_EQ(top.sum.idle_cores, 0U);
  const TopRow& silent = row_of(top.nodes, "ip-10-0-2-5.us-west-2.compute.internal");
  EXPECT_THAT(silent.condition, HasSubstr("no report: its agent"));
  const std::string text = print_top(top, {}, render::Charset::utf8, 120).to_text();
  sample.fleet.nodes[0].report->pods.reset();
  const Top without = sample.top();
  EXPECT_EQ(row_of(without.nodes, sample.fleet.nodes[0].name).condition, "holders unknown");
  const auto json = nlohmann::json::parse(top_json(without, TopSort::name, "", 5));
  EXPECT_EQ(json["nodes"][0]["devices"], nullptr) << "nobody said who holds them";
  EXPECT_EQ(json["nodes"][0]["all_devices"], 16);
  for (const auto& node : json["nodes"]) {
    if (node["node"] != silent.name) continue;
    for (const char* key : {"all_devices", "all_cores", "pods", "unhealthy", "degraded"})
      EXPECT_EQ(node[key], nullptr) << key << ": its agent has not answered";
  }
  EXPECT_THAT(text, HasSubstr("n/a of them idle"));
  EXPECT_THAT(text, Not(HasSubstr("0.0%")));
}

TEST(Top, ALongSentenceIsCutInSight) {
  Top top = Sample().top();
  top.unknown = {"pods are not known: " + std::string(200, 'x')};
  EXPECT_THAT(print_top(top, {}, render::Charset::utf8, 80).to_text(), HasSubstr("xxx...\n"));
  EXPECT_THAT(draw_top(top, {}, "", render::Charset::utf8, 30, 80).to_text(), HasSubstr("xxx...\n"));
}

TEST(Top, Screens) {
  const Top top = Sample().top();
  const auto golden = [&](const char* name, TopState state) {
    const std::string text = print_top(top, state, render::Charset::utf8, 140).to_text();
    test::expect_golden_file(std::string("test/unit/kubectl_neuron/golden/") + name, text);
  };
  TopState state;
  golden("top_nodes.txt", state);
  state.by = TopBy::name_space;
  golden("top_namespaces.txt", state);
  state.by = TopBy::pod;
  state.sort = TopSort::utilization;
  golden("top_pods.txt", state);
  test::expect_golden_file("test/unit/kubectl_neuron/golden/top_screen.txt",
                           draw_top(top, state, "", render::Charset::ascii, 20, 80).to_text());
}

TEST(Top, NarrowScreensLeaveOutWholeParts) {
  const Top top = Sample().top();
  for (int columns = 36; columns <= 100; ++columns) {
    std::istringstream lines(draw_top(top, {}, "", render::Charset::ascii, 20, columns).to_text());
    std::string title, held, bars;
    std::getline(lines, title);
    std::getline(lines, held);
    std::getline(lines, bars);
    EXPECT_THAT(title, MatchesRegex("kubectl neuron top  4 nodes(  +20[^ ]+)?")) << columns;
    EXPECT_THAT(held,
                MatchesRegex("28 of 44 devices held(, 107 of 152 cores(, 8 of them idle(; 7 pods)?)?)?  +1 unhealthy"))
        << columns;
    EXPECT_THAT(bars, MatchesRegex("Held cores (.+ )?[0-9.]+%(   Memory [^ ]+ of [^ ]+)?")) << columns;
  }
  EXPECT_THAT(
      draw_top(top, {}, "reading failed: the API server does not answer", render::Charset::ascii, 20, 60).to_text(),
      testing::StartsWith("reading failed: the API server does not answer"));
}

TEST(Top, JsonHasAllRows) {
  const Top top = Sample().top();
  EXPECT_EQ(test::schema_file_violation("kubectl-neuron-top-1", top_json(top, TopSort::name, "", 5)), "");
  const auto json = nlohmann::json::parse(top_json(top, TopSort::name, "", 5));
  EXPECT_EQ(json["format"], kTopFormat);
  EXPECT_EQ(json["nodes"].size(), 4U);
  EXPECT_EQ(json["namespaces"].size(), 3U);
  EXPECT_EQ(json["pods"].size(), 7U);
  EXPECT_EQ(json["nodes"][2]["utilization_percent"], nullptr);
  EXPECT_EQ(json["sum"]["all_devices"], 44);
  EXPECT_EQ(nlohmann::json::parse(top_json(top, TopSort::name, "serving", 5))["pods"].size(), 3U);
}

std::vector<std::string> names_of(const Top& top, TopBy by, TopSort sort, const std::string& filter) {
  std::vector<std::string> names;
  for (const TopRow* row : shown_rows(top, by, sort, filter)) names.push_back(row->name);
  return names;
}

TEST(Top, SortsAndFilters) {
  const Top top = Sample().top();
  EXPECT_THAT(names_of(top, TopBy::name_space, TopSort::name, ""), ElementsAre("notebooks", "serving", "training"));
  EXPECT_THAT(names_of(top, TopBy::name_space, TopSort::devices, ""), ElementsAre("training", "serving", "notebooks"));
  EXPECT_EQ(names_of(top, TopBy::node, TopSort::health, "").front(), "ip-10-0-1-17.us-west-2.compute.internal");
  EXPECT_THAT(names_of(top, TopBy::pod, TopSort::name, "llama-"),
              ElementsAre("training/llama-0", "training/llama-1", "training/llama-2"));
  EXPECT_THAT(names_of(top, TopBy::node, TopSort::name, "no report"),
              ElementsAre("ip-10-0-2-5.us-west-2.compute.internal"));
}

TopState pressed(TopState state, const Top& top, const std::vector<screen::Key>& keys) {
  for (const screen::Key key : keys) state = press(std::move(state), key, top, nullptr);
  return state;
}

TEST(TopKeys, OpenWhatIsSelected) {
  const Top top = Sample().top();
  TopState state = pressed({}, top, {{KeyCode::down}, {KeyCode::enter}});
  EXPECT_EQ(state.opened, "ip-10-0-1-23.us-west-2.compute.internal");
  state = pressed({}, top, {{KeyCode::character, '2'}, {KeyCode::end}, {KeyCode::enter}});
  EXPECT_EQ(state.by, TopBy::pod);
  EXPECT_EQ(state.filter, "training/");
  state = pressed(state, top, {{KeyCode::enter}});
  EXPECT_EQ(state.opened, "ip-10-0-1-17.us-west-2.compute.internal");
}

TEST(TopKeys, TheNodesScreenHasItsOwnKeysAndEscapeLeavesIt) {
  const Sample sample;
  const Top top = sample.top();
  const screen::ViewModel node = node_view(sample.fleet.nodes[0], sample.usages.at(sample.fleet.nodes[0].name));
  TopState state;
  state.opened = sample.fleet.nodes[0].name;
  state = press(state, {KeyCode::character, 'e'}, top, &node);
  EXPECT_EQ(state.inner.panel, screen::Panel::efa);
  state = press(state, {KeyCode::character, '/'}, top, &node);
  state = press(state, {KeyCode::escape}, top, &node);
  EXPECT_FALSE(state.opened.empty()) << "closed the filter alone";
  state = press(state, {KeyCode::escape}, top, &node);
  EXPECT_TRUE(state.opened.empty());
  EXPECT_FALSE(state.quit);
}

TEST(TopKeys, FilterIsTyped) {
  const Top top = Sample().top();
  TopState state = pressed({}, top,
                           {{KeyCode::character, '/'},
                            {KeyCode::character, 'Q'},
                            {KeyCode::character, 'x'},
                            {KeyCode::backspace},
                            {KeyCode::enter}});
  EXPECT_EQ(state.filter, "q");
  EXPECT_FALSE(state.quit);
  state = pressed(state, top, {{KeyCode::escape}});
  EXPECT_EQ(state.filter, "");
  EXPECT_TRUE(pressed(state, top, {{KeyCode::character, 'q'}}).quit);
}

TEST(TopNode, ScreenIsNeuronTopsOwn) {
  const Sample sample;
  const screen::ViewModel model = node_view(sample.fleet.nodes[0], sample.usages.at(sample.fleet.nodes[0].name));
  screen::History history;
  history.add(model);
  screen::ViewState state;
  state.panel = screen::Panel::efa;
  const screen::Scene scene{model, history, state};
  const std::string text = screen::draw_screen(scene, {}, 60, 150).to_text();
  EXPECT_THAT(text, HasSubstr("running on ip-10-0-1-17.us-west-2.compute.internal (trn2.48xlarge)"));
  EXPECT_THAT(text, HasSubstr("ND13 is unhealthy"));
  EXPECT_THAT(text, HasSubstr("1.0GB/s"));
}

std::string golden_metrics(const std::string& name) {
  return test::text_of(fakes::source_dir() + "/test/unit/metrics/golden/" + name);
}

TEST(NodeUsage, IsWhatTheAgentWrites) {
  const NodeUsage usage = parse_usage(golden_metrics("busy.txt"));
  ASSERT_EQ(usage.cores.size(), 4U);
  EXPECT_DOUBLE_EQ(usage.cores.at(3).percent.value(), 50);
  EXPECT_DOUBLE_EQ(usage.cores.at(0).percent.value(), 0);
  EXPECT_EQ(usage.cores.at(3).device_bytes, 8192U);
  EXPECT_EQ(usage.cores.at(3).host_bytes, 4796416U);
  EXPECT_DOUBLE_EQ(usage.devices.at(0).power->average_percent, 20);
  EXPECT_EQ(usage.devices.at(0).host_memory[static_cast<std::size_t>(model::HostMemoryKind::driver_memory)], 6393856U);
  EXPECT_TRUE(usage.efas.contains("rdmap16s25"));
  EXPECT_DOUBLE_EQ(usage.sample_age.value(), 2);
  EXPECT_EQ(usage.cpu_count, 12);
  EXPECT_EQ(usage.memory_used, 25769803776U);
}

TEST(NodeUsage, WhatIsKeptIsReadTheSameAndSmall) {
  const std::string whole = golden_metrics("busy.txt");
  const std::string kept = kept_metrics(whole);
  EXPECT_LT(10 * kept.size(), whole.size());
  EXPECT_EQ(kept, kept_metrics(kept));
  const NodeUsage usage = parse_usage(kept);
  EXPECT_EQ(usage.cores.size(), 4U);
  EXPECT_DOUBLE_EQ(usage.cores.at(3).percent.value(), 50);
  EXPECT_THAT(kept, Not(HasSubstr("train-0"))) << "no names of pods";
}

TEST(NodeUsage, SenselessLinesAreUnknown) {
  for (const char* text :
       {"neuroncore_utilization_ratio{neuroncore=\"1\"} NaN\n", "neuroncore_utilization_ratio{neuroncore=\"1\"} 7\n",
        "neuroncore_utilization_ratio{neuroncore=\"-1\"} 0.5\n", "neuroncore_utilization_ratio{neuroncore=\"1\" 0.5\n",
        "neuroncore_utilization_ratio{neuroncore=\"1\\\"} 0.5\n", "neuroncore_utilization_ratio 0.5\n",
        "neuroncore_utilization_ratio{neuroncore=\"99999999999\"} 0.5\n", "neuroncore_utilization_ratio{", "{",
        "\n\n"}) {
    const NodeUsage usage = parse_usage(text);
    EXPECT_TRUE(usage.cores.empty() || !usage.cores.begin()->second.percent) << text;
  }
  std::string many;
  for (int i = 0; i < 20'000; ++i) many += "node_amazonefa_rx_bytes{device=\"d" + std::to_string(i) + "\"} 1\n";
  EXPECT_LE(parse_usage(many).efas.size(), 256U);
}

TEST(NodeUsage, RatesAreOverTheAgentsSamples) {
  const auto at = [](double read, double age, double bytes) {
    NodeUsage usage;
    usage.read_at = read;
    usage.sample_age = age;
    usage.efas["a"].counters["rx_bytes"] = bytes;
    return usage;
  };
  const NodeUsage first = at(100, 5, 1000);
  NodeUsage same = at(105, 10, 1000);  // no new sample in between
  add_rates(first, same);
  EXPECT_FALSE(same.has_rates);
  EXPECT_TRUE(same.efas["a"].per_second.empty());
  NodeUsage next = at(110, 0, 2500);
  add_rates(same, next);
  EXPECT_DOUBLE_EQ(next.efas["a"].per_second["rx_bytes"], 100);
  NodeUsage later = at(112, 2, 2500);
  add_rates(next, later);
  EXPECT_DOUBLE_EQ(later.efas["a"].per_second["rx_bytes"], 100) << "the earlier rate stands";
  NodeUsage reset = at(130, 0, 10);
  add_rates(later, reset);
  EXPECT_FALSE(reset.efas["a"].per_second.contains("rx_bytes")) << "went backwards";
}

}  // namespace
}  // namespace neuron::fleet
