#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/render/node_report.h"

// Where the devices of a node's picture stand in a grid, which of them share a frame, and which interfaces stand below
// them, all in terms of cells. Pure.
namespace neuron::render {

struct GridCell {
  int row = 0;
  int column = 0;
  friend bool operator==(const GridCell&, const GridCell&) = default;
};

// A link between two devices, by index of the host, from < to.
struct DeviceLink {
  int from = 0;
  int to = 0;
  bool assumed = false;  // from the official table, not from one of the two devices
  friend bool operator==(const DeviceLink&, const DeviceLink&) = default;
};

struct NodeShape {
  enum class Kind {
    none,      // no device
    single,    // one
    torus,     // 4x4, rotated so that switches and NUMA nodes stay in one piece
    ring,      // two rows that close at both ends
    line,      // a row, or rows that turn at their ends
    switched,  // every device reaches every other alike
    loose,     // in the order of their numbers; links, if any are known, as text
  };
  Kind kind = Kind::none;
  int rows = 0;
  int columns = 0;
  std::map<int, GridCell> cells;  // by index; of missing devices too
  std::vector<DeviceLink> links;  // ascending; none where they mean nothing (switched)
};

// Linked devices stand side by side where the links allow it.
[[nodiscard]] NodeShape shape_of(const NodeReport& report);

struct CellFrame {
  enum class Level { numa_node, pci };
  Level level = Level::numa_node;
  GridCell first;  // top left
  GridCell last;   // bottom right, inclusive
  std::string title;
  bool assumed = false;  // from the official table
};

// Of one level: a frame per NUMA node or PCI parent when each of them is a rectangle of the grid that holds no device
// of another one; else none at all. Cells of devices that are missing may lie in any.
[[nodiscard]] std::vector<CellFrame> frames_of(const NodeReport& report, const NodeShape& shape,
                                               CellFrame::Level level);

// Whether every one of `inner` lies wholly inside, or wholly outside, each of `outer`.
[[nodiscard]] bool nested(const std::vector<CellFrame>& inner, const std::vector<CellFrame>& outer);

// "PCI switch 0000:b9", "PCI host bridge 0000:10"; of an interface or device.
[[nodiscard]] std::string pci_title(const std::string& key, const std::string& pcie_root);

// An interface below the one device, or the two side by side, that it is the nearest of.
struct EfaDock {
  std::size_t position = 0;  // in host.efas
  int row = 0;
  int first_column = 0;
  int last_column = 0;
  int slot = 0;  // from the device downwards, where several share the place
};

// The docks of the interfaces that have one; the others stand below the machine.
[[nodiscard]] std::vector<EfaDock> dock_efas(const NodeReport& report, const NodeShape& shape);

}  // namespace neuron::render
