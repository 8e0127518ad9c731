// A file of kernel log records, and each of its lines as the system call syslog would give it: what comes out of the
// parsers keeps the bounds that their header promises, and what is kept is about devices that are there.

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "agent/health/kernel_errors.h"

namespace {

using neuron::health::KernelErrors;
using neuron::health::KernelLineKind;

void require(bool holds) {
  if (!holds) std::abort();
}

constexpr int kDevices = 4;
constexpr int kCores = 2;

std::vector<neuron::model::NeuronDevice> some_devices() {
  std::vector<neuron::model::NeuronDevice> devices(kDevices);
  for (int i = 0; i < kDevices; ++i) {
    devices[static_cast<std::size_t>(i)].index = i;
    devices[static_cast<std::size_t>(i)].physical_cores = {kCores, neuron::model::Origin::live};
  }
  devices[1].serial = "19fcda00f5ff6eb9";
  return devices;
}

void check_line(std::string_view text) {
  const auto line = neuron::health::parse_kernel_line(text);
  require(line.device >= 0 && line.device <= 9999);
  if (line.kind != KernelLineKind::error) return;
  require(!line.error.name.empty() && line.error.name.size() <= 64 && line.error.action.size() <= 64);
  require(!line.error.core || (line.error.device && *line.error.core >= 0 && *line.error.core <= 31));
  require(!line.error.serial || line.error.serial->size() == 16);
}

void check_kept(const KernelErrors& errors) {
  const auto list = errors.errors();
  require(list.size() <= 7 * (1 + kDevices * (1 + kCores)));
  for (const auto& error : list) {
    require(error.lines > 0 && error.first_at <= error.last_at);
    require(!error.device || *error.device < kDevices);
    require(!error.core || *error.core < kCores);
    if (error.device == 1) require(!error.serial || error.serial == "19fcda00f5ff6eb9");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const auto devices = some_devices();
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  KernelErrors errors;
  errors.begin(devices, {}, KernelErrors::Lookback::yes);
  int lines = 0;
  while (!rest.empty()) {
    const auto end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    check_line(line);
    if (const auto record = neuron::health::parse_kernel_record(line)) errors.take(*record);
    if (const auto record = neuron::health::parse_syslog_line(line)) {
      require(record->time.count() >= 0);
      errors.take(*record);
    }
    if (++lines % 5 != 0) continue;
    errors.end();
    check_kept(errors);
    errors.begin(devices, {lines % kDevices}, KernelErrors::Lookback::no);
  }
  errors.end();
  check_kept(errors);
  return 0;
}
