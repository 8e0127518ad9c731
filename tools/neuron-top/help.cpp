#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "tools/neuron-top/screen.h"

namespace neuron::top {
namespace {

constexpr int kWidth = 72;

constexpr std::array<std::pair<std::string_view, std::string_view>, 19> kKeys = {{
    {"q", "quit"},
    {"? h", "this help; any key closes it, q quits"},
    {"up down", "select a row (also page up, page down, home, end)"},
    {"enter", "open or close the selected item of the memory tree"},
    {"left right", "close, open it"},
    {"x", "open or close the entire tree"},
    {"a d", "previous, next app"},
    {"1 to 9", "app of that number; 1 is all"},
    {"f", "teraflops on, off"},
    {"m", "memory per device and core"},
    {"c", "condition: health, ECC errors, power"},
    {"e", "EFA interfaces: throughput and errors"},
    {"p", "processes and pods"},
    {"g", "graphs of the last samples; tab: the next of m c e p g"},
    {"u", "cores as bars, compact, or as fits"},
    {"s", "sort by index, utilization, memory, health"},
    {"/", "show only matches; escape shows everything again"},
    {"space", "pause, go on"},
    {"ND! ND~ ND?", "unhealthy, degraded, unknown; CE UE: (un)corrected"},
}};

}  // namespace

void draw_help(render::Canvas& canvas) {
  const bool utf8 = canvas.charset() == render::Charset::utf8;
  const int height = static_cast<int>(kKeys.size()) + 2;
  const int top = std::max((canvas.rows() - height) / 2, 0);
  const int left = std::max((canvas.columns() - kWidth) / 2, 0);
  for (int row = top; row < top + height; ++row) {
    for (int column = left; column < left + kWidth; ++column) canvas.put(row, column, " ");
    canvas.put(row, left, utf8 ? "│" : "|", Role::label);
    canvas.put(row, left + kWidth - 1, utf8 ? "│" : "|", Role::label);
  }
  for (int column = left; column < left + kWidth; ++column) {
    const bool first = column == left;
    const bool last = column == left + kWidth - 1;
    canvas.put(top, column, !utf8 ? (first || last ? "+" : "-") : first ? "┌" : last ? "┐" : "─", Role::label);
    canvas.put(top + height - 1, column,
               !utf8   ? (first || last ? "+" : "-")
               : first ? "└"
               : last  ? "┘"
                       : "─",
               Role::label);
  }
  canvas.put(top, left + 2, " Keys ", Role::title);
  int row = top + 1;
  for (const auto& [key, meaning] : kKeys) {
    canvas.put(row, left + 2, key, Role::key);
    canvas.put(row++, left + 14, meaning);
  }
}

}  // namespace neuron::top
