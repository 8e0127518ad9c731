#include "agent/base/encoding.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace neuron {
namespace {

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
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : sha256(data)) {
    text.push_back(kDigits[byte >> 4U]);
    text.push_back(kDigits[byte & 0xfU]);
  }
  return text;
}

}  // namespace neuron
