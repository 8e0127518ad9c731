#include "tools/render/node_svg_efas.h"

#include <algorithm>
#include <map>
#include <utility>

#include "tools/render/node_svg_frames.h"

namespace neuron::render {
namespace {

constexpr int kDockGap = 5;
constexpr int kMostSlots = 3;
constexpr int kPerRow = 8;  // of interfaces that stand alone
constexpr int kEfaGap = 10;
constexpr int kGroupTitle = 22;
constexpr int kGroupsRoom = 26;

// The place of the interface at `position`, without a slot; nullopt where its devices are not side by side.
std::optional<EfaDock> dock_of(const NodeReport& report, const NodeShape& shape, std::size_t position) {
  std::vector<Cell> cells;
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

std::string group_title(const model::EfaInterface& efa) {
  std::string title;
  if (efa.numa_node && *efa.numa_node >= 0) title = "NUMA node " + std::to_string(*efa.numa_node);
  if (!efa.switch_key.empty()) {
    title += title.empty() ? "" : " · ";
    title += pci_title(efa.switch_key, efa.pcie_root);
  }
  return title.empty() ? "EFA interfaces" : title;
}

}  // namespace

std::vector<EfaDock> dock_efas(const NodeReport& report, const NodeShape& shape) {
  std::vector<EfaDock> docks;
  for (std::size_t i = 0; i < report.host.efas.size(); ++i) {
    auto dock = dock_of(report, shape, i);
    const auto taken = [&](const EfaDock& other) { return collide(*dock, other); };
    while (dock && dock->slot < kMostSlots && std::any_of(docks.begin(), docks.end(), taken)) ++dock->slot;
    if (dock && dock->slot < kMostSlots) docks.push_back(*dock);
  }
  return docks;
}

int dock_height(const std::vector<EfaDock>& docks) {
  int slots = 0;
  for (const EfaDock& dock : docks) slots = std::max(slots, dock.slot + 1);
  return slots * (kEfaHeight + kDockGap);
}

Box box_of(const EfaDock& dock, const std::vector<int>& columns, int width, int clear, int y) {
  const bool pair = dock.first_column != dock.last_column;
  const bool even = dock.first_column % 2 == 0;
  const int left = columns[static_cast<std::size_t>(dock.first_column)] + (even ? clear : 0);
  const int right = columns[static_cast<std::size_t>(dock.last_column)] + width - (pair || !even ? clear : 0);
  return {left, y + kDockGap + dock.slot * (kEfaHeight + kDockGap), right - left, kEfaHeight};
}

void add_efa_groups(const NodeReport& report, const std::set<std::size_t>& docked, NodeLayout& layout) {
  std::map<std::pair<int, std::string>, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < report.host.efas.size(); ++i) {
    const model::EfaInterface& efa = report.host.efas[i];
    if (!docked.contains(i)) groups[{efa.numa_node.value_or(-1), efa.switch_key}].push_back(i);
  }
  if (groups.empty()) return;
  const int width = (kPictureWidth - 2 * kMargin - (kPerRow - 1) * kEfaGap) / kPerRow;
  int y = layout.bottom + (layout.devices.empty() ? 0 : kGroupsRoom);
  int column = 0;
  const auto next_row = [&] {
    y += kEfaHeight + kEfaGap;
    column = 0;
  };
  for (const auto& [key, efas] : groups) {
    const int needed = std::min<int>(kPerRow, static_cast<int>(efas.size()));
    if (column > 0 && column + std::max(needed, 2) > kPerRow) {
      next_row();
      y += kGroupTitle;
    }
    const int left = kMargin + column * (width + kEfaGap);
    const int title_columns = std::min(kPerRow - column, std::max(needed, 2));
    layout.efa_groups.push_back(
        {{left, y, title_columns * (width + kEfaGap) - kEfaGap, kGroupTitle}, group_title(report.host.efas[efas[0]])});
    const int begin = column;
    for (const std::size_t position : efas) {
      if (column == kPerRow) next_row();
      layout.efas.push_back({position, {kMargin + column * (width + kEfaGap), y + kGroupTitle, width, kEfaHeight}});
      ++column;
    }
    if (efas.size() > kPerRow) column = kPerRow;            // nothing stands beside a group of several rows
    if (column - begin == 1 && column < kPerRow) ++column;  // room for the title
  }
  layout.bottom = y + kGroupTitle + kEfaHeight;
}

}  // namespace neuron::render
