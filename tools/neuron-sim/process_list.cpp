#include "tools/neuron-sim/process_list.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

#include "agent/base/parse.h"

namespace neuron::sim {
namespace {

constexpr std::array<std::string_view, 4> kMembers = {"pid", "nc_lock_map", "host_mem_bytes", "device_mem_bytes"};

// Decimal, or hexadecimal as masks are written: 0x3.
std::optional<std::uint64_t> number_of(std::string_view text) {
  if (!text.starts_with("0x")) return parse_u64(text);
  text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Result<std::string> entry_of(std::string_view text) {
  const auto fields = split(text, ':');
  std::string entry = "{ ";
  for (std::size_t i = 0; i < kMembers.size(); ++i) {
    const auto number = i < fields.size() ? number_of(fields[i]) : std::optional<std::uint64_t>(0);
    if (!number || fields.empty() || fields.size() > kMembers.size()) {
      return fail(ErrorCode::invalid_argument,
                  "\"" + printable(text) + "\" is not PID[:CORE_MASK[:HOST_BYTES[:DEVICE_BYTES]]]");
    }
    entry += (i == 0 ? "\"" : ", \"") + std::string(kMembers[i]) + "\": " + std::to_string(*number);
  }
  return entry + " }";
}

}  // namespace

Result<std::string> with_processes(const std::string& answers, const std::string& processes) {
  constexpr std::string_view kOpening = "\"apps\": [";
  const auto begin = answers.find(kOpening);
  const auto end = begin == std::string::npos ? begin : answers.find(']', begin);
  if (end == std::string::npos)
    return fail(ErrorCode::data_corrupt, "recorded answers without \"apps\": heal them first");
  std::string list;
  for (const auto text : split(processes, ',')) {
    TRY_ASSIGN(const std::string entry, entry_of(text));
    list += (list.empty() ? " " : ", ") + entry;
  }
  if (!list.empty()) list += " ";
  return answers.substr(0, begin + kOpening.size()) + list + answers.substr(end);
}

}  // namespace neuron::sim
