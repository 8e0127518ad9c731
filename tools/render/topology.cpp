#include "tools/render/node_view.h"

#include <algorithm>
#include <string_view>

namespace neuron::render {
namespace {

constexpr std::string_view kTitle = "Neuron Device Topology\n";
constexpr std::string_view kLink = "◄––►";
constexpr std::string_view kWrapLeft = "*––►";
constexpr std::string_view kWrapRight = "◄––*";
constexpr std::string_view kLegend = "\nLegend:\n\n        *––► = Wrap-around link\n";
constexpr std::string_view kSwitchLegend =
    "\nLegend:\n\n        *––––* = Switch: every device reaches every other alike\n";
constexpr std::string_view kNoLinks = "\nNo connections known.\n";
constexpr std::string_view kMissingLegend = "        [   ] = Device missing or not visible here\n";

std::string node_text(int id) {
  const std::string digits = std::to_string(id);
  return '[' + std::string(digits.size() < 2 ? 2 - digits.size() : 0, ' ') + digits + " ]";
}

// The links between the devices that are visible here.
DeviceGraph visible_links(const NodeView& view) {
  DeviceGraph graph;
  for (const DeviceView& device : view.devices) graph[device.host_index];
  for (const DeviceView& device : view.devices) {
    for (const int neighbour : device.neighbours) {
      if (neighbour == device.host_index || !graph.contains(neighbour)) continue;
      graph[device.host_index].insert(neighbour);
      graph[neighbour].insert(device.host_index);
    }
  }
  return graph;
}

bool is_torus(const NodeView& view) {
  return !view.devices.empty() && std::ranges::all_of(view.devices, [](const DeviceView& device) {
    return has_torus_neighbours(device.host_index, device.neighbours);
  });
}

std::string torus_column_line(std::string_view mark) {
  std::string line = "      ";
  for (int column = 0; column < kTorusSide; ++column) {
    line += mark;
    line += column + 1 < kTorusSide ? "        " : "      \n";
  }
  return line;
}

std::string draw_torus(const DeviceGraph& visible) {
  const std::string stem = torus_column_line("│");
  std::string text = torus_column_line("*") + stem + torus_column_line("▼");
  for (int row = 0; row < kTorusSide; ++row) {
    text += kWrapLeft;
    for (int column = 0; column < kTorusSide; ++column) {
      const int id = row * kTorusSide + column;
      text += visible.contains(id) ? node_text(id) : "[   ]";
      text += column + 1 < kTorusSide ? kLink : kWrapRight;
    }
    text += '\n' + torus_column_line("▲") + stem + torus_column_line(row + 1 < kTorusSide ? "▼" : "*");
  }
  return text;
}

// The ids that are connected with `start`.
std::set<int> component_of(const DeviceGraph& graph, int start) {
  std::set<int> seen = {start};
  std::vector<int> open = {start};
  while (!open.empty()) {
    const int id = open.back();
    open.pop_back();
    for (const int next : graph.at(id)) {
      if (seen.insert(next).second) open.push_back(next);
    }
  }
  return seen;
}

std::string joined_nodes(const std::vector<int>& ids) {
  std::string text;
  for (const int id : ids) text.append(text.empty() ? "" : kLink).append(node_text(id));
  return text;
}

std::string link_list(const DeviceGraph& graph, const std::set<int>& ids) {
  std::string text;
  for (const int id : ids) {
    text += "  " + node_text(id) + "––►";
    for (const int other : graph.at(id)) text += node_text(other);
    text += '\n';
  }
  return text;
}

struct Drawing {
  std::string text;
  bool wraps = false;  // has wrap-around arms, which need the legend
};

Drawing draw_component(const DeviceGraph& graph, const std::set<int>& ids) {
  const auto degree_is = [&](std::size_t degree) {
    return [&graph, degree](int id) { return graph.at(id).size() == degree; };
  };
  const auto ends = std::ranges::count_if(ids, degree_is(1));
  const auto inner = std::ranges::count_if(ids, degree_is(2));
  if (ends + inner != static_cast<std::ptrdiff_t>(ids.size())) return {link_list(graph, ids), false};
  if (ends == 0) {
    const std::string nodes = joined_nodes(walk(graph, *ids.begin()));
    return {"  " + std::string(kWrapLeft) + nodes + std::string(kWrapRight) + '\n', true};
  }
  const int first = *std::ranges::find_if(ids, degree_is(1));
  return {"  " + joined_nodes(walk(graph, first)) + '\n', false};
}

std::string repeated(std::string_view mark, std::size_t count) {
  std::string line = " ";
  for (std::size_t i = 0; i < count; ++i) line.append("   ").append(mark).append("   ");
  return line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
}

std::string row_of(const std::vector<int>& ids) {
  std::string line;
  for (const int id : ids) line += "  " + node_text(id);
  return line + '\n';
}

// Half of the devices above the switch and half below; up to four all above.
std::string draw_switch(const DeviceGraph& graph) {
  std::vector<int> ids;
  for (const auto& [id, links] : graph) ids.push_back(id);
  const std::size_t width = ids.size() <= 4 ? ids.size() : (ids.size() + 1) / 2;
  const std::vector<int> upper(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(width));
  const std::vector<int> lower(ids.begin() + static_cast<std::ptrdiff_t>(width), ids.end());
  std::string bar = "  *";
  for (std::size_t i = 0; i < width * 7 - 4; ++i) bar += "–";
  const auto stems = [](std::size_t count) {
    return repeated("▲", count) + repeated("│", count) + repeated("▼", count);
  };
  std::string text = row_of(upper) + stems(upper.size()) + bar + "*\n";
  if (!lower.empty()) text += stems(lower.size()) + row_of(lower);
  return text + std::string(kSwitchLegend);
}

}  // namespace

bool has_torus_neighbours(int index, const std::vector<int>& neighbours) {
  if (index < 0 || index >= kTorusSide * kTorusSide) return false;
  const int row = index / kTorusSide;
  const int column = index % kTorusSide;
  const auto at = [](int r, int c) {
    return (r + kTorusSide) % kTorusSide * kTorusSide + (c + kTorusSide) % kTorusSide;
  };
  const std::set<int> expected = {at(row - 1, column), at(row + 1, column), at(row, column - 1), at(row, column + 1)};
  return std::set<int>(neighbours.begin(), neighbours.end()) == expected;
}

std::vector<int> walk(const DeviceGraph& graph, int start) {
  std::vector<int> order = {start};
  std::set<int> seen = {start};
  for (bool moved = true; moved;) {
    moved = false;
    for (const int next : graph.at(order.back())) {
      if (!seen.insert(next).second) continue;
      order.push_back(next);
      moved = true;
      break;
    }
  }
  return order;
}

std::string draw_topology(const NodeView& view) {
  const DeviceGraph graph = visible_links(view);
  if (view.switched && graph.size() > 1) return '\n' + std::string(kTitle) + '\n' + draw_switch(graph);
  if (is_torus(view)) {
    const bool complete = graph.size() == kTorusSide * kTorusSide;
    return "\n\n" + std::string(kTitle) + draw_torus(graph) + std::string(kLegend) +
           std::string(complete ? "" : kMissingLegend);
  }
  Drawing whole;
  std::string unlinked;
  std::set<int> done;
  for (const auto& [id, links] : graph) {
    if (links.empty()) unlinked += "  " + node_text(id);
    if (links.empty() || done.contains(id)) continue;
    const std::set<int> ids = component_of(graph, id);
    const Drawing drawing = draw_component(graph, ids);
    whole.text += drawing.text;
    whole.wraps = whole.wraps || drawing.wraps;
    done.insert(ids.begin(), ids.end());
  }
  if (!unlinked.empty()) whole.text += unlinked + '\n';
  if (done.empty() && graph.size() > 1) whole.text += kNoLinks;
  return '\n' + std::string(kTitle) + '\n' + whole.text + std::string(whole.wraps ? kLegend : "");
}

}  // namespace neuron::render
