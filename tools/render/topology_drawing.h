#pragma once

#include <string>

#include "tools/render/node_view.h"

namespace neuron::render {

// What `neuron-ls --topology` prints below its table, leading blank lines included
// (docs/reference/official-tools.md#neuron-ls-topology). The 4x4 torus and the chain are the official drawings; a ring
// is one row whose ends carry the torus' wrap-around arms; devices behind a switch stand above and below it;
// unconnected devices stand side by side, with a line that says so when none of several is linked; anything else is a
// list of who is linked to whom. Nodes carry host indices, as CONNECTED DEVICES does. A torus with devices missing, or
// not visible here, keeps its shape with empty nodes. UTF-8. Pure, any thread.
[[nodiscard]] std::string draw_topology(const NodeView& view);

}  // namespace neuron::render
