#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

// Base64 and SHA-256. Pure, any thread.
namespace neuron {

// The bytes of standard base64 with or without padding; stops at the first other character.
[[nodiscard]] std::string decode_base64(std::string_view text);

// Standard base64 with padding.
[[nodiscard]] std::string encode_base64(std::string_view bytes);

// SHA-256 (FIPS 180-4) for names that other programs compute too: ids of device groups, sockets with long names. Not
// for secrets. Implemented here so that programs without TLS need no libcrypto.
[[nodiscard]] std::array<std::uint8_t, 32> sha256(std::string_view data);

// The same as 64 lower case hexadecimal digits.
[[nodiscard]] std::string sha256_hex(std::string_view data);

}  // namespace neuron
