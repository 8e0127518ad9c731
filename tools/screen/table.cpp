#include "tools/screen/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>

namespace neuron::screen {
namespace {

// `value` in the largest unit that leaves at least one before the point; `decimals` only from the second unit on.
template <std::size_t N>
std::string scaled(double value, double step, const std::array<const char*, N>& units, int small_decimals) {
  std::size_t unit = 0;
  while (unit + 1 < N && value >= step) {
    value /= step;
    ++unit;
  }
  if (unit == 0) return fmt::format("{:.{}f}{}", value, small_decimals, units[unit]);
  return fmt::format("{:.{}f}{}", value, value < 99.95 ? 1 : 0, units[unit]);
}

constexpr std::array<const char*, 5> kCounts = {"", "k", "M", "G", "T"};

constexpr int kGap = 2;

int cells_in(const std::string& text, render::Charset charset) {
  return static_cast<int>(render::cells_of(text, charset).size());
}

struct Fitted {
  std::vector<int> widths;  // per column; -1 = left out
};

int total(const std::vector<int>& widths) {
  int sum = -kGap;
  for (const int width : widths) sum += width < 0 ? 0 : width + kGap;
  return sum;
}

constexpr int kLeastStretch = 24;  // cells; other columns are left out before a long text gets fewer

// Leaves out columns until the rest fits; a stretching column then takes the remaining room.
Fitted fit(const Table& table, int columns, render::Charset charset) {
  std::vector<int> widths;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    int width = cells_in(table.columns[i].title, charset);
    for (const TableRow& row : table.rows) {
      if (i < row.cells.size()) width = std::max(width, cells_in(row.cells[i].text, charset));
    }
    widths.push_back(table.columns[i].stretch ? std::min(width, kLeastStretch) : width);
  }
  while (total(widths) > columns) {
    std::size_t victim = 0;
    for (std::size_t i = 1; i < widths.size(); ++i) {
      const bool later = widths[victim] < 0 || table.columns[i].priority >= table.columns[victim].priority;
      if (widths[i] >= 0 && later) victim = i;
    }
    if (widths[victim] < 0 || table.columns[victim].priority == 0) break;
    widths[victim] = -1;
  }
  for (std::size_t i = 0; i < widths.size(); ++i) {
    if (table.columns[i].stretch && widths[i] >= 0) widths[i] += std::max(columns - total(widths), 0);
  }
  return {widths};
}

int draw_cell(render::Canvas& canvas, int row, int column, int width, const TableCell& cell, Align align) {
  const int length = cells_in(cell.text, canvas.charset());
  const int at = align == Align::right && length < width ? column + width - length : column;
  canvas.put(row, at, cell.text, cell.role, width);
  return column + width + kGap;
}

void draw_row(render::Canvas& canvas, int line, const Table& table, const Fitted& fitted, const TableRow& row) {
  int column = 0;
  for (std::size_t i = 0; i < fitted.widths.size(); ++i) {
    if (fitted.widths[i] < 0) continue;
    const TableCell cell = i < row.cells.size() ? row.cells[i] : TableCell{};
    column = draw_cell(canvas, line, column, fitted.widths[i], cell, table.columns[i].align);
  }
}

void draw_titles(render::Canvas& canvas, int line, const Table& table, const Fitted& fitted) {
  TableRow titles;
  for (const TableColumn& column : table.columns) titles.cells.push_back({column.title, Role::label});
  draw_row(canvas, line, table, fitted, titles);
}

}  // namespace

std::string memory_text(std::optional<std::uint64_t> bytes) {
  if (!bytes) return std::string(kUnknown);
  constexpr std::array<const char*, 5> kUnits = {"B", "KB", "MB", "GB", "TB"};
  auto value = static_cast<double>(*bytes);
  std::size_t unit = 0;
  for (; unit + 1 < kUnits.size() && value >= 1024; ++unit) value /= 1024;
  return fmt::format("{:.1f}{}", value, kUnits[unit]);
}

std::string rate_text(std::optional<double> bytes_per_second) {
  if (!bytes_per_second) return std::string(kUnknown);
  constexpr std::array<const char*, 5> kUnits = {"B/s", "KB/s", "MB/s", "GB/s", "TB/s"};
  return scaled(*bytes_per_second, 1000, kUnits, 0);
}

std::string count_text(std::optional<std::uint64_t> count) {
  if (!count) return std::string(kUnknown);
  if (*count < 100000) return fmt::format("{}", *count);
  return scaled(static_cast<double>(*count), 1000, kCounts, 0);
}

std::string frequency_text(std::optional<double> per_second) {
  if (!per_second) return std::string(kUnknown);
  if (*per_second <= 0) return "0";
  return scaled(*per_second, 1000, kCounts, *per_second < 10 ? 1 : 0);
}

std::string percent_text(std::optional<double> percent, int decimals) {
  if (!percent) return std::string(kUnknown);
  return fmt::format("{:.{}f}%", *percent, decimals);
}

std::string teraflops_text(std::optional<double> flops_per_second) {
  if (!flops_per_second) return std::string(kUnknown);
  const double tera = *flops_per_second / 1e12;
  return fmt::format("{:.{}f}TF", tera, tera < 9.995 ? 2 : tera < 99.95 ? 1 : 0);
}

std::string age_text(std::int64_t seconds) {
  if (seconds < 120) return fmt::format("{}s", seconds);
  return seconds < 7200 ? fmt::format("{}m", seconds / 60) : fmt::format("{}h", seconds / 3600);
}

std::vector<std::string> wrapped(std::string_view text, int columns, int most) {
  const auto width = static_cast<std::size_t>(std::max(columns, 4));
  std::vector<std::string> lines;
  std::string indent;
  while (true) {
    const std::size_t room = width - indent.size();
    if (text.size() <= room) {
      lines.push_back(indent.append(text));
      return lines;
    }
    if (static_cast<int>(lines.size()) + 1 >= most) {
      lines.push_back(indent.append(text.substr(0, room - 3)).append("..."));
      return lines;
    }
    const std::size_t blank = text.substr(0, room + 1).rfind(' ');
    const std::size_t end = blank == std::string_view::npos || blank == 0 ? room : blank;
    lines.push_back(indent + std::string(text.substr(0, end)));
    text.remove_prefix(end);
    while (text.starts_with(' ')) text.remove_prefix(1);
    indent = "  ";
  }
}

int table_height(const Table& table) {
  return 1 + static_cast<int>(table.rows.size()) + (table.note.empty() ? 0 : 1);
}

int draw_table(render::Canvas& canvas, int row, int height, const Table& table, int cursor) {
  if (height <= 0) return 0;
  const Fitted fitted = fit(table, canvas.columns(), canvas.charset());
  int line = row;
  draw_titles(canvas, line++, table, fitted);
  const int count = static_cast<int>(table.rows.size());
  int room = height - 1;
  if (!table.note.empty() && room > 0 && count + 1 <= room) {
    canvas.put(row + 1 + count, 0, table.note, Role::dim);
  } else if (!table.note.empty() && count == 0 && room > 0) {
    canvas.put(line, 0, table.note, Role::dim);
  }
  const bool all = count <= room;
  if (!all) --room;
  if (room <= 0) return std::min(height, line - row);
  const int chosen = std::clamp(cursor, 0, std::max(count - 1, 0));
  const int first = all ? 0 : std::clamp(chosen - room / 2, 0, count - room);
  for (int i = first; i < std::min(first + room, count); ++i, ++line) {
    draw_row(canvas, line, table, fitted, table.rows[static_cast<std::size_t>(i)]);
    if (cursor != kNoCursor && i == chosen) canvas.paint(line, 0, canvas.columns(), Role::cursor);
  }
  if (!all) {
    canvas.put(line++, 0, fmt::format("rows {} to {} of {}", first + 1, std::min(first + room, count), count),
               Role::dim);
  }
  if (all && !table.note.empty() && line - row < height) ++line;
  return line - row;
}

}  // namespace neuron::screen
