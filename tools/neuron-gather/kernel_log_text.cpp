#include "tools/neuron-gather/kernel_log_text.h"

#include <cstdint>
#include <deque>

#include "agent/health/kernel_errors.h"
#include "agent/host/kernel_log.h"

namespace neuron::gather {
namespace {

using health::KernelLine;
using health::KernelLineKind;

std::string line_of(const health::KernelError& error) {
  std::string line = "NEURON_HW_ERR=" + error.name;
  if (error.device) line += " nd-id=" + std::to_string(*error.device);
  if (error.core) line += " nc-id=" + std::to_string(*error.core);
  if (error.serial) line += " serial-num=" + *error.serial;
  if (!error.action.empty()) line += " action=" + error.action;
  return line;
}

std::string line_of(const KernelLine& line) {
  switch (line.kind) {
    case KernelLineKind::error:
      return line_of(line.error);
    case KernelLineKind::malformed:
      return "NEURON_HW_ERR=";
    case KernelLineKind::driver_started:
      return "Neuron Driver Started with Version:";
    case KernelLineKind::device_found:
      return "** BDF:  => nd[" + std::to_string(line.device) + "] (routing id: ?)";
    case KernelLineKind::nothing:
      break;
  }
  return "";
}

}  // namespace

Result<std::string> kernel_log_text(const host::FsRoot& root) {
  constexpr std::size_t kMaxLines = 4096;
  std::deque<std::string> lines;
  std::uint64_t next_number = 1;  // of records that have none
  const auto see = [&](const health::KernelRecord& record) {
    const std::string line = line_of(health::parse_kernel_line(record.text));
    if (line.empty()) return;
    const std::uint64_t number = record.sequence != 0 ? record.sequence : next_number++;
    lines.push_back("3," + std::to_string(number) + ',' + std::to_string(record.time.count()) + ",-;" + line + '\n');
    if (lines.size() > kMaxLines) lines.pop_front();
  };
  host::KernelLog log(root);
  for (;;) {
    TRY_ASSIGN(const auto part, log.open());
    if (part == host::KernelLog::Part::news) break;
    TRY(log.read(see));
    if (part == host::KernelLog::Part::everything) break;
  }
  std::string text;
  for (const std::string& line : lines) text += line;
  return text;
}

}  // namespace neuron::gather
