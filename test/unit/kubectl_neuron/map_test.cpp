// The picture of a fleet: what it shows, what is foreign, what is unknown, what does not fit.
#include "tools/kubectl-neuron/map.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "test/unit/kubectl_neuron/fleets.h"
#include "test/unit/render/golden.h"
#include "tools/kubectl-neuron/map_parts.h"

namespace neuron::fleet {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

// "" where every element is closed in order, and every '&' begins a reference; else what is wrong.
std::string xml_fault(std::string_view text) {
  std::vector<std::string> open;
  for (std::size_t at = 0; (at = text.find_first_of("<&", at)) != std::string_view::npos; ++at) {
    const std::string_view rest = text.substr(at);
    if (rest.front() == '&') {
      const auto known = {"&amp;", "&lt;", "&gt;", "&quot;", "&apos;"};
      if (std::none_of(known.begin(), known.end(), [&](const char* word) { return rest.starts_with(word); })) {
        return "a bare & at " + std::string(rest.substr(0, 40));
      }
      continue;
    }
    const auto end = rest.find('>');
    if (end == std::string_view::npos ||
        std::count(rest.begin(), rest.begin() + static_cast<long>(end), '"') % 2 != 0) {
      return "no end of " + std::string(rest.substr(0, 40));
    }
    const std::string_view tag = rest.substr(1, end - 1);
    if (tag.starts_with('/')) {
      if (open.empty() || open.back() != tag.substr(1)) return "not open: " + std::string(tag);
      open.pop_back();
    } else if (!tag.ends_with('/')) {
      open.emplace_back(tag.substr(0, tag.find(' ')));
    }
  }
  return open.empty() ? "" : "not closed: " + open.back();
}

TEST(FleetMap, IsXml) {
  EXPECT_EQ(xml_fault(draw_map(test::small_fleet(), MapFormat::svg)), "");
  EXPECT_EQ(xml_fault(draw_map(test::large_fleet(100), MapFormat::svg)), "");
  EXPECT_NE(xml_fault("<a><b></a></b>"), "");
  EXPECT_NE(xml_fault("<a>&nbsp;</a>"), "");
}

TEST(FleetMap, TheSmallFleetLooksAsItWasReviewed) {
  test::expect_golden_file("test/unit/kubectl_neuron/golden/map.svg", draw_map(test::small_fleet(), MapFormat::svg));
}

TEST(FleetMap, ThePageIsThePictureWithTooltips) {
  const std::string page = draw_map(test::small_fleet(), MapFormat::html);
  EXPECT_TRUE(page.starts_with("<!DOCTYPE html>"));
  EXPECT_THAT(page, HasSubstr("<title>neuron0: healthy, no fault found; held by training/llama-0</title>"));
  EXPECT_THAT(
      page,
      HasSubstr(
          "<title>neuron11: healthy, no fault found; held by notebooks/ada, serving/embed-0; 1 core free</title>"));
  EXPECT_THAT(page, HasSubstr("has no /node</title>"));
  const std::string svg = draw_map(test::small_fleet(), MapFormat::svg);
  EXPECT_EQ(count_of(page, "<rect"), count_of(svg, "<rect"));
  EXPECT_EQ(count_of(svg, "<title"), 1U);
}

TEST(FleetMap, NothingIsFetchedAndNothingRuns) {
  for (const MapFormat format : {MapFormat::svg, MapFormat::html}) {
    const std::string map = draw_map(test::large_fleet(30), format);
    for (const char* word :
         {"<script", "<image", "href", "@import", "@font-face", "<foreignObject", "onload", "src="}) {
      EXPECT_THAT(map, Not(HasSubstr(word)));
    }
    EXPECT_THAT(map, HasSubstr("prefers-color-scheme:dark"));
  }
}

TEST(FleetMap, HostileNamesStayWords) {
  Fleet fleet = test::small_fleet();
  const std::string hostile = "</text><script>alert(1)</script>\x1b]0;x\x07 \"&'\xe2\x80\xae";
  for (Node& node : fleet.nodes) {
    node.name = node.instance_type = node.report_missing = hostile;
    if (!node.report) continue;
    node.report->host.driver_version = node.report->host.instance_type = hostile;
    node.report->host.devices[0].health = {model::HealthState::unhealthy, hostile, hostile, hostile};
    for (auto& efa : node.report->host.efas) efa.name = hostile;
    node.report->pods->push_back({hostile, hostile, hostile, {9}, {}, {hostile}, hostile});
  }
  fleet.unknown = {hostile};
  fleet.read_at = hostile;
  for (const MapFormat format : {MapFormat::svg, MapFormat::html}) {
    const std::string map = draw_map(fleet, format);
    EXPECT_THAT(map, Not(HasSubstr("<script")));
    EXPECT_THAT(map, Not(HasSubstr("\x1b")));
    EXPECT_THAT(map, Not(HasSubstr("\xe2\x80\xae"))) << "turns the direction of text";
    const auto svg = map.find("<svg");
    EXPECT_EQ(xml_fault(std::string_view(map).substr(svg, map.rfind("</svg>") + 6 - svg)), "");
  }
}

TEST(FleetMap, UnknownIsNeitherFreeNorHeld) {
  Fleet fleet;
  fleet.nodes = {test::node_of("a", "trn1.32xlarge")};
  fleet.nodes[0].report->pods.reset();
  std::string map = draw_map(fleet, MapFormat::svg);
  EXPECT_THAT(map, HasSubstr("16 devices: holders unknown"));
  EXPECT_THAT(map, Not(HasSubstr("0 free")));
  EXPECT_GE(count_of(map, "class=\"dev unk\""), 16U);
  fleet.nodes[0].report.reset();
  fleet.nodes[0].report_missing = "its agent did not answer";
  map = draw_map(fleet, MapFormat::svg);
  EXPECT_THAT(map, HasSubstr(">a: its agent did not answer<"));
  EXPECT_THAT(map, HasSubstr(">16 neuron<")) << "what the API server knows of it";
}

TEST(FleetMap, IllIsAShapeAndAHatchNotAColourAlone) {
  Fleet fleet;
  fleet.nodes = {test::node_of("a", "trn1.32xlarge")};
  test::make_unhealthy(fleet.nodes[0], 3);
  const std::string map = draw_map(fleet, MapFormat::svg);
  EXPECT_THAT(map, HasSubstr("class=\"fbad\""));
  EXPECT_THAT(map, HasSubstr("class=\"k bad\""));
  EXPECT_THAT(map, HasSubstr("16 devices: 15 free, 1 unhealthy"));
}

TEST(FleetMap, AMissingDeviceKeepsItsPlace) {
  Fleet fleet;
  fleet.nodes = {test::node_of("a", "trn1.32xlarge")};
  report::NodeReport& report = *fleet.nodes[0].report;
  report.host.devices.erase(report.host.devices.begin() + 5);
  report.core_ids.erase(report.core_ids.begin() + 5);
  report.missing_devices = {5};
  const std::string map = draw_map(fleet, MapFormat::html);
  EXPECT_THAT(map, HasSubstr("<title>neuron5 is missing</title>"));
  EXPECT_THAT(map, HasSubstr("16 devices: 15 free, 1 unhealthy"));
}

TEST(FleetMap, AThousandNodesOfSixteenDevicesAreBounded) {
  const Fleet fleet = test::large_fleet(1000);
  EXPECT_LT(draw_map(fleet, MapFormat::svg).size(), 6'000'000U);
  EXPECT_LT(draw_map(fleet, MapFormat::html).size(), 9'000'000U);
}

TEST(FleetMap, MoreNodesAreCounted) {
  Fleet fleet;
  for (std::size_t i = 0; i < kMostTiles + 3; ++i) {
    fleet.nodes.emplace_back();
    fleet.nodes.back().name = std::to_string(i);
  }
  const std::string map = draw_map(fleet, MapFormat::svg);
  EXPECT_EQ(count_of(map, "<g transform=\"translate("), 2 * kMostTiles) << "a tile and its mark";
  EXPECT_THAT(map, HasSubstr("and 3 more nodes"));
}

TEST(FleetMap, NoNodeIsAPictureToo) {
  EXPECT_THAT(draw_map(Fleet{}, MapFormat::svg), HasSubstr("0 Neuron nodes"));
}

TEST(PodName, LosesWhatItsControllerAdded) {
  const auto parsed = [](const std::string& pod) {
    const map::PodName name = map::parse_pod_name(pod);
    return name.workload + '|' + name.number;
  };
  EXPECT_EQ(parsed("llama-12"), "llama|12");
  EXPECT_EQ(parsed("chat-7d9f4b8c6d-x2x5z"), "chat|");
  EXPECT_EQ(parsed("train-3-x7k2p"), "train|3");
  EXPECT_EQ(parsed("agent-x7k2p"), "agent|");
  EXPECT_EQ(parsed("web-front"), "web-front|");
  EXPECT_EQ(parsed("eval-00012"), "eval|00012");
  EXPECT_EQ(parsed("-5"), "-5|");
  EXPECT_EQ(parsed("7"), "7|");
  EXPECT_EQ(parsed(""), "|");
}

TEST(Workloads, ColoursAreOfTheNameAndDiffer) {
  const Fleet fleet = test::small_fleet();
  const map::Workloads workloads(fleet);
  ASSERT_EQ(workloads.all().size(), 4U);
  std::set<std::size_t> colours;
  for (const map::Workload& workload : workloads.all()) colours.insert(workload.colour);
  EXPECT_EQ(colours.size(), 4U);
  EXPECT_EQ(workloads.all()[3].name, "training/llama");
  EXPECT_EQ(workloads.all()[3].pods, 3U);
  EXPECT_EQ(workloads.all()[3].devices, 24U);
  Fleet fewer = fleet;
  fewer.nodes.resize(2);
  EXPECT_EQ(map::Workloads(fewer).all()[3].colour, workloads.all()[3].colour);
}

}  // namespace
}  // namespace neuron::fleet
