#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/render/canvas.h"
#include "tools/screen/panels.h"

// The whole picture and its sections. Pure: the same arguments, the same cells.
namespace neuron::screen {

inline constexpr int kLeastRows = 24;
inline constexpr int kLeastColumns = 80;

// The message at the right end of the first line.
struct Banner {
  std::string message;  // "stale since 12s", "PAUSED"; "" = nothing
  bool alarming = false;
};

// Draws one screen. Smaller than 80 columns or 24 rows: only a message about the size. The devices' bars are shown when
// they leave enough room for the rest, else the compact form.
[[nodiscard]] render::Canvas draw_screen(const Scene& scene, const Banner& banner, int rows, int columns);

// All sections below one another, in full length: for --once. `columns` at least 60.
[[nodiscard]] render::Canvas draw_print(const Scene& scene, int columns);

// The list of keys, drawn over a screen.
void draw_help(render::Canvas& canvas);

// A heading in its colour over the whole width.
void draw_heading(render::Canvas& canvas, int row, std::string_view text);

// Faults, in lines of at most `columns` cells and at most `most` of them: the worst verdict with its reason and
// its advice, how many devices are missing, and why utilization is unknown where its heading has no room for that. Long
// ones take a second line while there is room. Empty when nothing is wrong.
[[nodiscard]] std::vector<TableCell> news(const Scene& scene, int columns, int most);

// The logical cores' section (screen_cores.cpp) in one of two layouts: `bars`, as in the official tool, one line per
// device and one bar per core; `compact`, several devices per line and one character per core, for small terminals and
// many devices.
struct CoresLayout {
  bool compact = false;
  int per_line = 1;    // devices per line
  int cell_width = 0;  // of one core's bar and text (bars), or of one device (compact), gap included
  int lines = 0;       // below the heading: titles of the columns and devices
};

// The section's heading, with the mean over the cores that are shown. Where the mean is unknown and the reason does not
// fit, the heading shows "n/a" and unsaid_reason() returns the reason, else "".
[[nodiscard]] std::string cores_heading(const Scene& scene, int columns);
[[nodiscard]] std::string unsaid_reason(const Scene& scene, int columns);

// `available` lines are left for the section below its heading; an automatic layout uses bars when they fit.
[[nodiscard]] CoresLayout lay_out_cores(const Scene& scene, int columns, int available);

// Draws heading and devices from `row` on; devices that do not fit into the layout's lines or `height` are counted in a
// last line. Returns the lines used.
int draw_cores(render::Canvas& canvas, int row, int height, const Scene& scene, const CoresLayout& layout);

// The sections between cores and panel (screen_summary.cpp). Each draws from `row` on, over the whole width, and
// returns the lines used.
inline constexpr int kHostLines = 4;    // heading, system, runtime, memory
inline constexpr int kMemoryLines = 3;  // heading, host, devices
int draw_host(render::Canvas& canvas, int row, const Scene& scene);
int draw_memory(render::Canvas& canvas, int row, const Scene& scene);

}  // namespace neuron::screen
