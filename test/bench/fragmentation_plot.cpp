#include "test/bench/fragmentation_plot.h"

#include <fmt/format.h>

#include <array>

namespace neuron::bench {
namespace {

constexpr double kWidth = 900;
constexpr double kLeft = 70;
constexpr double kRight = 20;
constexpr double kTop = 90;  // title and legend
constexpr double kPanelHeight = 220;
constexpr double kPlotHeight = 140;
constexpr double kGap = 36;  // between groups
// Ours stands out; the others are told apart by lightness too.
constexpr std::array<const char*, 6> kColours = {"#d1495b", "#00798c", "#5fa8a0", "#8d96a3", "#c4cad0", "#2e4057"};

std::string label(double x, double y, const char* anchor, int size, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" font-size=\"{}\">{}</text>\n", x, y, anchor,
                     size, text);
}

std::string box(double x, double y, double width, double height, std::size_t series) {
  return fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"/>\n", x, y, width,
                     height, kColours[series % kColours.size()]);
}

std::string legend(const BarChart& chart) {
  std::string svg;
  const double step = (kWidth - kLeft - kRight) / static_cast<double>(chart.series.size());
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    const double x = kLeft + step * static_cast<double>(i);
    svg += box(x, 46, 12, 12, i) + label(x + 17, 56, "start", 12, chart.series[i]);
  }
  return svg;
}

std::string grid(const BarChart& chart, double base) {
  std::string svg;
  for (int percent = 0; percent <= 100; percent += 25) {
    const double y = base - kPlotHeight * percent / 100;
    svg += fmt::format("<line x1=\"{}\" y1=\"{:.1f}\" x2=\"{}\" y2=\"{:.1f}\" stroke=\"#ddd\"/>\n", kLeft, y,
                       kWidth - kRight, y);
    svg += label(kLeft - 6, y + 4, "end", 11, fmt::format("{} %", percent));
  }
  const double middle = base - kPlotHeight / 2;
  svg += fmt::format(
      "<text transform=\"translate(16 {:.1f}) rotate(-90)\" text-anchor=\"middle\" font-size=\"11\">{}"
      "</text>\n",
      middle, chart.axis);
  return svg;
}

std::string panel(const BarChart& chart, const BarChart::Panel& shown, double top) {
  const double base = top + 34 + kPlotHeight;
  std::string svg = label(kLeft, top + 8, "start", 13, shown.name) + grid(chart, base);
  const double group_width = (kWidth - kLeft - kRight) / static_cast<double>(shown.groups.size());
  for (std::size_t g = 0; g < shown.groups.size(); ++g) {
    const auto& bars = shown.groups[g].bars;
    const double width = (group_width - kGap) / static_cast<double>(bars.size());
    const double left = kLeft + group_width * static_cast<double>(g) + kGap / 2;
    for (std::size_t i = 0; i < bars.size(); ++i) {
      const double x = left + width * static_cast<double>(i);
      const double height = kPlotHeight * bars[i];
      svg += box(x + 2, base - height, width - 4, height, i);
      svg += label(x + width / 2, base - height - 3, "middle", 10, fmt::format("{:.1f}", bars[i] * 100));
    }
    svg += label(left + (group_width - kGap) / 2, base + 16, "middle", 12, shown.groups[g].name);
  }
  return svg;
}

}  // namespace

std::string render_svg(const BarChart& chart) {
  const double height = kTop + kPanelHeight * static_cast<double>(chart.panels.size());
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"DejaVu Sans, Helvetica, Arial, sans-serif\">\n<rect width=\"{0}\" height=\"{1}\" "
      "fill=\"#fff\"/>\n",
      kWidth, height);
  svg += label(kLeft, 28, "start", 16, chart.title) + legend(chart);
  for (std::size_t i = 0; i < chart.panels.size(); ++i) {
    svg += panel(chart, chart.panels[i], kTop + kPanelHeight * static_cast<double>(i));
  }
  return svg + "</svg>\n";
}

}  // namespace neuron::bench
