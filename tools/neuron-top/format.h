#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Numbers as neuron-top shows them, in any locale alike. Unknown is always "n/a". Pure functions.
namespace neuron::top {

inline constexpr std::string_view kUnknown = "n/a";

// Bytes in the official tool's form: one decimal, powers of 1024: "0.0B", "16.0KB", "1.7GB".
[[nodiscard]] std::string memory_text(std::optional<std::uint64_t> bytes);

// Bytes per second in powers of 1000, as networks are measured: "0B/s", "820KB/s", "12.5GB/s".
[[nodiscard]] std::string rate_text(std::optional<double> bytes_per_second);

// A plain count, shortened above 99999: "17", "125k", "3.4M".
[[nodiscard]] std::string count_text(std::optional<std::uint64_t> count);

// Events per second: "0", "0.2", "17", "125k".
[[nodiscard]] std::string frequency_text(std::optional<double> per_second);

// "56.81%", not padded.
[[nodiscard]] std::string percent_text(std::optional<double> percent, int decimals = 2);

// FLOP/s as teraflops: "0.9TF", "123TF"; at most six characters below 1000.
[[nodiscard]] std::string teraflops_text(std::optional<double> flops_per_second);

// A span of time for "stale since": "7s", "3m", "2h".
[[nodiscard]] std::string age_text(std::int64_t seconds);

// `text` in lines of at most `columns` bytes, parted at blanks; what the last of `most` lines has no room for is cut
// and marked by "...". Lines after the first are indented by two blanks. Both numbers are at least 1.
[[nodiscard]] std::vector<std::string> wrapped(std::string_view text, int columns, int most);

}  // namespace neuron::top
