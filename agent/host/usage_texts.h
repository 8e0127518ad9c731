#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "agent/model/usage.h"

// Parsers of the texts behind a usage sample. Pure functions over foreign input: bounded, no I/O, any thread. nullopt
// stands for a malformed text, as for an empty one.
namespace neuron::host {

// Most bytes that command lines and tags are cut to, and most CPUs of a proc/stat that are counted.
inline constexpr std::size_t kMaxProcessText = 255;
inline constexpr int kMaxCpus = 8192;

// stats/power/utilization, "POWER_STATUS_VALID,<epoch>,<min>,<max>,<average>": per cent with decimals, whatever the
// locale. Any other status, the epoch 0 (nothing measured yet), and a number that is negative or above 1000, is
// nullopt.
[[nodiscard]] std::optional<model::PowerUsage> parse_power(std::string_view text);

struct CpuTimes {
  model::CpuTicks ticks;
  int cpu_count = 0;  // lines cpu<N>
  friend bool operator==(const CpuTimes&, const CpuTimes&) = default;
};
// proc/stat: the line "cpu" with at least user, nice, system and idle; later fields count as 0 where a kernel lacks
// them.
[[nodiscard]] std::optional<CpuTimes> parse_cpu_times(std::string_view text);

// proc/meminfo, whose kB are KiB. nullopt without MemTotal and MemAvailable.
[[nodiscard]] std::optional<model::HostMemoryUsage> parse_memory(std::string_view text);

struct ProcessTimes {
  std::uint64_t user_ticks = 0;
  std::uint64_t system_ticks = 0;
  std::uint64_t start_ticks = 0;
  friend bool operator==(const ProcessTimes&, const ProcessTimes&) = default;
};
// proc/<pid>/stat. The name in its second field may hold blanks and parentheses, so fields count from the last ")".
[[nodiscard]] std::optional<ProcessTimes> parse_process_times(std::string_view text);

// proc/<pid>/statm: resident bytes.
[[nodiscard]] std::optional<std::uint64_t> parse_resident(std::string_view text, std::uint64_t page_bytes);

// proc/<pid>/cmdline as text: arguments joined by blanks, printable, cut to kMaxProcessText; "" = none.
[[nodiscard]] std::string parse_command(std::string_view text);

// NEURON_PROCESS_TAG of proc/<pid>/environ, printable and cut as above; nullopt when it is not set or empty. No other
// variable leaves this function.
[[nodiscard]] std::optional<std::string> parse_tag(std::string_view environment);

}  // namespace neuron::host
