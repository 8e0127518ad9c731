#pragma once

#include <vector>

#include "tools/render/node_svg_layout.h"

// Which devices stand inside a common frame, in terms of cells. Internal to the layout. Pure.
namespace neuron::render {

struct CellFrame {
  Frame::Level level = Frame::Level::numa_node;
  Cell first;  // top left
  Cell last;   // bottom right, inclusive
  std::string title;
  bool assumed = false;
};

// Of one level: a frame per NUMA node or PCI parent when each of them is a rectangle of the grid that holds no device
// of another one; else none at all. Cells of devices that are missing may lie in any.
[[nodiscard]] std::vector<CellFrame> frames_of(const NodeReport& report, const NodeShape& shape, Frame::Level level);

// Whether every one of `inner` lies wholly inside, or wholly outside, each of `outer`.
[[nodiscard]] bool nested(const std::vector<CellFrame>& inner, const std::vector<CellFrame>& outer);

// "PCI switch 0000:b9", "PCI host bridge 0000:10"; of an interface or device.
[[nodiscard]] std::string pci_title(const std::string& key, const std::string& pcie_root);

}  // namespace neuron::render
