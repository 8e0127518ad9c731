#pragma once

#include <string>

#include "tools/kubectl-neuron/fleet.h"

namespace neuron::fleet {

enum class MapFormat {
  svg,
  html,  // the same picture in a page, with a tooltip on each node, device and interface
};

// One self-contained picture of the fleet: a tile per node, in groups by instance type; its devices in the shape of the
// fabric, coloured by holder, with a hatch and a mark where they are not healthy; its interfaces; nodes whose agent did
// not answer as such; sums, holders and a legend. Light or dark as the reader prefers; no script and no reference to
// another file. The same for the same fleet. Bounded: kMostTiles nodes, the others are counted. Pure.
inline constexpr std::size_t kMostTiles = 2000;
[[nodiscard]] std::string draw_map(const Fleet& fleet, MapFormat format);

}  // namespace neuron::fleet
