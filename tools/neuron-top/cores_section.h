#pragma once

#include <string>

#include "tools/neuron-top/panels.h"
#include "tools/render/canvas.h"

// What the logical cores are doing. Two layouts: `bars`, as in the official tool, one line per device and one bar per
// core; and `compact`, several devices per line and one character per core, for small terminals and many devices.
namespace neuron::top {

// Arithmetic of the section for a terminal that many columns wide. Pure.
struct CoresLayout {
  bool compact = false;
  int per_line = 1;    // devices per line
  int cell_width = 0;  // of one core's bar and text (bars), or of one device (compact), gap included
  int lines = 0;       // below the heading: titles of the columns and devices
};

// The section's heading, with the mean over the cores that are shown; where it has no room to say why that is unknown,
// it says "n/a" and unsaid_reason() the reason, else "".
[[nodiscard]] std::string cores_heading(const Scene& scene, int columns);
[[nodiscard]] std::string unsaid_reason(const Scene& scene, int columns);

// `available` lines are what the section may have below its heading; an automatic layout uses bars when they fit.
[[nodiscard]] CoresLayout lay_out_cores(const Scene& scene, int columns, int available);

// Draws heading and devices from `row` on; what does not fit into the layout's lines or `height` is left out and
// counted in a last line. Returns the lines used.
int draw_cores(render::Canvas& canvas, int row, int height, const Scene& scene, const CoresLayout& layout);

}  // namespace neuron::top
