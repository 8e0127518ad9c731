#include "tools/render/node_svg_shape.h"

#include <algorithm>
#include <array>
#include <set>

#include "tools/render/node_svg_frames.h"

namespace neuron::render {
namespace {

using Graph = std::map<int, std::set<int>>;  // index -> linked indices, symmetric

struct Links {
  Graph graph;                               // missing devices are nodes of it
  std::map<std::pair<int, int>, bool> said;  // whether a device itself said so
};

Links links_of(const NodeReport& report) {
  Links links;
  for (const model::NeuronDevice& device : report.host.devices) links.graph[device.index];
  for (const int index : report.missing_devices) links.graph[index];
  for (const model::NeuronDevice& device : report.host.devices) {
    if (!device.neighbours) continue;
    for (const int other : device.neighbours->value) {
      if (other == device.index || !links.graph.contains(other)) continue;
      links.graph[device.index].insert(other);
      links.graph[other].insert(device.index);
      links.said[std::minmax(device.index, other)] |= device.neighbours->origin == model::Origin::live;
    }
  }
  return links;
}

std::set<int> torus_neighbours(int index) {
  const auto at = [](int row, int column) {
    return (row + kTorusSide) % kTorusSide * kTorusSide + (column + kTorusSide) % kTorusSide;
  };
  const int row = index / kTorusSide;
  const int column = index % kTorusSide;
  return {at(row - 1, column), at(row + 1, column), at(row, column - 1), at(row, column + 1)};
}

// Every device lists its four neighbours of the torus. A missing one is a node with fewer links.
bool is_torus(const NodeReport& report) {
  const auto fits = [](const model::NeuronDevice& device) {
    if (device.index < 0 || device.index >= kTorusSide * kTorusSide || !device.neighbours) return false;
    const auto& list = device.neighbours->value;
    return std::set<int>(list.begin(), list.end()) == torus_neighbours(device.index);
  };
  return !report.host.devices.empty() && std::all_of(report.host.devices.begin(), report.host.devices.end(), fits);
}

// Of a chain or ring that holds all of the graph: its indices in the order of the links, the lowest first; of a chain
// from an end. Empty for any other graph.
std::vector<int> walk(const Graph& graph) {
  int start = graph.begin()->first;
  for (const auto& [index, others] : graph) {
    if (others.empty() || others.size() > 2) return {};
    if (others.size() == 1 && graph.at(start).size() != 1) start = index;
  }
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
  return order.size() == graph.size() ? order : std::vector<int>{};
}

void place_torus(NodeShape& shape, int row_shift, int column_shift) {
  shape.rows = shape.columns = kTorusSide;
  for (int index = 0; index < kTorusSide * kTorusSide; ++index) {
    shape.cells[index] = {(index / kTorusSide - row_shift + kTorusSide) % kTorusSide,
                          (index % kTorusSide - column_shift + kTorusSide) % kTorusSide};
  }
}

// A torus may begin anywhere: here where switches and NUMA nodes are rectangles; of several such places the one whose
// device 0 is nearest to the top, then to the left.
void place_torus(const NodeReport& report, NodeShape& shape) {
  constexpr std::array<int, kTorusSide> kShifts = {0, 3, 2, 1};
  int best = 0;
  place_torus(shape, 0, 0);
  NodeShape tried = shape;
  for (const int rows : kShifts) {
    for (const int columns : kShifts) {
      place_torus(tried, rows, columns);
      const auto numa = frames_of(report, tried, Frame::Level::numa_node);
      const auto pci = frames_of(report, tried, Frame::Level::pci);
      const int good = (numa.empty() ? 0 : 1) + (pci.empty() || !nested(pci, numa) ? 0 : 1);
      if (good <= best) continue;
      best = good;
      shape = tried;
    }
  }
}

// Row by row; every second row backwards when `turns`.
void place_rows(const std::vector<int>& order, int columns, bool turns, NodeShape& shape) {
  shape.columns = columns;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const int row = static_cast<int>(i) / columns;
    const int column = static_cast<int>(i) % columns;
    shape.cells[order[i]] = {row, turns && row % 2 == 1 ? columns - 1 - column : column};
    shape.rows = row + 1;
  }
}

// The fewest columns for the fewest rows of at most `most`.
int even_columns(std::size_t count, int most) {
  const int devices = static_cast<int>(count);
  const int rows = (devices + most - 1) / most;
  return (devices + rows - 1) / rows;
}

void place_loose(const Graph& graph, NodeShape& shape) {
  std::vector<int> order;
  for (const auto& [index, others] : graph) order.push_back(index);
  const bool square = order.size() > kMostColumns && order.size() <= 16;
  place_rows(order, even_columns(order.size(), square ? 4 : kMostColumns), false, shape);
}

void place_switched(const Graph& graph, NodeShape& shape) {
  std::vector<int> order;
  for (const auto& [index, others] : graph) order.push_back(index);
  place_rows(order, even_columns(order.size(), order.size() > 2 * kMostColumns ? 4 : kMostColumns), false, shape);
}

}  // namespace

std::string pci_key_of(const NodeReport& report, std::size_t position) {
  if (position < report.pci_keys.size() && !report.pci_keys[position].empty()) return report.pci_keys[position];
  constexpr std::string_view kPrefix = "pci";
  const std::string& root = report.host.devices[position].pcie_root;
  return root.starts_with(kPrefix) ? root.substr(kPrefix.size()) : root;
}

int numa_of(const NodeReport& report, std::size_t position) {
  const auto& node = report.host.devices[position].numa_node;
  return node ? node->value : -1;
}

NodeShape shape_of(const NodeReport& report) {
  NodeShape shape;
  const Links links = links_of(report);
  if (links.graph.empty()) return shape;
  if (!report.switched) {
    for (const auto& [pair, said] : links.said) shape.links.push_back({pair.first, pair.second, !said});
  }
  const std::vector<int> chain = report.switched ? std::vector<int>{} : walk(links.graph);
  const bool closed = chain.size() > 2 && links.graph.at(chain.front()).contains(chain.back());
  if (links.graph.size() == 1) {
    shape.kind = NodeShape::Kind::single;
    place_loose(links.graph, shape);
  } else if (report.switched) {
    shape.kind = NodeShape::Kind::switched;
    place_switched(links.graph, shape);
  } else if (is_torus(report)) {
    shape.kind = NodeShape::Kind::torus;
    place_torus(report, shape);
  } else if (closed && chain.size() % 2 == 0 && chain.size() <= 2 * kMostColumns) {
    shape.kind = NodeShape::Kind::ring;
    place_rows(chain, static_cast<int>(chain.size() / 2), true, shape);
  } else if (!chain.empty() && !closed) {
    shape.kind = NodeShape::Kind::line;
    place_rows(chain, even_columns(chain.size(), kMostColumns), true, shape);
  } else {
    shape.kind = NodeShape::Kind::loose;
    place_loose(links.graph, shape);
  }
  return shape;
}

}  // namespace neuron::render
