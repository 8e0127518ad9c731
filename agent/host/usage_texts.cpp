#include "agent/host/usage_texts.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "agent/base/parse.h"

namespace neuron::host {
namespace {

constexpr double kMaxPowerPercent = 1000;

// Takes the text up to `separator` off the front of `text`, which ends up empty after the last part.
std::string_view take(std::string_view& text, char separator) {
  const auto end = text.find(separator);
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return part;
}

// The same for words between blanks; "" when there is none left.
std::string_view take_word(std::string_view& text) {
  const auto begin = text.find_first_not_of(" \t");
  text.remove_prefix(begin == std::string_view::npos ? text.size() : begin);
  return take(text, ' ');
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::optional<std::uint64_t> take_number(std::string_view& text) {
  const std::string_view word = trim(take_word(text));
  return is_number(word) ? parse_u64(word) : std::nullopt;
}

std::optional<double> parse_percent(std::string_view text) {
  text = trim(text);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (!(value >= 0 && value <= kMaxPowerPercent)) return std::nullopt;  // also refuses NaN
  return value;
}

// a + b, or nothing where that does not fit.
std::optional<std::uint64_t> sum(std::uint64_t a, std::uint64_t b) {
  if (b > std::numeric_limits<std::uint64_t>::max() - a) return std::nullopt;
  return a + b;
}

std::optional<std::uint64_t> product(std::uint64_t a, std::uint64_t b) {
  if (b != 0 && a > std::numeric_limits<std::uint64_t>::max() / b) return std::nullopt;
  return a * b;
}

// The numbers of the line "cpu": user nice system idle iowait irq softirq steal guest guest_nice. Guest time is part of
// user already.
std::optional<model::CpuTicks> parse_cpu_line(std::string_view line) {
  std::array<std::uint64_t, 8> fields{};
  constexpr std::size_t kLeast = 4;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::string_view word = trim(take_word(line));
    if (word.empty() && i >= kLeast) break;
    const auto number = is_number(word) ? parse_u64(word) : std::nullopt;
    if (!number) return std::nullopt;
    fields[i] = *number;
  }
  const auto user = sum(fields[0], fields[1]);
  const auto interrupts = sum(fields[5], fields[6]);
  const auto system = interrupts ? sum(fields[2], *interrupts) : std::nullopt;
  const auto idle = sum(fields[3], fields[4]);
  if (!user || !system || !idle) return std::nullopt;
  return model::CpuTicks{*user, *system, *idle, fields[7]};
}

// "MemTotal:       16252928 kB" → bytes, when the line has that name.
std::optional<std::uint64_t> kib_line(std::string_view line, std::string_view name) {
  if (!line.starts_with(name)) return std::nullopt;
  line.remove_prefix(name.size());
  if (!line.starts_with(':')) return std::nullopt;
  line.remove_prefix(1);
  const auto kib = take_number(line);
  if (!kib || trim(line) != "kB") return std::nullopt;
  return product(*kib, 1024);
}

std::optional<std::string> process_text(std::string_view text) {
  text = trim(text.substr(0, 2 * kMaxProcessText));
  std::string shown = printable(text, kMaxProcessText);
  // A text cut by printable may be longer by one escape and its "...".
  if (shown.size() > kMaxProcessText) shown = printable(text, kMaxProcessText - 6);
  if (shown.empty()) return std::nullopt;
  return shown;
}

}  // namespace

std::optional<model::PowerUsage> parse_power(std::string_view text) {
  text = trim(text);
  if (take(text, ',') != "POWER_STATUS_VALID") return std::nullopt;
  const std::string_view minute = take(text, ',');
  // 0 before the first minute has been rolled up, whatever the status says: not measured, which is no power of 0.
  if (!is_number(minute) || minute.find_first_not_of('0') == std::string_view::npos) return std::nullopt;
  const auto min = parse_percent(take(text, ','));
  const auto max = parse_percent(take(text, ','));
  const auto average = parse_percent(take(text, ','));
  if (!min || !max || !average || !text.empty()) return std::nullopt;
  return model::PowerUsage{*min, *max, *average};
}

std::optional<CpuTimes> parse_cpu_times(std::string_view text) {
  std::optional<model::CpuTicks> ticks;
  int count = 0;
  while (!text.empty()) {
    std::string_view line = take(text, '\n');
    if (!line.starts_with("cpu")) {
      if (ticks) break;  // the lines of the CPUs stand together at the top
      continue;
    }
    const std::string_view name = take_word(line);
    if (name == "cpu") {
      if (ticks) return std::nullopt;
      ticks = parse_cpu_line(line);
      if (!ticks) return std::nullopt;
    } else if (is_number(name.substr(3)) && count < kMaxCpus) {
      ++count;
    }
  }
  if (!ticks) return std::nullopt;
  return CpuTimes{*ticks, count};
}

std::optional<model::HostMemoryUsage> parse_memory(std::string_view text) {
  std::optional<std::uint64_t> total;
  std::optional<std::uint64_t> available;
  model::HostMemoryUsage memory;
  while (!text.empty()) {
    const std::string_view line = take(text, '\n');
    if (const auto bytes = kib_line(line, "MemTotal")) total = bytes;
    if (const auto bytes = kib_line(line, "MemAvailable")) available = bytes;
    if (const auto bytes = kib_line(line, "SwapTotal")) memory.swap_total_bytes = bytes;
    if (const auto bytes = kib_line(line, "SwapFree")) memory.swap_free_bytes = bytes;
  }
  if (!total || !available || *available > *total) return std::nullopt;
  memory.total_bytes = *total;
  memory.available_bytes = *available;
  return memory;
}

std::optional<ProcessTimes> parse_process_times(std::string_view text) {
  constexpr int kUser = 14;
  constexpr int kSystem = 15;
  constexpr int kStart = 22;
  const auto name_end = text.rfind(')');
  if (name_end == std::string_view::npos) return std::nullopt;
  text.remove_prefix(name_end + 1);
  ProcessTimes times;
  for (int field = 3; field <= kStart; ++field) {
    const std::string_view word = trim(take_word(text));
    if (field != kUser && field != kSystem && field != kStart) continue;
    const auto number = is_number(word) ? parse_u64(word) : std::nullopt;
    if (!number) return std::nullopt;
    (field == kUser ? times.user_ticks : field == kSystem ? times.system_ticks : times.start_ticks) = *number;
  }
  return times;
}

std::optional<std::uint64_t> parse_resident(std::string_view text, std::uint64_t page_bytes) {
  if (!take_number(text)) return std::nullopt;
  const auto pages = take_number(text);
  return pages ? product(*pages, page_bytes) : std::nullopt;
}

std::string parse_command(std::string_view text) {
  std::string words(text.substr(0, 2 * kMaxProcessText));
  std::replace(words.begin(), words.end(), '\0', ' ');
  return process_text(words).value_or("");
}

std::optional<std::string> parse_tag(std::string_view environment) {
  constexpr std::string_view kName = "NEURON_PROCESS_TAG=";
  while (!environment.empty()) {
    const std::string_view variable = take(environment, '\0');
    if (variable.starts_with(kName)) return process_text(variable.substr(kName.size()));
  }
  return std::nullopt;
}

}  // namespace neuron::host
