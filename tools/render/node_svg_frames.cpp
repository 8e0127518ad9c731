#include "tools/render/node_svg_frames.h"

#include <algorithm>
#include <map>

#include "agent/base/parse.h"

namespace neuron::render {
namespace {

struct Group {
  CellFrame frame;
  std::size_t members = 0;
};

std::string numa_title(const model::NeuronDevice& device) {
  std::string title = "NUMA node " + std::to_string(device.numa_node->value);
  if (device.cpus && !device.cpus->value.empty()) title += " · CPUs " + format_int_list(device.cpus->value);
  return title;
}

// "" where the device is in no group of this level.
std::string key_of(const NodeReport& report, std::size_t position, Frame::Level level) {
  if (level == Frame::Level::pci) return pci_key_of(report, position);
  const int node = numa_of(report, position);
  return node < 0 ? "" : std::to_string(node);
}

void describe(CellFrame& frame, const NodeReport& report, std::size_t position, const std::string& key) {
  const model::NeuronDevice& device = report.host.devices[position];
  const bool numa = frame.level == Frame::Level::numa_node;
  frame.title = numa ? numa_title(device) : pci_title(key, device.pcie_root);
  frame.assumed = (numa         ? device.numa_node->origin
                   : device.bdf ? device.bdf->origin
                                : model::Origin::live) == model::Origin::assumed;
}

bool holds(const CellFrame& frame, const Cell& cell) {
  return cell.row >= frame.first.row && cell.row <= frame.last.row && cell.column >= frame.first.column &&
         cell.column <= frame.last.column;
}

}  // namespace

std::string pci_title(const std::string& key, const std::string& pcie_root) {
  return (pcie_root == "pci" + key ? "PCI host bridge " : "PCI switch ") + key;
}

std::vector<CellFrame> frames_of(const NodeReport& report, const NodeShape& shape, Frame::Level level) {
  std::map<std::string, Group> groups;
  std::map<std::string, std::vector<Cell>> cells;
  for (std::size_t i = 0; i < report.host.devices.size(); ++i) {
    const std::string key = key_of(report, i, level);
    const auto found = shape.cells.find(report.host.devices[i].index);
    if (found == shape.cells.end()) return {};
    const Cell cell = found->second;
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
      const auto inside = [&frame = group.frame](const Cell& cell) { return holds(frame, cell); };
      if (other != key && std::any_of(theirs.begin(), theirs.end(), inside)) return {};
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

}  // namespace neuron::render
