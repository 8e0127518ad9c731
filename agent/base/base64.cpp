#include "agent/base/base64.h"

#include <cstdint>
#include <optional>

namespace neuron {
namespace {

std::optional<std::uint32_t> base64_value(char letter) {
  if (letter >= 'A' && letter <= 'Z') return static_cast<std::uint32_t>(letter - 'A');
  if (letter >= 'a' && letter <= 'z') return static_cast<std::uint32_t>(letter - 'a') + 26;
  if (letter >= '0' && letter <= '9') return static_cast<std::uint32_t>(letter - '0') + 52;
  if (letter == '+') return 62;
  if (letter == '/') return 63;
  return std::nullopt;
}

}  // namespace

std::string decode_base64(std::string_view text) {
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char letter : text) {
    const auto value = base64_value(letter);
    if (!value) break;
    bits = ((bits << 6U) | *value) & 0xffffffU;
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes.push_back(static_cast<char>((bits >> static_cast<unsigned>(count)) & 0xffU));
  }
  return bytes;
}

}  // namespace neuron
