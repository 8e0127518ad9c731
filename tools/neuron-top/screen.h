#pragma once

#include <string>

#include "tools/neuron-top/panels.h"
#include "tools/render/canvas.h"

// The whole picture. Pure: the same arguments, the same cells.
namespace neuron::top {

inline constexpr int kLeastRows = 24;
inline constexpr int kLeastColumns = 80;

// What the picture says beside the machine's values.
struct Banner {
  std::string message;  // "stale: no answer for 12s", "PAUSED"; at the right end of the first line, "" = nothing
  bool alarming = false;
};

// Draws one screen. Smaller than 80 columns or 24 rows: only a message that says so. The devices' bars are shown when
// they leave enough room for the rest, else the compact form.
[[nodiscard]] render::Canvas draw_screen(const Scene& scene, const Banner& banner, int rows, int columns);

// Everything below one another, as long as it gets: for --once. `columns` at least 60.
[[nodiscard]] render::Canvas draw_print(const Scene& scene, int columns);

// The list of keys, drawn over a screen.
void draw_help(render::Canvas& canvas);

}  // namespace neuron::top
