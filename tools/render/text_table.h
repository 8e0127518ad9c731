#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tools/render/style.h"

namespace neuron::render {

// An ASCII grid in the official tools' style (docs/reference/official-tools.md#neuron-ls-table): two header lines,
// centred with odd slack to the right; left-aligned cells; one space of padding; each column as wide as its longest
// text. Rows come in groups, one per device: when any group has more than one row a rule follows every group, else only
// the last. No trailing spaces, no colour unless a column is given one.
//
// A class because every row must have one cell per column. Not synchronised; no I/O.
class TextTable {
 public:
  struct Header {
    std::string upper;
    std::string lower;  // "" for a one-word header
  };
  using Row = std::vector<std::string>;  // UTF-8 without line breaks

  explicit TextTable(std::vector<Header> headers);

  // Rows are cut or filled with blanks to the number of columns. A group without rows is ignored.
  void add_group(std::vector<Row> rows);

  // Cells of this column are painted by what they say. A column beyond the last is ignored.
  using RoleOf = Role (*)(std::string_view text);
  void paint_column(std::size_t column, RoleOf role_of);

  // The whole grid, each line ending in '\n'. With colour, painted cells carry escape sequences; the grid stays.
  [[nodiscard]] std::string to_string(ColourDepth colour = ColourDepth::none) const;

 private:
  [[nodiscard]] std::vector<std::size_t> column_widths() const;
  [[nodiscard]] std::string row_text(const Row& row, const std::vector<std::size_t>& widths, ColourDepth colour) const;

  std::vector<Header> headers_;
  std::vector<RoleOf> roles_;  // parallel to headers_; null = plain
  std::vector<std::vector<Row>> groups_;
};

}  // namespace neuron::render
