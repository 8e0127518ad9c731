#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tools/render/style.h"

// A picture of cells, drawn by pure functions and then shown by whoever has a terminal, a pipe or a golden file.
namespace neuron::render {

struct Cell {
  char32_t character = U' ';  // always one cell wide
  Role role = Role::plain;
  friend bool operator==(const Cell&, const Cell&) = default;
};

// Rows times columns of cells, blank at first. Whatever is put outside is clipped, so that nobody needs to check.
// Foreign text is safe: control characters, invalid UTF-8 and characters that are not exactly one cell wide (Chinese,
// emoji, combining marks) become '?', and with Charset::ascii everything that is not ASCII does. Not synchronised.
class Canvas {
 public:
  Canvas(int rows, int columns, Charset charset = Charset::utf8);

  [[nodiscard]] int rows() const { return rows_; }
  [[nodiscard]] int columns() const { return columns_; }
  [[nodiscard]] Charset charset() const { return charset_; }
  [[nodiscard]] const Cell& at(int row, int column) const;  // inside only

  // Text from (row, column) to the right, at most `max_width` cells; returns the column after it.
  int put(int row, int column, std::string_view text, Role role = Role::plain, int max_width = 1 << 20);
  // The same, ending before column `end`.
  int put_right(int row, int end, std::string_view text, Role role = Role::plain);
  // Centred between columns `begin` and `end`, odd slack to the right.
  void put_centred(int row, int begin, int end, std::string_view text, Role role = Role::plain);
  // Gives cells of a row another role and leaves the characters: a cursor, a dimmed row.
  void paint(int row, int begin, int end, Role role);

  // All rows, each ended by a line feed, without trailing blanks; the last rows that are blank are left out.
  [[nodiscard]] std::string to_text() const;
  // The same with the escape sequences of `depth`.
  [[nodiscard]] std::string to_text(ColourDepth depth) const;

 private:
  int rows_;
  int columns_;
  Charset charset_;
  std::vector<Cell> cells_;
};

// The characters of UTF-8 text as a canvas would hold them; one per cell.
[[nodiscard]] std::u32string cells_of(std::string_view text, Charset charset);

// One character as UTF-8.
[[nodiscard]] std::string utf8_of(char32_t character);

}  // namespace neuron::render
