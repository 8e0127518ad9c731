#include "tools/neuron-sim/kernel_lines.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>

#include "agent/base/clock.h"
#include "agent/base/parse.h"

namespace neuron::sim {
namespace {

constexpr std::size_t kMaxLogBytes = std::size_t{512} << 10U;

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// "neuron3/core1" -> " nd-id=3 nc-id=1", "neuron3" -> " nd-id=3"; "" for what is no device.
std::string fields_of(std::string_view target) {
  constexpr std::string_view kDevice = "neuron";
  constexpr std::string_view kCore = "/core";
  if (!target.starts_with(kDevice)) return "";
  const auto slash = target.find(kCore);
  std::string fields = " nd-id=" + std::string(target.substr(kDevice.size(), slash - kDevice.size()));
  if (slash != std::string_view::npos) fields += " nc-id=" + std::string(target.substr(slash + kCore.size()));
  return fields;
}

std::string escaped(std::string_view line) {
  std::string text;
  for (const char c : line) {
    if (c >= ' ' && c < '\x7f' && c != '\\') {
      text += c;
      continue;
    }
    char code[8];
    std::snprintf(code, sizeof code, "\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
    text += code;
  }
  return text;
}

// Number of the record after the last one.
std::uint64_t next_number(const std::string& log) {
  if (log.size() < 2) return 1;
  const auto begin = log.rfind('\n', log.size() - 2);
  const auto fields = split(std::string_view(log).substr(begin == std::string::npos ? 0 : begin + 1), ',');
  return fields.size() < 2 ? 1 : parse_u64(fields[1]).value_or(0) + 1;
}

}  // namespace

std::string hardware_error_line(const std::string& dir, const FaultTarget& target, std::string_view kind) {
  std::string line = utc_text(std::chrono::system_clock::now()) + " NEURON_HW_ERR=";
  if (kind.find(' ') != std::string_view::npos) return line.append(kind);
  const std::string device = target.name.substr(0, target.name.find('/'));
  const std::string serial = first_line(dir + "/sys/class/neuron_device/" + device + "/info/serial_number");
  line.append(kind);
  line += " instance-id=" + first_line(dir + "/sys/devices/virtual/dmi/id/board_asset_tag");
  line += " hostname=simulated" + fields_of(target.name);
  if (!serial.empty()) line += " serial-num=" + serial;
  return kind == "HANG_ON_COLLECTIVES" ? line : line + " action=TERMINATE_INSTANCE";
}

std::string with_kernel_line(std::string log, std::string_view line) {
  const auto since_boot = std::chrono::steady_clock::now().time_since_epoch();
  const auto usec = std::chrono::duration_cast<std::chrono::microseconds>(since_boot).count();
  log += "3," + std::to_string(next_number(log)) + ',' + std::to_string(usec) + ",-;" + escaped(line) + '\n';
  if (log.size() <= kMaxLogBytes) return log;
  return log.substr(log.find('\n', log.size() - kMaxLogBytes) + 1);
}

std::string without_kernel_lines(const std::string& log, std::string_view target) {
  const std::string fields = fields_of(target);
  std::string kept;
  for (std::size_t at = 0; at < log.size();) {
    const auto end = std::min(log.find('\n', at), log.size() - 1) + 1;
    const std::string line = log.substr(at, end - at);
    at = end;
    const auto found = line.find(fields);
    const bool names_it = !fields.empty() && found != std::string::npos &&
                          (line[found + fields.size()] == ' ' || line[found + fields.size()] == '\n');
    if (!names_it) kept += line;
  }
  return kept;
}

}  // namespace neuron::sim
