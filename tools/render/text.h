#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "tools/render/style.h"

// UTF-8 text in terminal cells, in ASCII grids and in SVG documents. Pure, no I/O, any thread.
namespace neuron::render {

// Width in terminal cells, one per code point (ids, paths and commands hold nothing wider in practice). Continuation
// bytes count nothing.
[[nodiscard]] std::size_t display_width(std::string_view text);

// `text` when it fits in `max_width` cells, else its first max_width - 3 code points and "...". `max_width` is at
// least 3.
[[nodiscard]] std::string shorten(std::string_view text, std::size_t max_width);

// Numbers or texts with `between` between them.
template <typename List>
[[nodiscard]] std::string joined(const List& values, std::string_view between) {
  std::string text;
  for (const auto& value : values) {
    if (!text.empty()) text += between;
    if constexpr (std::is_convertible_v<decltype(value), std::string_view>) {
      text += value;
    } else {
      text += std::to_string(value);
    }
  }
  return text;
}

// An ASCII grid in the official tools' style (docs/reference/official-tools.md#neuron-ls-table): two header lines,
// centred with odd slack to the right; left-aligned cells; one space of padding; each column as wide as its longest
// text. Rows come in groups, one per device: when any group has more than one row a rule follows every group, else only
// the last. No trailing spaces, no colour unless a column is given one.
//
// A class because every row must have one cell per column. Not synchronised.
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

  // Cells of this column are painted by their text. A column beyond the last is ignored.
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

// `text` as the content of an element or of an attribute in quotes: the five characters of markup as references, and
// U+FFFD for all that XML 1.0 does not allow (control characters, invalid UTF-8, U+FFFE and U+FFFF). At most
// `max_characters` code points, then "…". Foreign text is safe.
[[nodiscard]] std::string xml_text(std::string_view text, std::size_t max_characters = 400);

// Number of characters of a font of `size` pixels that fit in `width` pixels, at least 1. Calculated with a wide sans
// serif, as the reader's fonts are unknown.
[[nodiscard]] std::size_t characters_in(int width, int size);

// `text`, not escaped, cut with "…" where it is longer than that.
[[nodiscard]] std::string fit(std::string_view text, int width, int size);

}  // namespace neuron::render
