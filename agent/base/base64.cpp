#include "agent/base/base64.h"

#include <algorithm>
#include <cstdint>

namespace neuron {
namespace {

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::uint32_t byte_at(std::string_view bytes, std::size_t i) {
  return i < bytes.size() ? static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i])) : 0U;
}

}  // namespace

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

}  // namespace neuron
