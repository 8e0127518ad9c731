#pragma once

#include <string>
#include <vector>

namespace neuron::render {

// An ASCII grid in the official tools' style (neuron-tools.md §4): two header lines, centred with odd slack to the
// right; left-aligned cells; one space of padding; each column as wide as its longest text. Rows come in groups, one
// per device: when any group has more than one row a rule follows every group, else only the last. No trailing spaces,
// no colour.
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

  // The whole grid, each line ending in '\n'.
  [[nodiscard]] std::string to_string() const;

 private:
  [[nodiscard]] std::vector<std::size_t> column_widths() const;

  std::vector<Header> headers_;
  std::vector<std::vector<Row>> groups_;
};

}  // namespace neuron::render
