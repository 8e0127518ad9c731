#pragma once

#include "tools/neuron-top/panels.h"
#include "tools/render/canvas.h"

// The sections between cores and panel. Each draws from `row` on, over the whole width, and returns the lines used.
namespace neuron::top {

inline constexpr int kHostLines = 4;    // heading, system, runtime, memory
inline constexpr int kMemoryLines = 3;  // heading, host, devices

int draw_host(render::Canvas& canvas, int row, const Scene& scene);
int draw_memory(render::Canvas& canvas, int row, const Scene& scene);

// A heading in its colour over the whole width.
void draw_heading(render::Canvas& canvas, int row, std::string_view text);

}  // namespace neuron::top
