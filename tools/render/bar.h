#pragma once

#include <vector>

#include "tools/render/canvas.h"

namespace neuron::render {

// A part of a bar: `fraction` of its whole length, clamped to 0..1 together with the parts before it.
struct BarPart {
  double fraction = 0;
  Role role = Role::good;
};

// Draws a horizontal bar of `width` cells. With UTF-8 its end is exact to an eighth of a cell when there is one part; a
// value above zero shows at least the thinnest mark. With ASCII each filled cell is '|'. The rest is drawn faintly, so
// that an empty bar can be told from an absent one. No parts: an empty bar.
void draw_bar(Canvas& canvas, int row, int column, int width, const std::vector<BarPart>& parts);

}  // namespace neuron::render
