#include "tools/render/node_svg.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "tools/render/node_view.h"
#include "tools/render/text.h"

namespace neuron::render {
namespace {

constexpr int kGap = 30;           // between devices side by side: room for a link
constexpr int kFrameGap = 14;      // between frames side by side
constexpr int kPad = 11;           // between a frame and its content
constexpr int kTitleHeight = 18;   // of a frame
constexpr int kWrapRoom = 40;      // outside of all frames, for the ends of wrap-around links
constexpr int kWrapDistance = 21;  // of such an end from the outermost frame
constexpr int kWidest = 330;       // of a device
constexpr int kHeaderHeight = 50;  // name and address of a device
constexpr int kHolderHeight = 20;
constexpr int kBarHeight = 26;
constexpr int kBarRoom = 20;
constexpr std::size_t kCoresPerRow = 4;
constexpr int kDockGap = 5;
constexpr int kEfasPerRow = 8;  // of interfaces that stand alone
constexpr int kEfaGap = 10;
constexpr int kGroupTitle = 22;
constexpr int kGroupsRoom = 26;

// Sizes along one axis: where each row or column begins, how long it is, and the space before it.
struct Axis {
  std::vector<int> begin;
  std::vector<int> space;  // space[i] before i, space[count] behind the last
  int length = 0;
};

struct Grid {
  Axis columns;
  Axis rows;
  int device_height = 0;
  bool links_in_the_middle = false;  // of each column; else at its side, clear of titles and interfaces
};

bool any(const std::vector<CellFrame>& frames, bool begins, bool is_row, int at) {
  return std::ranges::any_of(frames, [&](const CellFrame& frame) {
    const GridCell& cell = begins ? frame.first : frame.last;
    return (is_row ? cell.row : cell.column) == at;
  });
}

// Room before line `at` of an axis that has `count` of them.
int space_before(const std::vector<std::vector<CellFrame>>& levels, bool is_row, int at, int count) {
  int space = 0;
  for (const auto& frames : levels) {
    if (at > 0 && any(frames, false, is_row, at - 1)) space += kPad;
    if (at < count && any(frames, true, is_row, at)) space += kPad + (is_row ? kTitleHeight : 0);
  }
  if (at == 0 || at == count) return space;
  return std::max(kGap, space + (space > 0 ? kFrameGap : 0));
}

Axis spaces(const std::vector<std::vector<CellFrame>>& levels, bool is_row, int count) {
  Axis axis;
  for (int at = 0; at <= count; ++at) axis.space.push_back(space_before(levels, is_row, at, count));
  return axis;
}

void place(Axis& axis, int begin, int length) {
  axis.length = length;
  for (std::size_t i = 0; i + 1 < axis.space.size(); ++i) {
    begin += axis.space[i];
    axis.begin.push_back(begin);
    begin += length;
  }
}

int end_of(const Axis& axis) {
  return axis.begin.back() + axis.length + axis.space.back();
}

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

// Columns in the middle of the picture, as wide as there is room for.
void place_columns(Axis& axis, int count, bool wraps) {
  int taken = 0;
  for (const int space : axis.space) taken += space;
  const int room = kPictureWidth - 2 * kMargin - (wraps ? 2 * kWrapRoom : 0) - taken;
  const int width = std::min(kWidest, room / count);
  place(axis, (kPictureWidth - taken - width * count) / 2, width);
}

// Links up and down pass at the outer side of every pair of columns, which interfaces leave free.
int anchor(const Grid& grid, int column) {
  const int inset = grid.links_in_the_middle ? grid.columns.length / 2 : grid.columns.length / 10;
  const int left = grid.columns.begin[at(column)];
  return column % 2 == 0 ? left + inset : left + grid.columns.length - inset;
}

Box device_box(const Grid& grid, const GridCell& cell) {
  return {grid.columns.begin[at(cell.column)], grid.rows.begin[at(cell.row)], grid.columns.length, grid.device_height};
}

void add_devices(const NodeReport& report, const Grid& grid, NodeLayout& layout) {
  std::map<int, std::size_t> positions;
  for (std::size_t i = 0; i < report.host.devices.size(); ++i) positions[report.host.devices[i].index] = i;
  for (const auto& [index, cell] : layout.shape.cells) {
    DeviceBox& device = layout.devices.emplace_back();
    device.index = index;
    if (const auto found = positions.find(index); found != positions.end()) device.position = found->second;
    device.box = device_box(grid, cell);
  }
}

void add_wrap(const Grid& grid, const DeviceLink& link, const GridCell& a, const GridCell& b, NodeLayout& layout) {
  const auto end = [&](const GridCell& cell, int target) {
    const Box box = device_box(grid, cell);
    WrapEnd wrap{0, 0, target};
    Line line{0, 0, 0, 0, link.assumed};
    if (a.row == b.row) {
      const bool left = cell.column == 0;
      line.y1 = line.y2 = wrap.y = box.y + box.height / 2;
      line.x1 = left ? box.x : box.right();
      line.x2 = wrap.x = left ? grid.columns.begin.front() - grid.columns.space.front() - kWrapDistance
                              : end_of(grid.columns) + kWrapDistance;
    } else {
      const bool top = cell.row == 0;
      line.x1 = line.x2 = wrap.x = anchor(grid, cell.column);
      line.y1 = top ? box.y : box.bottom();
      line.y2 = wrap.y =
          top ? grid.rows.begin.front() - grid.rows.space.front() - kWrapDistance : end_of(grid.rows) + kWrapDistance;
    }
    layout.links.push_back(line);
    layout.wraps.push_back(wrap);
  };
  end(a, link.to);
  end(b, link.from);
}

bool is_wrap(const NodeShape& shape, const GridCell& a, const GridCell& b) {
  if (shape.kind != NodeShape::Kind::torus) return false;
  const int rows = std::abs(a.row - b.row);
  const int columns = std::abs(a.column - b.column);
  return (rows == 0 && columns == kTorusSide - 1) || (columns == 0 && rows == kTorusSide - 1);
}

void note_elsewhere(NodeLayout& layout, int index, int other) {
  for (DeviceBox& device : layout.devices) {
    if (device.index == index) device.elsewhere.push_back(other);
  }
}

void add_links(const Grid& grid, NodeLayout& layout) {
  for (const DeviceLink& link : layout.shape.links) {
    const GridCell a = layout.shape.cells.at(link.from);
    const GridCell b = layout.shape.cells.at(link.to);
    const Box from = device_box(grid, a);
    const Box to = device_box(grid, b);
    if (a.row == b.row && std::abs(a.column - b.column) == 1) {
      const int y = from.y + from.height / 2;
      layout.links.push_back({std::min(from.right(), to.right()), y, std::max(from.x, to.x), y, link.assumed});
    } else if (a.column == b.column && std::abs(a.row - b.row) == 1) {
      const int x = anchor(grid, a.column);
      layout.links.push_back({x, std::min(from.bottom(), to.bottom()), x, std::max(from.y, to.y), link.assumed});
    } else if (is_wrap(layout.shape, a, b)) {
      add_wrap(grid, link, a, b, layout);
    } else {
      note_elsewhere(layout, link.from, link.to);
      note_elsewhere(layout, link.to, link.from);
    }
  }
}

// One bar under the row, or between two, that every device has a line to.
void add_fabric_switch(const Grid& grid, NodeLayout& layout) {
  if (layout.shape.kind != NodeShape::Kind::switched) return;
  const bool between = layout.shape.rows == 2;
  const int y = between ? grid.rows.begin[1] - grid.rows.space[1] + (grid.rows.space[1] - kBarHeight) / 2
                        : end_of(grid.rows) + kBarRoom;
  const int left = grid.columns.begin.front();
  layout.fabric_switch = Box{left, y, grid.columns.begin.back() + grid.columns.length - left, kBarHeight};
  layout.bottom = std::max(layout.bottom, y + kBarHeight);
  for (const DeviceBox& device : layout.devices) {
    const GridCell cell = layout.shape.cells.at(device.index);
    const int x = anchor(grid, cell.column);
    const bool above = !between || cell.row == 0;
    layout.links.push_back({x, above ? device.box.bottom() : y + kBarHeight, x, above ? y : device.box.y, false});
  }
}

// Frames of one level; `inner`: those of the level below, which they leave room for.
void add_frames(const Grid& grid, int cell_height, const std::vector<CellFrame>& frames,
                const std::vector<CellFrame>& inner, NodeLayout& layout) {
  for (const CellFrame& cells : frames) {
    const auto depth = [&](bool begins, bool is_row, int line) { return any(inner, begins, is_row, line) ? 2 : 1; };
    const int x = grid.columns.begin[at(cells.first.column)] - kPad * depth(true, false, cells.first.column);
    const int y = grid.rows.begin[at(cells.first.row)] - (kPad + kTitleHeight) * depth(true, true, cells.first.row);
    const int right =
        grid.columns.begin[at(cells.last.column)] + grid.columns.length + kPad * depth(false, false, cells.last.column);
    const int bottom = grid.rows.begin[at(cells.last.row)] + cell_height + kPad * depth(false, true, cells.last.row);
    Frame frame;
    frame.level = cells.level;
    frame.box = {x, y, right - x, bottom - y};
    const bool clear = cells.first.column % 2 != 0 || layout.shape.rows == 1;
    frame.title_x = clear ? x + kPad : grid.columns.begin[at(cells.first.column)] + grid.columns.length / 5;
    frame.title = cells.title;
    frame.assumed = cells.assumed;
    layout.frames.push_back(std::move(frame));
  }
}

int core_rows_of(const NodeReport& report) {
  std::size_t most = 1;
  for (const auto& ids : report.core_ids) most = std::max(most, ids.size());
  return static_cast<int>((most + kCoresPerRow - 1) / kCoresPerRow);
}

bool knows_holders(const NodeReport& report) {
  return report.pods || std::ranges::any_of(report.host.devices, [](const auto& device) {
           return device.processes && !device.processes->empty();
         });
}

// A line for the state and those of the reason.
int reason_lines_of(const NodeReport& report, int width) {
  std::size_t lines = 0;
  for (const model::NeuronDevice& device : report.host.devices) {
    if (is_not_healthy(device.health)) lines = std::max(lines, 1 + reason_words(device.health, width).size());
  }
  return static_cast<int>(lines);
}

// The height below every device that its docks need.
int dock_height(const std::vector<EfaDock>& docks) {
  int slots = 0;
  for (const EfaDock& dock : docks) slots = std::max(slots, dock.slot + 1);
  return slots * (kEfaHeight + kDockGap);
}

// `columns`: left edges; `clear`: how much of the outer side of every pair of columns is left to links; `y`: lower edge
// of the devices.
Box box_of(const EfaDock& dock, const std::vector<int>& columns, int width, int clear, int y) {
  const bool pair = dock.first_column != dock.last_column;
  const bool even = dock.first_column % 2 == 0;
  const int left = columns[static_cast<std::size_t>(dock.first_column)] + (even ? clear : 0);
  const int right = columns[static_cast<std::size_t>(dock.last_column)] + width - (pair || !even ? clear : 0);
  return {left, y + kDockGap + dock.slot * (kEfaHeight + kDockGap), right - left, kEfaHeight};
}

std::string group_title(const model::EfaInterface& efa) {
  std::string title;
  if (efa.numa_node && *efa.numa_node >= 0) title = "NUMA node " + std::to_string(*efa.numa_node);
  if (!efa.switch_key.empty()) {
    title += title.empty() ? "" : " · ";
    title += pci_title(efa.switch_key, efa.pcie_root);
  }
  return title.empty() ? "EFA interfaces" : title;
}

// All interfaces that are not in `docked`, below everything, by NUMA node and PCI parent; moves layout.bottom.
void add_efa_groups(const NodeReport& report, const std::set<std::size_t>& docked, NodeLayout& layout) {
  std::map<std::pair<int, std::string>, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < report.host.efas.size(); ++i) {
    const model::EfaInterface& efa = report.host.efas[i];
    if (!docked.contains(i)) groups[{efa.numa_node.value_or(-1), efa.switch_key}].push_back(i);
  }
  if (groups.empty()) return;
  const int width = (kPictureWidth - 2 * kMargin - (kEfasPerRow - 1) * kEfaGap) / kEfasPerRow;
  int y = layout.bottom + (layout.devices.empty() ? 0 : kGroupsRoom);
  int column = 0;
  const auto next_row = [&] {
    y += kEfaHeight + kEfaGap;
    column = 0;
  };
  for (const auto& [key, efas] : groups) {
    const int needed = std::min<int>(kEfasPerRow, static_cast<int>(efas.size()));
    if (column > 0 && column + std::max(needed, 2) > kEfasPerRow) {
      next_row();
      y += kGroupTitle;
    }
    const int left = kMargin + column * (width + kEfaGap);
    const int title_columns = std::min(kEfasPerRow - column, std::max(needed, 2));
    layout.efa_groups.push_back(
        {{left, y, title_columns * (width + kEfaGap) - kEfaGap, kGroupTitle}, group_title(report.host.efas[efas[0]])});
    const int begin = column;
    for (const std::size_t position : efas) {
      if (column == kEfasPerRow) next_row();
      layout.efas.push_back({position, {kMargin + column * (width + kEfaGap), y + kGroupTitle, width, kEfaHeight}});
      ++column;
    }
    if (efas.size() > kEfasPerRow) column = kEfasPerRow;        // nothing stands beside a group of several rows
    if (column - begin == 1 && column < kEfasPerRow) ++column;  // room for the title
  }
  layout.bottom = y + kGroupTitle + kEfaHeight;
}

}  // namespace

NodeLayout lay_out(const NodeReport& report, int top) {
  NodeLayout layout;
  layout.shape = shape_of(report);
  layout.bottom = top;
  if (layout.shape.kind == NodeShape::Kind::none) {
    add_efa_groups(report, {}, layout);
    return layout;
  }
  auto numa = frames_of(report, layout.shape, CellFrame::Level::numa_node);
  auto pci = frames_of(report, layout.shape, CellFrame::Level::pci);
  if (!nested(pci, numa)) pci.clear();
  layout.numa_framed = !numa.empty();
  layout.pci_framed = !pci.empty();
  const bool wraps = layout.shape.kind == NodeShape::Kind::torus;
  Grid grid{spaces({numa, pci}, false, layout.shape.columns), spaces({numa, pci}, true, layout.shape.rows), 0, false};
  if (layout.shape.kind == NodeShape::Kind::switched && layout.shape.rows == 2) {
    grid.rows.space[1] += kBarHeight + 2 * kBarRoom;
  }
  place_columns(grid.columns, layout.shape.columns, wraps);
  layout.core_rows = core_rows_of(report);
  layout.holder_line = knows_holders(report);
  layout.reason_lines = reason_lines_of(report, grid.columns.length);
  grid.device_height = kHeaderHeight + layout.core_rows * (kCoreHeight + 4) + (layout.holder_line ? kHolderHeight : 0) +
                       (layout.reason_lines > 0 ? layout.reason_lines * kReasonHeight + 6 : 0) + 8;
  const std::vector<EfaDock> docks = dock_efas(report, layout.shape);
  const int cell_height = grid.device_height + dock_height(docks);
  const bool row_of_stems = layout.shape.kind == NodeShape::Kind::switched && layout.shape.rows == 1;
  grid.links_in_the_middle = docks.empty() && (row_of_stems || (numa.empty() && pci.empty()));
  const int clear = layout.shape.rows > 1 || row_of_stems ? grid.columns.length / 5 : 0;
  place(grid.rows, top + (wraps ? kWrapRoom : 0), cell_height);
  layout.bottom = end_of(grid.rows) + (wraps ? kWrapRoom : 0);
  add_frames(grid, cell_height, numa, pci, layout);
  add_frames(grid, cell_height, pci, {}, layout);
  add_devices(report, grid, layout);
  add_links(grid, layout);
  add_fabric_switch(grid, layout);
  std::set<std::size_t> docked;
  for (const EfaDock& dock : docks) {
    layout.efas.push_back({dock.position, box_of(dock, grid.columns.begin, grid.columns.length, clear,
                                                 grid.rows.begin[at(dock.row)] + grid.device_height)});
    docked.insert(dock.position);
  }
  add_efa_groups(report, docked, layout);
  return layout;
}

std::vector<std::string> reason_words(const model::Health& health, int device_width) {
  constexpr int kReasonSize = 11;
  const int width = device_width - 2 * kInset;
  const std::size_t most = characters_in(width, kReasonSize);
  const std::string& reason = health.reason;
  if (reason.empty()) return {};
  const std::size_t cut = reason.size() > most ? reason.rfind('_', most - 1) : std::string::npos;
  if (cut == std::string::npos) return {fit(reason, width, kReasonSize)};
  return {reason.substr(0, cut + 1), fit(reason.substr(cut + 1), width, kReasonSize)};
}

bool is_not_healthy(const model::Health& health) {
  return model::is_assessed(health) && health.state != model::HealthState::healthy;
}

}  // namespace neuron::render
