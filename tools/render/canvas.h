#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/render/style.h"

// A picture of cells, drawn by pure functions; the caller writes it to a terminal, a pipe or a golden file.
namespace neuron::render {

struct Cell {
  char32_t character = U' ';  // always one cell wide
  Role role = Role::plain;
  friend bool operator==(const Cell&, const Cell&) = default;
};

// Rows times columns of cells, blank at first. Cells outside are clipped.
// Foreign text is safe: control characters, invalid UTF-8 and characters that are not exactly one cell wide (Chinese,
// emoji, combining marks) become '?', and with Charset::ascii everything that is not ASCII does. Not synchronised.
class Canvas {
 public:
  Canvas(int rows, int columns, Charset charset = Charset::utf8);

  [[nodiscard]] int rows() const { return rows_; }
  [[nodiscard]] int columns() const { return columns_; }
  [[nodiscard]] Charset charset() const { return charset_; }
  [[nodiscard]] const Cell& at(int row, int column) const { return cells_[index(row, column)]; }  // inside only

  // Text from (row, column) to the right, at most `max_width` cells; returns the column after it.
  int put(int row, int column, std::string_view text, Role role = Role::plain, int max_width = 1 << 20);
  // Puts text that ends before column `end`.
  int put_right(int row, int end, std::string_view text, Role role = Role::plain);
  // Centred between columns `begin` and `end`, odd slack to the right.
  void put_centred(int row, int begin, int end, std::string_view text, Role role = Role::plain);
  // Gives cells of a row another role and leaves the characters: a cursor, a dimmed row.
  void paint(int row, int begin, int end, Role role);

  // All rows, each ended by a line feed, without trailing blanks, with the escape sequences of `depth`; the last rows
  // that are blank are left out.
  [[nodiscard]] std::string to_text(ColourDepth depth = ColourDepth::none) const;

 private:
  [[nodiscard]] std::size_t index(int row, int column) const;

  int rows_;
  int columns_;
  Charset charset_;
  std::vector<Cell> cells_;
};

// The characters of UTF-8 text as a canvas would hold them; one per cell.
[[nodiscard]] std::u32string cells_of(std::string_view text, Charset charset);

// One character as UTF-8.
[[nodiscard]] std::string utf8_of(char32_t character);

// A part of a bar: `fraction` of its whole length, clamped to 0..1 together with the parts before it.
struct BarPart {
  double fraction = 0;
  Role role = Role::good;
};

// Draws a horizontal bar of `width` cells. With UTF-8 its end is exact to an eighth of a cell when there is one part; a
// value above zero shows at least the thinnest mark. With ASCII each filled cell is '|'. The rest is drawn faintly, to
// distinguish an empty bar from an absent one. No parts: an empty bar.
void draw_bar(Canvas& canvas, int row, int column, int width, const std::vector<BarPart>& parts);

// One character for `value` between 0 and `full`: eight block heights in UTF-8, the digits 0 to 9 in ASCII. Zero is the
// lowest of them and not blank; nullopt and NaN give '?' (sparkline() shows nullopt as a blank instead).
[[nodiscard]] std::string level(std::optional<double> value, double full, Charset charset);

// The newest `width` values, oldest first, right-aligned: exactly `width` cells. Unknown values and missing history are
// blank. `full` is the height of the top; 0 or less takes the largest value shown.
[[nodiscard]] std::string sparkline(std::span<const std::optional<double>> values, int width, double full,
                                    Charset charset);

}  // namespace neuron::render
