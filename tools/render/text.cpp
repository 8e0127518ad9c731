#include "tools/render/text.h"

namespace neuron::render {
namespace {

bool starts_code_point(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0U) != 0x80U;
}

// Bytes of the first `count` code points.
std::size_t prefix_bytes(std::string_view text, std::size_t count) {
  std::size_t seen = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (starts_code_point(text[i]) && ++seen > count) return i;
  }
  return text.size();
}

}  // namespace

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  for (const char byte : text) width += starts_code_point(byte) ? 1 : 0;
  return width;
}

std::string shorten(std::string_view text, std::size_t max_width) {
  constexpr std::string_view kDots = "...";
  if (display_width(text) <= max_width) return std::string(text);
  return std::string(text.substr(0, prefix_bytes(text, max_width - kDots.size()))).append(kDots);
}

}  // namespace neuron::render
