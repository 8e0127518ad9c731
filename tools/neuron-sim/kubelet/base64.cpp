#include "tools/neuron-sim/kubelet/base64.h"

#include <algorithm>
#include <cstdint>

namespace neuron::sim {
namespace {

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::uint32_t byte_at(std::string_view bytes, std::size_t i) {
  return i < bytes.size() ? static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i])) : 0U;
}

}  // namespace

std::string base64_encode(std::string_view bytes) {
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

Result<std::string> base64_decode(std::string_view text) {
  if (text.size() % 4 != 0) return fail(ErrorCode::data_corrupt, "base64: length is not a multiple of 4");
  std::size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  const std::string_view digits = text.substr(0, text.size() - padding);
  std::string bytes;
  std::uint32_t group = 0;
  unsigned bits = 0;
  for (const char c : digits) {
    const std::size_t value = kAlphabet.find(c);
    if (value == std::string_view::npos) return fail(ErrorCode::data_corrupt, "base64: foreign character");
    group = group << 6U | static_cast<std::uint32_t>(value);
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes += static_cast<char>(group >> bits & 255U);
    }
  }
  return bytes;
}

}  // namespace neuron::sim
