#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

// SHA-256 (FIPS 180-4) for names that others compute too: ids of device groups, sockets whose names would be too long.
// Not for secrets. Our own, so that programs without TLS do without libcrypto. Pure, any thread.
namespace neuron {

[[nodiscard]] std::array<std::uint8_t, 32> sha256(std::string_view data);

// The same as 64 lower case hexadecimal digits.
[[nodiscard]] std::string sha256_hex(std::string_view data);

}  // namespace neuron
