#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "agent/base/result.h"
#include "agent/model/host_scan.h"

// The signal files of all driver generations in two tables, and what their texts mean (neuron-driver.md §6-8).
namespace neuron::host {

enum class FileKind {
  ecc,         // 16-bit count; 65535, all ones, is for the health policy to judge
  counter,     // any decimal number
  health,      // a counter that may say device_unreachable instead
  heartbeat,   // 0..255, may say device_unreachable
  components,  // comma list, may say device_unreachable
  reset,       // 0..2, readable by root only
};

// One file of a device. Passive data.
struct DeviceFile {
  std::string_view path;  // below the device's directory
  FileKind kind = FileKind::counter;
  std::optional<std::uint64_t> model::DeviceSignals::*target = nullptr;  // null for components and reset
  model::DriverLayout generation = model::DriverLayout::stats;           // the layout that its presence proves
};

// One file of a core. Passive data.
struct CoreFile {
  std::string_view path;  // below neuron_core<M>
  std::optional<std::uint64_t> model::CoreSignals::*target = nullptr;
};

// Static lifetime, any thread.
[[nodiscard]] std::span<const DeviceFile> device_files();
[[nodiscard]] std::span<const CoreFile> core_files();

// Puts the text of `file` into `signals`. Errors: data_corrupt, without the path; then nothing is stored.
[[nodiscard]] Result<void> store_signal(const DeviceFile& file, std::string_view text, model::DeviceSignals& signals);

}  // namespace neuron::host
