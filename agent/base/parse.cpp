#include "agent/base/parse.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <numeric>
#include <utility>

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

bool is_dns_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool is_dns_part(std::string_view text) {
  return !text.empty() && is_dns_letter(text.front()) && is_dns_letter(text.back()) &&
         std::all_of(text.begin(), text.end(), [](char c) { return is_dns_letter(c) || c == '-'; });
}

std::string hex_of(unsigned char byte) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  return {kDigits[byte >> 4U], kDigits[byte & 0xfU]};
}

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::uint32_t byte_at(std::string_view bytes, std::size_t i) {
  return i < bytes.size() ? static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i])) : 0U;
}

using State = std::array<std::uint32_t, 8>;
constexpr std::size_t kBlock = 64;  // bytes

// FIPS 180-4, 4.2.2: of the cube roots of the first 64 primes the first 32 bits behind the point.
constexpr std::array<std::uint32_t, 64> kRound = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

std::array<std::uint32_t, 64> schedule_of(std::string_view block) {
  std::array<std::uint32_t, 64> w{};
  for (std::size_t i = 0; i < kBlock; ++i) w[i / 4] = w[i / 4] << 8U | static_cast<std::uint8_t>(block[i]);
  for (std::size_t i = 16; i < w.size(); ++i) {
    const std::uint32_t a = w[i - 15], b = w[i - 2];
    const std::uint32_t s0 = std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3U;
    const std::uint32_t s1 = std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10U;
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  return w;
}

void add_block(State& state, std::string_view block) {
  const std::array<std::uint32_t, 64> w = schedule_of(block);
  auto [a, b, c, d, e, f, g, h] = state;
  for (std::size_t i = 0; i < w.size(); ++i) {
    const std::uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const std::uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + kRound[i] + w[i];
    const std::uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const std::uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  const State added = {a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < state.size(); ++i) state[i] += added[i];
}

// The end of the message: the rest, a one bit, zeros, and the length in bits as 64 bits.
std::string last_blocks(std::string_view rest, std::size_t total_bytes) {
  std::string last(rest);
  last.push_back(static_cast<char>(0x80));
  while (last.size() % kBlock != kBlock - 8) last.push_back('\0');
  const std::uint64_t bits = std::uint64_t{total_bytes} * 8;
  for (int shift = 56; shift >= 0; shift -= 8) last.push_back(static_cast<char>(bits >> static_cast<unsigned>(shift)));
  return last;
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

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
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

std::string plural(std::string_view noun) {
  return std::string(noun) + (noun.ends_with("ch") || noun.ends_with("s") ? "es" : "s");
}

bool is_dns_label(std::string_view text) {
  constexpr std::size_t kMaxLabel = 63;
  return text.size() <= kMaxLabel && is_dns_part(text);
}

bool is_dns_subdomain(std::string_view text) {
  constexpr std::size_t kMaxBytes = 253;
  if (text.size() > kMaxBytes) return false;
  for (;;) {
    const auto dot = text.find('.');
    if (!is_dns_part(text.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}

bool is_qualified_part(std::string_view text, std::size_t max_bytes) {
  const auto is_plain = [](char c) { return is_dns_letter(c) || (c >= 'A' && c <= 'Z'); };
  return !text.empty() && text.size() <= max_bytes && is_plain(text.front()) && is_plain(text.back()) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return is_plain(c) || c == '-' || c == '_' || c == '.'; });
}

std::string printable(std::string_view text, std::size_t max_bytes) {
  std::string out;
  while (!text.empty()) {
    if (out.size() >= max_bytes) return out + "...";
    const auto byte = static_cast<unsigned char>(text[0]);
    const std::size_t length = utf8_length(text);
    if (byte < 0x20 || byte == 0x7f || length == 0) {
      out += "\\x";
      out += hex_of(byte);
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

std::string decode_base64(std::string_view text) {
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char letter : text) {
    const std::size_t value = kAlphabet.find(letter);
    if (value == std::string_view::npos) break;
    bits = ((bits << 6U) | static_cast<std::uint32_t>(value)) & 0xffffffU;
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes.push_back(static_cast<char>((bits >> static_cast<unsigned>(count)) & 0xffU));
  }
  return bytes;
}

std::string encode_base64(std::string_view bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::uint32_t group = byte_at(bytes, i) << 16U | byte_at(bytes, i + 1) << 8U | byte_at(bytes, i + 2);
    const std::size_t used = std::min<std::size_t>(3, bytes.size() - i) + 1;  // characters that carry data
    for (std::size_t k = 0; k < 4; ++k) {
      text += k < used ? kAlphabet[group >> (18U - 6U * k) & 63U] : '=';
    }
  }
  return text;
}

std::array<std::uint8_t, 32> sha256(std::string_view data) {
  State state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::string_view rest = data;
  for (; rest.size() >= kBlock; rest.remove_prefix(kBlock)) add_block(state, rest.substr(0, kBlock));
  const std::string last = last_blocks(rest, data.size());
  for (std::string_view left = last; !left.empty(); left.remove_prefix(kBlock))
    add_block(state, left.substr(0, kBlock));
  std::array<std::uint8_t, 32> digest{};
  for (std::size_t i = 0; i < digest.size(); ++i) {
    digest[i] = static_cast<std::uint8_t>(state[i / 4] >> (24U - i % 4 * 8U));
  }
  return digest;
}

std::string sha256_hex(std::string_view data) {
  std::string text;
  for (const std::uint8_t byte : sha256(data)) text += hex_of(byte);
  return text;
}

}  // namespace neuron
