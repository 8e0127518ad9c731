#pragma once

#include <set>
#include <vector>

#include "tools/render/node_svg_layout.h"

// Where the interfaces of a node are drawn. Internal to the layout. Pure.
namespace neuron::render {

// An interface under the one device, or the two side by side, that it is the nearest of.
struct EfaDock {
  std::size_t position = 0;  // in host.efas
  int row = 0;
  int first_column = 0;
  int last_column = 0;
  int slot = 0;  // from the device downwards, where several share the place
};

// Those that can stand so; the others have no dock.
[[nodiscard]] std::vector<EfaDock> dock_efas(const NodeReport& report, const NodeShape& shape);

[[nodiscard]] int dock_height(const std::vector<EfaDock>& docks);  // that every device needs below it

// `columns`: left edges; `clear`: how much of the outer side of every pair of columns is left to links; `y`: lower edge
// of the devices.
[[nodiscard]] Box box_of(const EfaDock& dock, const std::vector<int>& columns, int width, int clear, int y);

// All interfaces that are not in `docked`, below everything, by NUMA node and PCI parent; moves layout.bottom.
void add_efa_groups(const NodeReport& report, const std::set<std::size_t>& docked, NodeLayout& layout);

}  // namespace neuron::render
