#include "tools/neuron-top/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>

namespace neuron::top {
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

}  // namespace neuron::top
