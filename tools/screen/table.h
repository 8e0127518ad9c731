#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/render/canvas.h"

// Numbers and tables as neuron-top shows them, in any locale alike. An unknown number is always "n/a". Pure functions.
namespace neuron::screen {

using render::Role;

inline constexpr std::string_view kUnknown = "n/a";

// Bytes in the official tool's form: one decimal, powers of 1024: "0.0B", "16.0KB", "1.7GB".
[[nodiscard]] std::string memory_text(std::optional<std::uint64_t> bytes);

// Bytes per second in powers of 1000, as networks are measured: "0B/s", "820KB/s", "12.5GB/s".
[[nodiscard]] std::string rate_text(std::optional<double> bytes_per_second);

// A plain count, shortened above 99999: "17", "125k", "3.4M".
[[nodiscard]] std::string count_text(std::optional<std::uint64_t> count);

// Events per second: "0", "0.2", "17", "125k".
[[nodiscard]] std::string frequency_text(std::optional<double> per_second);

// "56.81%", not padded.
[[nodiscard]] std::string percent_text(std::optional<double> percent, int decimals = 2);

// FLOP/s as teraflops: "0.9TF", "123TF"; at most six characters below 1000.
[[nodiscard]] std::string teraflops_text(std::optional<double> flops_per_second);

// A span of time for "stale since": "7s", "3m", "2h".
[[nodiscard]] std::string age_text(std::int64_t seconds);

// `text` in lines of at most `columns` bytes, parted at blanks; the last of `most` lines is cut and marked by "..."
// where the text is longer. Lines after the first are indented by two blanks. Both numbers are at least 1.
[[nodiscard]] std::vector<std::string> wrapped(std::string_view text, int columns, int most);

enum class Align { left, right };

struct TableColumn {
  std::string title;
  Align align = Align::left;
  int priority = 0;      // columns with the highest go first when there is too little room; 0 always stays
  bool stretch = false;  // takes the remaining room; its texts are cut
};

struct TableCell {
  std::string text;
  Role role = Role::plain;
};

struct TableRow {
  std::string key;  // unique in its table, the same in every sample
  std::vector<TableCell> cells;
  std::string detail = {};  // longer text, shown below the table while the row is selected
};

// Rows of cells below a line of titles. Passive.
struct Table {
  std::vector<TableColumn> columns;
  std::vector<TableRow> rows;
  std::string note;  // shown where there are no rows, or below them; "" = nothing
};

inline constexpr int kNoCursor = -1;

// Draws titles and as many rows as fit into `height` lines from `row` on, those around the cursor when not all do; the
// last line then gives their number. Returns the number of lines used, at most `height`.
int draw_table(render::Canvas& canvas, int row, int height, const Table& table, int cursor);

// Lines that the whole table needs.
[[nodiscard]] int table_height(const Table& table);

}  // namespace neuron::screen
