#include "tools/render/bar.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace neuron::render {
namespace {

constexpr int kEighths = 8;
constexpr std::array<std::string_view, kEighths> kPartial = {" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};

// Eighths of a cell; NaN and negative values are nothing.
int eighths(double fraction, int width) {
  if (!(fraction > 0)) return 0;
  const double exact = std::min(fraction, 1.0) * width * kEighths;
  return std::max(static_cast<int>(std::lround(exact)), 1);
}

int whole_cells(int count) {
  return (count + kEighths / 2) / kEighths;
}

void fill(Canvas& canvas, int row, int begin, int end, Role role, bool filled) {
  const bool utf8 = canvas.charset() == Charset::utf8;
  const std::string_view solid = utf8 ? "█" : "|";
  const std::string_view hollow = utf8 ? "·" : ".";
  for (int column = begin; column < end; ++column) canvas.put(row, column, filled ? solid : hollow, role);
}

}  // namespace

void draw_bar(Canvas& canvas, int row, int column, int width, const std::vector<BarPart>& parts) {
  if (width <= 0) return;
  fill(canvas, row, column, column + width, Role::bar_empty, false);
  const bool exact = canvas.charset() == Charset::utf8 && parts.size() == 1;
  int done = 0;
  double sum = 0;
  for (const BarPart& part : parts) {
    if (part.fraction > 0) sum += part.fraction;
    const int length = eighths(sum, width);
    int end = exact ? length / kEighths : whole_cells(length);
    if (!exact && part.fraction > 0) end = std::clamp(end, std::min(done + 1, width), width);
    fill(canvas, row, column + done, column + end, part.role, true);
    if (exact && length % kEighths != 0) {
      canvas.put(row, column + end, kPartial[static_cast<std::size_t>(length % kEighths)], part.role);
    }
    done = std::max(done, end);
  }
}

}  // namespace neuron::render
