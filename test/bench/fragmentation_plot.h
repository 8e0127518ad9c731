#pragma once

#include <string>
#include <vector>

// A plain bar chart as SVG text: panels below each other, groups of bars in each, one legend.
namespace neuron::bench {

struct BarChart {
  struct Group {
    std::string name;
    std::vector<double> bars;  // 0 to 1, as BarChart::series
  };
  struct Panel {
    std::string name;
    std::vector<Group> groups;
  };
  std::string title;
  std::string axis;
  std::vector<std::string> series;
  std::vector<Panel> panels;
};

// Text must not hold <, > or &.
[[nodiscard]] std::string render_svg(const BarChart& chart);

}  // namespace neuron::bench
