#include "agent/base/parse.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <utility>
#include <vector>

namespace neuron {
namespace {

constexpr std::string_view kSpace = " \t\n\r\f\v";

template <typename T>
std::optional<T> parse_number(std::string_view text, int base) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, base);
  if (text.empty() || error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

// Well-formed characters that have to be escaped: terminals obey the C1 controls, and the others are invisible but
// reorder, join or separate the text around them.
bool is_hidden(char32_t character) {
  struct Range {
    char32_t first;
    char32_t last;
  };
  constexpr std::array<Range, 10> kHidden = {{{0x80, 0x9f},          // C1 controls
                                              {0xad, 0xad},          // soft hyphen
                                              {0x61c, 0x61c},        // Arabic letter mark
                                              {0x180e, 0x180e},      // Mongolian vowel separator
                                              {0x200b, 0x200f},      // zero widths, marks of direction
                                              {0x2028, 0x202e},      // line and paragraph separators, embeddings
                                              {0x2060, 0x206f},      // word joiner, invisible operators, isolates
                                              {0xfeff, 0xfeff},      // byte order mark
                                              {0xfff9, 0xfffb},      // interlinear annotation
                                              {0xe0000, 0xe007f}}};  // tags
  return std::any_of(kHidden.begin(), kHidden.end(),
                     [=](const Range& range) { return character >= range.first && character <= range.last; });
}

// Length of the well-formed UTF-8 sequence at the front of `text` (no overlong form, no surrogate), 0 when there is
// none or when it is_hidden().
std::size_t utf8_length(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const std::size_t length = lead < 0x80                   ? 1
                             : lead >= 0xc2 && lead < 0xe0 ? 2
                             : lead >= 0xe0 && lead < 0xf0 ? 3
                             : lead >= 0xf0 && lead < 0xf5 ? 4
                                                           : 0;
  if (length > text.size()) return 0;
  const unsigned second = length > 1 ? static_cast<unsigned char>(text[1]) : 0x80U;
  const bool overlong = (lead == 0xe0 && second < 0xa0) || (lead == 0xf0 && second < 0x90);
  const bool no_character = (lead == 0xed && second >= 0xa0) || (lead == 0xf4 && second >= 0x90);
  if (overlong || no_character) return 0;
  if (length < 2) return length;
  char32_t character = lead & (0x7fU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xc0U) != 0x80U) return 0;
    character = (character << 6U) | (byte & 0x3fU);
  }
  return is_hidden(character) ? 0 : length;
}

}  // namespace

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  if (text.empty()) return parts;
  for (;;) {
    const auto at = text.find(separator);
    parts.push_back(trim(text.substr(0, at)));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::optional<std::uint64_t> parse_u64(std::string_view text) {
  return parse_number<std::uint64_t>(trim(text), 10);
}

std::optional<std::int64_t> parse_i64(std::string_view text) {
  return parse_number<std::int64_t>(trim(text), 10);
}

std::optional<int> parse_int(std::string_view text, int min, int max) {
  const auto value = parse_number<int>(trim(text), 10);
  if (!value || *value < min || *value > max) return std::nullopt;
  return value;
}

std::optional<std::uint32_t> parse_hex(std::string_view text) {
  text = trim(text);
  if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
  return parse_number<std::uint32_t>(text, 16);
}

bool is_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::string_view take_until(std::string_view& rest, char separator) {
  const auto end = rest.find(separator);
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return part;
}

std::string lower_ascii(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

Result<std::vector<int>> parse_int_list(std::string_view text, int max_value) {
  const auto corrupt = [&] {
    return fail(ErrorCode::data_corrupt, "not a list of numbers from 0 to " + std::to_string(max_value) +
                                             " such as 0-3,8: \"" + printable(text) + "\"");
  };
  std::vector<bool> present;
  for (const std::string_view part : split(trim(text), ',')) {
    const auto dash = part.find('-');
    const auto first = parse_int(part.substr(0, dash), 0, max_value);
    const auto last = dash == std::string_view::npos ? first : parse_int(part.substr(dash + 1), 0, max_value);
    if (!first || !last || *last < *first) return corrupt();
    if (present.size() <= static_cast<std::size_t>(*last)) present.resize(static_cast<std::size_t>(*last) + 1);
    std::fill(present.begin() + *first, present.begin() + *last + 1, true);
  }
  std::vector<int> values;
  for (std::size_t i = 0; i < present.size(); ++i) {
    if (present[i]) values.push_back(static_cast<int>(i));
  }
  return values;
}

std::string format_int_list(const std::vector<int>& values) {
  std::string text;
  for (std::size_t i = 0; i < values.size();) {
    std::size_t last = i;
    while (last + 1 < values.size() && values[last + 1] == values[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += std::to_string(values[i]);
    if (last > i) text += '-' + std::to_string(values[last]);
    i = last + 1;
  }
  return text;
}

Result<std::chrono::milliseconds> parse_duration(std::string_view text) {
  const auto digits = text.find_first_not_of("0123456789");
  const auto number = digits == std::string_view::npos ? std::nullopt : parse_u64(text.substr(0, digits));
  const std::string_view unit = digits == std::string_view::npos ? std::string_view{} : text.substr(digits);
  const std::uint64_t scale = unit == "ms" ? 1 : unit == "s" ? 1000 : unit == "m" ? 60'000 : 0;
  constexpr std::uint64_t kDay = 86'400'000;
  if (!number || scale == 0 || *number == 0 || *number > kDay / scale) {
    return fail(ErrorCode::invalid_argument,
                "not a duration: \"" + printable(text) + "\"; write a positive number with ms, s or m, such as 200ms");
  }
  return std::chrono::milliseconds(*number * scale);
}

std::string printable(std::string_view text, std::size_t max_bytes) {
  constexpr std::array kHex = {'0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'};
  std::string out;
  while (!text.empty()) {
    if (out.size() >= max_bytes) return out + "...";
    const auto byte = static_cast<unsigned char>(text[0]);
    const std::size_t length = utf8_length(text);
    if (byte < 0x20 || byte == 0x7f || length == 0) {
      out += "\\x";
      out += kHex[byte >> 4U];
      out += kHex[byte & 0xfU];
      text.remove_prefix(1);
    } else {
      out += text.substr(0, length);
      text.remove_prefix(length);
    }
  }
  return out;
}

std::string printable_line(std::string line, std::size_t max_bytes) {
  const bool plain = std::all_of(line.begin(), line.end(), [](char byte) { return byte >= 0x20 && byte < 0x7f; });
  return plain && line.size() <= max_bytes ? line : printable(line, max_bytes);
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replace = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replace, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

}  // namespace neuron
