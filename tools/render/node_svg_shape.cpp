#include "tools/render/node_svg.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "agent/base/parse.h"
#include "tools/render/node_view.h"

namespace neuron::render {
namespace {

constexpr int kMostColumns = 6;  // that are readable 1200 pixels wide
constexpr int kSquareColumns = 4;
constexpr int kMostSlots = 3;  // of interfaces below one device

struct Group {
  CellFrame frame;
  std::size_t members = 0;
};

std::string numa_title(const model::NeuronDevice& device) {
  std::string title = "NUMA node " + std::to_string(device.numa_node->value);
  if (device.cpus && !device.cpus->value.empty()) title += " · CPUs " + format_int_list(device.cpus->value);
  return title;
}

// "0000:b9", else "0000:10"; "" where unknown.
std::string pci_key_of(const NodeReport& report, std::size_t position) {
  if (position < report.pci_keys.size() && !report.pci_keys[position].empty()) return report.pci_keys[position];
  constexpr std::string_view kPrefix = "pci";
  const std::string& root = report.host.devices[position].pcie_root;
  return root.starts_with(kPrefix) ? root.substr(kPrefix.size()) : root;
}

// -1 where unknown.
int numa_of(const NodeReport& report, std::size_t position) {
  const auto& node = report.host.devices[position].numa_node;
  return node ? node->value : -1;
}

// "" where the device is in no group of this level.
std::string key_of(const NodeReport& report, std::size_t position, CellFrame::Level level) {
  if (level == CellFrame::Level::pci) return pci_key_of(report, position);
  const int node = numa_of(report, position);
  return node < 0 ? "" : std::to_string(node);
}

void describe(CellFrame& frame, const NodeReport& report, std::size_t position, const std::string& key) {
  const model::NeuronDevice& device = report.host.devices[position];
  const bool numa = frame.level == CellFrame::Level::numa_node;
  frame.title = numa ? numa_title(device) : pci_title(key, device.pcie_root);
  frame.assumed = (numa         ? device.numa_node->origin
                   : device.bdf ? device.bdf->origin
                                : model::Origin::live) == model::Origin::assumed;
}

bool holds(const CellFrame& frame, const GridCell& cell) {
  return cell.row >= frame.first.row && cell.row <= frame.last.row && cell.column >= frame.first.column &&
         cell.column <= frame.last.column;
}

struct Links {
  DeviceGraph graph;                         // missing devices are nodes of it
  std::map<std::pair<int, int>, bool> live;  // whether a device itself listed the link
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
      links.live[std::minmax(device.index, other)] |= device.neighbours->origin == model::Origin::live;
    }
  }
  return links;
}

// Every device lists its four neighbours of the torus. A missing one is a node with fewer links.
bool is_torus(const NodeReport& report) {
  const auto& devices = report.host.devices;
  return !devices.empty() && std::ranges::all_of(devices, [](const model::NeuronDevice& device) {
    return device.neighbours && has_torus_neighbours(device.index, device.neighbours->value);
  });
}

// Of a chain or ring that holds all of the graph: its indices in the order of the links, the lowest first; of a chain
// from an end. Empty for any other graph.
std::vector<int> chain_of(const DeviceGraph& graph) {
  int start = graph.begin()->first;
  for (const auto& [index, others] : graph) {
    if (others.empty() || others.size() > 2) return {};
    if (others.size() == 1 && graph.at(start).size() != 1) start = index;
  }
  std::vector<int> order = walk(graph, start);
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
      const auto numa = frames_of(report, tried, CellFrame::Level::numa_node);
      const auto pci = frames_of(report, tried, CellFrame::Level::pci);
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

// In the order of the indices, at most `most` in a row.
void place_in_order(const DeviceGraph& graph, int most, NodeShape& shape) {
  std::vector<int> order;
  for (const auto& [index, others] : graph) order.push_back(index);
  place_rows(order, even_columns(order.size(), most), false, shape);
}

// The place of the interface at `position`, without a slot; nullopt where its devices are not side by side.
std::optional<EfaDock> dock_of(const NodeReport& report, const NodeShape& shape, std::size_t position) {
  std::vector<GridCell> cells;
  for (const int index : near_devices(report, position)) {
    const auto cell = shape.cells.find(index);
    if (cell != shape.cells.end()) cells.push_back(cell->second);
  }
  if (cells.empty() || cells.size() > 2) return std::nullopt;
  const auto [first, last] = std::minmax(cells.front().column, cells.back().column);
  if (cells.front().row != cells.back().row || last - first + 1 != static_cast<int>(cells.size())) return std::nullopt;
  if (last != first && first % 2 != 0) return std::nullopt;  // links up and down pass there
  return EfaDock{position, cells.front().row, first, last, 0};
}

bool collide(const EfaDock& a, const EfaDock& b) {
  return a.row == b.row && a.slot == b.slot && a.first_column <= b.last_column && b.first_column <= a.last_column;
}

}  // namespace

std::string pci_title(const std::string& key, const std::string& pcie_root) {
  return (pcie_root == "pci" + key ? "PCI host bridge " : "PCI switch ") + key;
}

std::vector<CellFrame> frames_of(const NodeReport& report, const NodeShape& shape, CellFrame::Level level) {
  std::map<std::string, Group> groups;
  std::map<std::string, std::vector<GridCell>> cells;
  for (std::size_t i = 0; i < report.host.devices.size(); ++i) {
    const std::string key = key_of(report, i, level);
    const auto found = shape.cells.find(report.host.devices[i].index);
    if (found == shape.cells.end()) return {};
    const GridCell cell = found->second;
    cells[key].push_back(cell);
    if (key.empty()) continue;
    Group& group = groups[key];
    if (group.members++ == 0) {
      group.frame = {level, cell, cell, "", false};
      describe(group.frame, report, i, key);
    }
    CellFrame& frame = group.frame;
    frame.first = {std::min(frame.first.row, cell.row), std::min(frame.first.column, cell.column)};
    frame.last = {std::max(frame.last.row, cell.row), std::max(frame.last.column, cell.column)};
  }
  std::vector<CellFrame> frames;
  for (const auto& [key, group] : groups) {
    for (const auto& [other, theirs] : cells) {
      const auto inside = [&frame = group.frame](const GridCell& cell) { return holds(frame, cell); };
      if (other != key && std::ranges::any_of(theirs, inside)) return {};
    }
    frames.push_back(group.frame);
  }
  return frames;
}

bool nested(const std::vector<CellFrame>& inner, const std::vector<CellFrame>& outer) {
  for (const CellFrame& small : inner) {
    for (const CellFrame& big : outer) {
      const bool apart = small.last.row < big.first.row || small.first.row > big.last.row ||
                         small.last.column < big.first.column || small.first.column > big.last.column;
      if (!apart && !(holds(big, small.first) && holds(big, small.last))) return false;
    }
  }
  return true;
}

NodeShape shape_of(const NodeReport& report) {
  NodeShape shape;
  const Links links = links_of(report);
  const std::size_t count = links.graph.size();
  if (count == 0) return shape;
  if (!report.switched) {
    for (const auto& [pair, live] : links.live) shape.links.push_back({pair.first, pair.second, !live});
  }
  const std::vector<int> chain = report.switched ? std::vector<int>{} : chain_of(links.graph);
  const bool closed = chain.size() > 2 && links.graph.at(chain.front()).contains(chain.back());
  if (count == 1) {
    shape.kind = NodeShape::Kind::single;
    place_in_order(links.graph, kMostColumns, shape);
  } else if (report.switched) {
    shape.kind = NodeShape::Kind::switched;
    place_in_order(links.graph, count > 2 * kMostColumns ? kSquareColumns : kMostColumns, shape);
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
    place_in_order(links.graph, count > kMostColumns && count <= 16 ? kSquareColumns : kMostColumns, shape);
  }
  return shape;
}

std::vector<EfaDock> dock_efas(const NodeReport& report, const NodeShape& shape) {
  std::vector<EfaDock> docks;
  for (std::size_t i = 0; i < report.host.efas.size(); ++i) {
    auto dock = dock_of(report, shape, i);
    const auto taken = [&](const EfaDock& other) { return collide(*dock, other); };
    while (dock && dock->slot < kMostSlots && std::ranges::any_of(docks, taken)) ++dock->slot;
    if (dock && dock->slot < kMostSlots) docks.push_back(*dock);
  }
  return docks;
}

}  // namespace neuron::render
