#include "tools/kubectl-neuron/table.h"

#include <algorithm>
#include <array>
#include <ctime>

#include "agent/base/parse.h"
#include "tools/render/text.h"

namespace neuron::fleet {
namespace {

constexpr std::size_t kLongestCell = 253;

std::string shown(const std::string& cell) {
  return cell.empty() ? "-" : printable(cell, kLongestCell);
}

std::string line_of(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    line += cells[i];
    const bool is_last = i + 1 == cells.size();
    if (!is_last) line.append(widths[i] - render::display_width(cells[i]) + 3, ' ');
  }
  return line + '\n';
}

std::string csv_cell(std::string cell) {
  if (!cell.empty() && std::string_view("=+-@\t\r").find(cell.front()) != std::string_view::npos) cell.insert(0, "'");
  if (cell.find_first_of("\",\n\r") == std::string::npos) return cell;
  std::string quoted = "\"";
  for (const char letter : cell) quoted += letter == '"' ? std::string("\"\"") : std::string(1, letter);
  return quoted + '"';
}

std::string csv_line(const std::vector<std::string>& cells) {
  std::string line;
  for (const std::string& cell : cells) {
    if (&cell != &cells.front()) line += ',';
    line += csv_cell(printable(cell, kLongestCell));
  }
  return line + '\n';
}

// Digits at `at`; nullopt for other text.
std::optional<int> digits_at(std::string_view text, std::size_t at, std::size_t count) {
  const std::string_view part = text.size() >= at + count ? text.substr(at, count) : std::string_view();
  return is_digits(part) ? parse_int(part, 0, 9999) : std::nullopt;
}

// "2026-11-21T06:40:00Z", also with a fraction of a second; the API server writes UTC.
std::optional<std::time_t> parse_time(std::string_view text) {
  constexpr std::array<std::pair<std::size_t, std::size_t>, 6> kParts = {
      {{0, 4}, {5, 2}, {8, 2}, {11, 2}, {14, 2}, {17, 2}}};
  if (text.size() < 20 || text[10] != 'T' || !text.ends_with('Z')) return std::nullopt;
  std::array<int, 6> values{};
  for (std::size_t i = 0; i < kParts.size(); ++i) {
    const auto value = digits_at(text, kParts[i].first, kParts[i].second);
    if (!value) return std::nullopt;
    values[i] = *value;
  }
  std::tm parts{};
  parts.tm_year = values[0] - 1900;
  parts.tm_mon = values[1] - 1;
  parts.tm_mday = values[2];
  parts.tm_hour = values[3];
  parts.tm_min = values[4];
  parts.tm_sec = values[5];
  return ::timegm(&parts);
}

}  // namespace

std::string table_text(const Table& table) {
  std::vector<std::vector<std::string>> lines = {table.headers};
  for (const auto& row : table.rows) {
    auto& cells = lines.emplace_back();
    for (const std::string& cell : row) cells.push_back(shown(cell));
    cells.resize(table.headers.size());
  }
  std::vector<std::size_t> widths(table.headers.size());
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], render::display_width(line[i]));
  }
  std::string text;
  for (const auto& line : lines) text += line_of(line, widths);
  return text;
}

std::string table_csv(const Table& table) {
  std::string text = csv_line(table.headers);
  for (const auto& row : table.rows) text += csv_line(row);
  return text;
}

std::optional<std::chrono::seconds> time_between(const std::string& earlier, const std::string& later) {
  const auto begin = parse_time(earlier);
  const auto end = parse_time(later);
  if (!begin || !end) return std::nullopt;
  return std::chrono::seconds(*end - *begin);
}

std::string age_text(const std::string& since, const std::string& now) {
  const auto time = time_between(since, now);
  if (!time || time->count() < 0) return "";
  const auto seconds = time->count();
  constexpr std::int64_t kMinute = 60, kHour = 3600, kDay = 86'400;
  if (seconds < 2 * kMinute) return std::to_string(seconds) + "s";
  if (seconds < 2 * kHour) return std::to_string(seconds / kMinute) + "m";
  if (seconds < 2 * kDay) return std::to_string(seconds / kHour) + "h";
  return std::to_string(seconds / kDay) + "d";
}

}  // namespace neuron::fleet
