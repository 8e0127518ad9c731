#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/render/node_report.h"

// Where each device of a node stands in a grid, so that devices that are linked stand side by side. Pure.
namespace neuron::render {

struct Cell {
  int row = 0;
  int column = 0;
  friend bool operator==(const Cell&, const Cell&) = default;
};

// A link between two devices, by index of the host, from < to.
struct DeviceLink {
  int from = 0;
  int to = 0;
  bool assumed = false;  // neither of the two said so itself: it is of the official table
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
  std::map<int, Cell> cells;      // by index; of missing devices too
  std::vector<DeviceLink> links;  // ascending; none where they mean nothing (switched)
};

inline constexpr int kTorusSide = 4;
inline constexpr int kMostColumns = 6;  // what is readable 1200 pixels wide

// What a device shares with others: "" or -1 where nobody can say.
[[nodiscard]] std::string pci_key_of(const NodeReport& report, std::size_t position);  // "0000:b9", else "0000:10"
[[nodiscard]] int numa_of(const NodeReport& report, std::size_t position);

[[nodiscard]] NodeShape shape_of(const NodeReport& report);

}  // namespace neuron::render
