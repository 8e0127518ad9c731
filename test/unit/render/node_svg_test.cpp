// The picture of a node over hand-built reports: what is foreign, what is unknown, what does not fit.
#include "tools/render/node_report.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "test/unit/render/scans.h"
#include "tools/render/node_svg.h"
#include "tools/render/text.h"

namespace neuron::render {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

NodeReport report_of(const model::HostScan& scan) {
  NodeReport report;
  report.host = scan;
  report.core_ids = test::core_ids_of(scan);
  return report;
}

TEST(SvgText, WhatXmlDoesNotAllowIsReplaced) {
  EXPECT_EQ(xml_text("a<b>&\"c'"), "a&lt;b&gt;&amp;&quot;c&apos;");
  EXPECT_EQ(xml_text(std::string("a\0b\x1b[31m", 8)),
            "a\xef\xbf\xbd"
            "b\xef\xbf\xbd[31m");
  EXPECT_EQ(xml_text("\xff\xc0\xaf"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(xml_text("\xef\xbf\xbf"), "\xef\xbf\xbd") << "U+FFFF";
  EXPECT_EQ(xml_text("\xed\xa0\x80"), "\xef\xbf\xbd") << "a surrogate";
  EXPECT_EQ(xml_text("\xf0\x9f\x98\x80 ü"), "\xf0\x9f\x98\x80 ü");
  EXPECT_EQ(xml_text("\xf0\x9f"), "\xef\xbf\xbd\xef\xbf\xbd") << "cut off";
}

TEST(SvgText, IsBoundedInCharacters) {
  EXPECT_EQ(xml_text("abcdef", 3), "abc…");
  EXPECT_EQ(xml_text("<<<<", 2), "&lt;&lt;…");
  EXPECT_EQ(fit("abcdefgh", 1000, 12), "abcdefgh");
  EXPECT_EQ(fit("ääääääääää", 40, 12), "ääää…");
  EXPECT_EQ(fit("abc", 0, 12), "…");
}

TEST(NodeSvg, HostileNamesStayWords) {
  NodeReport report = report_of(test::trn1_32xlarge());
  const std::string hostile = "</text><script>alert(1)</script>\x1b]0;x\x07 \"&'";
  report.host.instance_type = hostile;
  report.host.driver_version = hostile;
  report.host.devices[1].health = {model::HealthState::unhealthy, hostile, hostile, hostile};
  report.pods = {{{hostile, hostile, hostile, {0, 1}, {0, 1, 2, 3}, {hostile}, hostile}}};
  model::EfaInterface efa;
  efa.name = hostile;
  report.host.efas = {efa};
  const std::string svg = node_svg(report);
  EXPECT_THAT(svg, Not(HasSubstr("<script")));
  EXPECT_THAT(svg, Not(HasSubstr("\x1b")));
  EXPECT_THAT(svg, HasSubstr("&lt;/text&gt;&lt;script&gt;"));
  EXPECT_EQ(std::count(svg.begin(), svg.end(), '<'), std::count(svg.begin(), svg.end(), '>'));
}

TEST(NodeSvg, NothingIsFetchedAndNothingRuns) {
  const std::string svg = node_svg(report_of(test::trn2_48xlarge()));
  for (const char* word : {"<script", "<image", "href", "@import", "@font-face", "<foreignObject", "onload"}) {
    EXPECT_THAT(svg, Not(HasSubstr(word)));
  }
  EXPECT_THAT(svg, HasSubstr("role=\"img\""));
  EXPECT_THAT(svg, HasSubstr("<title id=\"nls-title\">"));
  EXPECT_THAT(svg, HasSubstr("<desc id=\"nls-desc\">"));
  EXPECT_THAT(svg, HasSubstr("prefers-color-scheme:dark"));
}

TEST(NodeSvg, TheSameReportIsTheSamePicture) {
  const NodeReport report = report_of(test::trn2_48xlarge());
  EXPECT_EQ(node_svg(report), node_svg(report));
}

TEST(NodeSvg, ManyPodsAndFaultsAreBounded) {
  NodeReport report = report_of(test::trn2_48xlarge());
  report.pods.emplace();
  for (int i = 0; i < 3000; ++i) {
    report.pods->push_back({"ns", "pod-" + std::to_string(i), "main", {i % 16}, {i % 64}, {}});
  }
  for (auto& device : report.host.devices) {
    device.health = {model::HealthState::unhealthy, std::string(500, 'r'), std::string(5000, 's'), "do something"};
  }
  const std::string svg = node_svg(report);
  EXPECT_THAT(svg, HasSubstr("and 2968 more"));
  EXPECT_LT(svg.size(), 200'000U);
}

TEST(NodeSvg, UnknownIsNeitherFreeNorZero) {
  model::HostScan scan = test::inf2_48xlarge_bare();
  for (auto& device : scan.devices) device.processes.reset();
  NodeReport report = report_of(scan);
  report.core_ids.clear();
  const std::string svg = node_svg(report);
  EXPECT_THAT(svg, HasSubstr("cores unknown"));
  EXPECT_THAT(svg, HasSubstr("driver unknown"));
  EXPECT_THAT(svg, Not(HasSubstr(">free<")));
  EXPECT_THAT(svg, Not(HasSubstr("GiB")));
  report.pods.emplace();
  EXPECT_THAT(node_svg(report), HasSubstr(">free<"));
}

TEST(NodeSvg, IllIsAShapeAndAHatchNotAColourAlone) {
  NodeReport report = report_of(test::trn1_32xlarge());
  report.host.devices[3].health = {model::HealthState::unhealthy, "sram_ecc_uncorrected", "2 errors", "replace it"};
  report.host.devices[4].health = {model::HealthState::degraded, "resetting", "it is being reset", ""};
  const std::string svg = node_svg(report);
  EXPECT_THAT(svg, HasSubstr("class=\"fbad\""));
  EXPECT_THAT(svg, HasSubstr("class=\"fwarn\""));
  EXPECT_THAT(svg, HasSubstr(">unhealthy<"));
  EXPECT_THAT(svg, HasSubstr("neuron3 is unhealthy: sram_ecc_uncorrected"));
  EXPECT_THAT(svg, HasSubstr("→ replace it"));
  EXPECT_THAT(svg, HasSubstr("1 unhealthy, 1 degraded or unknown"));
}

TEST(NodeSvgLayout, ATorusHasThirtyTwoLinksOfWhichEightWrap) {
  const NodeLayout layout = lay_out(report_of(test::trn2_48xlarge()), 100);
  EXPECT_EQ(layout.shape.kind, NodeShape::Kind::torus);
  EXPECT_EQ(layout.shape.links.size(), 32U);
  EXPECT_EQ(layout.wraps.size(), 16U);
  EXPECT_EQ(layout.links.size(), 24U + 16U);
}

TEST(NodeSvgLayout, LinksOfTheTableAreDashedUnlessOneEndSaysSo) {
  NodeReport report = report_of(test::trn1_32xlarge());
  for (auto& device : report.host.devices) device.neighbours->origin = model::Origin::assumed;
  report.host.devices[0].neighbours->origin = model::Origin::live;
  const NodeLayout layout = lay_out(report, 100);
  const auto live = std::count_if(layout.shape.links.begin(), layout.shape.links.end(),
                                  [](const DeviceLink& link) { return !link.assumed; });
  EXPECT_EQ(live, 4);
}

TEST(NodeSvgLayout, AMissingDeviceKeepsItsPlace) {
  NodeReport report = report_of(test::trn1_32xlarge());
  report.host.devices.erase(report.host.devices.begin() + 5);
  report.core_ids.erase(report.core_ids.begin() + 5);
  report.missing_devices = {5};
  report.missing_health = {model::HealthState::unhealthy, "device_vanished", "it is gone", "look"};
  const NodeLayout layout = lay_out(report, 100);
  ASSERT_EQ(layout.devices.size(), 16U);
  EXPECT_FALSE(layout.devices[5].position);
  EXPECT_THAT(node_svg(report), HasSubstr("neuron5 is unhealthy: device_vanished"));
}

// A graph that is no shape that we know: what no line shows is told in words.
TEST(NodeSvgLayout, OddLinksAreWords) {
  NodeReport report = report_of(test::inf2_48xlarge_bare());
  report.host.devices[0].neighbours->value = {11, 1, 6, 10};
  const NodeLayout layout = lay_out(report, 100);
  EXPECT_EQ(layout.shape.kind, NodeShape::Kind::loose);
  EXPECT_THAT(layout.devices[0].elsewhere, ::testing::ElementsAre(6, 10, 11));
  EXPECT_THAT(node_svg(report), HasSubstr("links to 6,10-11"));
}

}  // namespace
}  // namespace neuron::render
