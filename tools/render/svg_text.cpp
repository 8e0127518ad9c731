#include "tools/render/svg_text.h"

#include <algorithm>
#include <cstdint>

#include "tools/render/text.h"

namespace neuron::render {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD
constexpr std::string_view kDots = "…";

struct CodePoint {
  std::uint32_t value = 0;
  std::size_t bytes = 1;
  bool valid = false;
};

// The code point at the beginning of `text`, which is not empty.
CodePoint first_of(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  const std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {};
  std::uint32_t value = lead & (0xffU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0U) != 0x80U) return {};
    value = value << 6U | (byte(i) & 0x3fU);
  }
  const bool shortest = value >= (bytes == 2 ? 0x80U : bytes == 3 ? 0x800U : 0x10000U);
  return {value, shortest ? bytes : 1, shortest};
}

bool xml_allows(std::uint32_t value) {
  if (value < 0x20) return value == '\t' || value == '\n' || value == '\r';
  const bool surrogate = value >= 0xd800 && value <= 0xdfff;
  const bool control = value >= 0x7f && value <= 0x9f;  // allowed, discouraged, and never meant
  return value <= 0x10ffff && !surrogate && !control && (value & 0xfffeU) != 0xfffeU;
}

void append_escaped(std::string& out, std::string_view character) {
  switch (character.front()) {
    case '&':
      out += "&amp;";
      break;
    case '<':
      out += "&lt;";
      break;
    case '>':
      out += "&gt;";
      break;
    case '"':
      out += "&quot;";
      break;
    case '\'':
      out += "&apos;";
      break;
    default:
      out += character;
  }
}

}  // namespace

std::string xml_text(std::string_view text, std::size_t max_characters) {
  std::string out;
  out.reserve(std::min(text.size(), 4 * max_characters) + 16);
  for (std::size_t characters = 0; !text.empty(); ++characters) {
    if (characters == max_characters) return out.append(kDots);
    const CodePoint point = first_of(text);
    if (point.valid && xml_allows(point.value)) {
      append_escaped(out, text.substr(0, point.bytes));
    } else {
      out += kReplacement;
    }
    text.remove_prefix(point.bytes);
  }
  return out;
}

std::size_t characters_in(int width, int size) {
  constexpr int kHundredthsOfSize = 63;
  return static_cast<std::size_t>(std::max(1, 100 * width / (kHundredthsOfSize * std::max(1, size))));
}

std::string fit(std::string_view text, int width, int size) {
  const std::size_t most = characters_in(width, size);
  if (display_width(text) <= most) return std::string(text);
  std::size_t bytes = 0;
  for (std::size_t characters = 0; bytes < text.size(); ++bytes) {
    const bool begins = (static_cast<unsigned char>(text[bytes]) & 0xc0U) != 0x80U;
    if (begins && ++characters == most) break;
  }
  return std::string(text.substr(0, bytes)).append(kDots);
}

}  // namespace neuron::render
