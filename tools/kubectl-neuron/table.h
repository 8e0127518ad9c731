#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Lines of columns as kubectl prints them, and the same as CSV. Pure.
namespace neuron::fleet {

// Passive data; rows have as many cells as there are headers. Foreign text may be in any cell.
struct Table {
  std::vector<std::string> headers;
  std::vector<std::vector<std::string>> rows;
};

// Left-aligned, three blanks between columns, no trailing ones, each line ending in '\n'. Cells are made printable; an
// empty one is "-".
[[nodiscard]] std::string table_text(const Table& table);
// RFC 4180, but with '\n' at line ends; an empty cell stays empty. A cell that a spreadsheet would take for a formula
// gets a "'" in front.
[[nodiscard]] std::string table_csv(const Table& table);

// The time between two texts of RFC 3339; nullopt where one cannot be parsed.
[[nodiscard]] std::optional<std::chrono::seconds> time_between(const std::string& earlier, const std::string& later);
// An age in kubectl's form: "45s", "12m", "5h", "12d"; "" where it is not known or negative.
[[nodiscard]] std::string age_text(const std::string& since, const std::string& now);

}  // namespace neuron::fleet
