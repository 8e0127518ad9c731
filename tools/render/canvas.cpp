#include "tools/render/canvas.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

namespace neuron::render {
namespace {

constexpr char32_t kUnfit = U'?';

// First and last character of the blocks that a terminal shows in no cell or in two.
constexpr std::array<std::pair<char32_t, char32_t>, 14> kNotOneCell = {{{0x0300, 0x036f},
                                                                        {0x0483, 0x0489},
                                                                        {0x0591, 0x05c7},
                                                                        {0x0610, 0x065f},
                                                                        {0x0900, 0x0dff},
                                                                        {0x0e31, 0x0eff},
                                                                        {0x1100, 0x11ff},
                                                                        {0x1ab0, 0x1aff},
                                                                        {0x1dc0, 0x1dff},
                                                                        {0x200b, 0x206f},
                                                                        {0x20d0, 0x20ff},
                                                                        {0x2e80, 0xa4cf},
                                                                        {0xa960, 0xfaff},
                                                                        {0xfe00, 0x10ffff}}};

bool fits_one_cell(char32_t character) {
  if (character < 0x20 || (character >= 0x7f && character < 0xa0) || character == 0xad) return false;
  return std::ranges::none_of(
      kNotOneCell, [character](const auto& block) { return character >= block.first && character <= block.second; });
}

bool is_continuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0U) == 0x80U;
}

// Bytes that the first byte of a character announces; 0 for a byte that begins none.
std::size_t length_of(unsigned char first) {
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first < 0xe0) return 2;
  if (first >= 0xe0 && first < 0xf0) return 3;
  return first >= 0xf0 && first < 0xf5 ? 4 : 0;
}

// The character at the front of `text`, which it takes away; an invalid byte is one unfit character.
char32_t take(std::string_view& text) {
  const auto first = static_cast<unsigned char>(text.front());
  const std::size_t length = length_of(first);
  if (length < 2 || text.size() < length) {
    text.remove_prefix(1);
    return length == 1 ? first : kUnfit;
  }
  char32_t character = first & (0xffU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if (!is_continuation(text[i])) {
      text.remove_prefix(i);
      return kUnfit;
    }
    character = (character << 6U) | (static_cast<unsigned char>(text[i]) & 0x3fU);
  }
  text.remove_prefix(length);
  return character;
}

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

constexpr std::array<std::string_view, 8> kBlocks = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::array<std::string_view, 10> kDigits = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};

// Step 0 is for zero alone; every other value is above it.
std::size_t step(double value, double full, std::size_t steps) {
  if (!(value > 0) || !(full > 0)) return 0;
  const double top = static_cast<double>(steps - 1);
  return static_cast<std::size_t>(std::clamp(std::ceil(value / full * top - 0.5), 0.0, top));
}

}  // namespace

std::u32string cells_of(std::string_view text, Charset charset) {
  std::u32string cells;
  cells.reserve(text.size());
  while (!text.empty()) {
    const char32_t character = take(text);
    const bool shown = fits_one_cell(character) && (charset == Charset::utf8 || character < 0x80);
    cells += shown ? character : kUnfit;
  }
  return cells;
}

std::string utf8_of(char32_t character) {
  const auto byte = [](char32_t value) { return static_cast<char>(static_cast<unsigned char>(value)); };
  const auto tail = [&](unsigned shift) { return byte(0x80U | ((character >> shift) & 0x3fU)); };
  if (character < 0x80) return {byte(character)};
  if (character < 0x800) return {byte(0xc0U | (character >> 6U)), tail(0)};
  if (character < 0x10000) return {byte(0xe0U | (character >> 12U)), tail(6), tail(0)};
  return {byte(0xf0U | (character >> 18U)), tail(12), tail(6), tail(0)};
}

Canvas::Canvas(int rows, int columns, Charset charset)
    : rows_(std::max(rows, 0)),
      columns_(std::max(columns, 0)),
      charset_(charset),
      cells_(static_cast<std::size_t>(rows_) * static_cast<std::size_t>(columns_)) {}

std::size_t Canvas::index(int row, int column) const {
  return static_cast<std::size_t>(row) * static_cast<std::size_t>(columns_) + static_cast<std::size_t>(column);
}

int Canvas::put(int row, int column, std::string_view text, Role role, int max_width) {
  int written = 0;
  for (const char32_t character : cells_of(text, charset_)) {
    if (written == max_width) break;
    const int at_column = column + written++;
    if (row < 0 || row >= rows_ || at_column < 0 || at_column >= columns_) continue;
    cells_[index(row, at_column)] = {character, role};
  }
  return column + written;
}

int Canvas::put_right(int row, int end, std::string_view text, Role role) {
  return put(row, end - static_cast<int>(cells_of(text, charset_).size()), text, role);
}

void Canvas::put_centred(int row, int begin, int end, std::string_view text, Role role) {
  const int width = static_cast<int>(cells_of(text, charset_).size());
  const int slack = std::max(end - begin - width, 0);
  put(row, begin + slack / 2, text, role, std::max(end - begin, 0));
}

void Canvas::paint(int row, int begin, int end, Role role) {
  if (row < 0 || row >= rows_) return;
  for (int column = std::max(begin, 0); column < std::min(end, columns_); ++column) {
    cells_[index(row, column)].role = role;
  }
}

std::string Canvas::to_text(ColourDepth depth) const {
  std::string text;
  std::size_t end_of_last = 0;
  for (int row = 0; row < rows_; ++row) {
    int end = columns_;
    while (end > 0 && at(row, end - 1).character == U' ' && paint_of(depth, at(row, end - 1).role) == Paint{}) --end;
    if (depth == ColourDepth::none) {
      while (end > 0 && at(row, end - 1).character == U' ') --end;
    }
    for (int column = 0; column < end;) {
      const Role role = at(row, column).role;
      std::string run;
      while (column < end && at(row, column).role == role) run += utf8_of(at(row, column++).character);
      text += painted(depth, role, run);
    }
    text += '\n';
    if (end > 0) end_of_last = text.size();
  }
  text.resize(end_of_last);
  return text;
}

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

std::string level(std::optional<double> value, double full, Charset charset) {
  if (!value || std::isnan(*value)) return "?";
  if (charset == Charset::utf8) return std::string(kBlocks[step(*value, full, kBlocks.size())]);
  return std::string(kDigits[step(*value, full, kDigits.size())]);
}

std::string sparkline(std::span<const std::optional<double>> values, int width, double full, Charset charset) {
  const auto cells = static_cast<std::size_t>(std::max(width, 0));
  const auto shown = values.last(std::min(cells, values.size()));
  double top = full;
  if (!(full > 0)) {
    top = 0;
    for (const auto& value : shown) top = std::max(top, value.value_or(0));
  }
  std::string text(cells - shown.size(), ' ');
  for (const auto& value : shown) text += value ? level(value, top, charset) : " ";
  return text;
}

}  // namespace neuron::render
