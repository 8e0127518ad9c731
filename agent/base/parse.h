#pragma once

#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/base/result.h"

// Small texts of kernels, drivers, flags and other programs: parsed, checked, made printable, encoded. Locale-free;
// parsers take the whole text and accept no trailing garbage. Nothing throws; any thread; no I/O.
namespace neuron {

// `text` without leading and trailing ASCII white space. The view points into `text`.
[[nodiscard]] std::string_view trim(std::string_view text);

// Parts of `text` between `separator`, trimmed, empty parts kept ("a,,b" → 3 parts; "" → 0 parts).
[[nodiscard]] std::vector<std::string_view> split(std::string_view text, char separator);

// Decimal numbers after trimming; empty, signed (for the unsigned form), out of range or other text is nullopt.
[[nodiscard]] std::optional<std::uint64_t> parse_u64(std::string_view text);
[[nodiscard]] std::optional<std::int64_t> parse_i64(std::string_view text);
[[nodiscard]] std::optional<int> parse_int(std::string_view text, int min, int max);

// Hexadecimal with or without "0x", e.g. sysfs PCI ids "0x1d0f".
[[nodiscard]] std::optional<std::uint32_t> parse_hex(std::string_view text);

// One or more of the digits 0-9: no sign, no white space.
[[nodiscard]] bool is_digits(std::string_view text);

// Well-formed throughout: no overlong form, no surrogate.
[[nodiscard]] bool is_utf8(std::string_view text);

// Takes the text before the first `separator`, and the separator, off the front of `rest`; all of it if there is none.
std::string_view take_until(std::string_view& rest, char separator);

// Replaces A-Z by a-z, whatever the locale.
[[nodiscard]] std::string lower_ascii(std::string_view text);

// A set of non-negative integers in the kernel's list form, "0-3,8,10-11". Output ascending, without duplicates.
// "" → empty set. Errors: data_corrupt for malformed text, a reversed range or a value above `max_value`.
[[nodiscard]] Result<std::vector<int>> parse_int_list(std::string_view text, int max_value);

// The inverse: ascending input → "0-3,8,10-11"; empty → "". Input must be sorted and unique.
[[nodiscard]] std::string format_int_list(const std::vector<int>& values);

// A duration flag: a number with unit ms, s or m, e.g. "200ms", "5s". Must be positive and at most one day.
[[nodiscard]] Result<std::chrono::milliseconds> parse_duration(std::string_view text);

// "devices", "switches", "processes".
[[nodiscard]] std::string plural(std::string_view noun);

// "1 device", "3 devices".
[[nodiscard]] std::string counted(std::integral auto count, std::string_view noun) {
  return std::to_string(count) + ' ' + (count == 1 ? std::string(noun) : plural(noun));
}

// Names of Kubernetes objects (RFC 1123). A label: lower case letters, digits and '-', alphanumeric at both ends, at
// most 63 bytes. A subdomain: such parts of any length joined by '.', at most 253 bytes together.
[[nodiscard]] bool is_dns_label(std::string_view text);
[[nodiscard]] bool is_dns_subdomain(std::string_view text);

// The name in a label's key or in a resource's name: letters, digits, '-', '_' and '.', alphanumeric at both ends.
[[nodiscard]] bool is_qualified_part(std::string_view text, std::size_t max_bytes = 63);

// `text` with control bytes, invalid UTF-8 and invisible characters that change the display (marks of direction, zero
// widths, line separators) as \xNN, cut to `max_bytes` (then ending in "..."), so that foreign text may appear in a log
// line or on a terminal. Idempotent.
[[nodiscard]] std::string printable(std::string_view text, std::size_t max_bytes = 120);

// Makes a line printable as printable() does, without a copy where nothing has to change.
[[nodiscard]] std::string printable_line(std::string line, std::size_t max_bytes);

// Levenshtein distance, in bytes. Takes time of the product of the lengths and memory of the second: callers bound
// both.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

// The bytes of standard base64 with or without padding; stops at the first other character.
[[nodiscard]] std::string decode_base64(std::string_view text);

// Standard base64 with padding.
[[nodiscard]] std::string encode_base64(std::string_view bytes);

// SHA-256 (FIPS 180-4) for names that other programs compute too: ids of device groups, sockets with long names. Not
// for secrets. Implemented here so that programs without TLS need no libcrypto.
[[nodiscard]] std::array<std::uint8_t, 32> sha256(std::string_view data);

// SHA-256 as 64 lower case hexadecimal digits.
[[nodiscard]] std::string sha256_hex(std::string_view data);

}  // namespace neuron
