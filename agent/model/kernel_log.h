#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/model/health.h"
#include "agent/model/read_problem.h"

namespace neuron::model {

// Kinds of error in a NEURON_HW_ERR= line (docs/reference/driver.md#kernel-log).
enum class KernelErrorKind {
  sram,            // SRAM_UNCORRECTABLE_ERROR
  core,            // NC_UNCORRECTABLE_ERROR
  hbm,             // HBM_UNCORRECTABLE_ERROR
  hbm_repairable,  // a word with REPAIRABLE in it: the exact word is not published (inferred)
  dma,             // DMA_ERROR
  collectives,     // HANG_ON_COLLECTIVES
  other,           // any other word
};

// Lines of one kind about one device and core, or about none. Passive data.
struct KernelLogError {
  KernelErrorKind kind = KernelErrorKind::other;
  std::string name;                      // the word of the first line: capitals, digits, '_', at most 64
  std::optional<int> device;             // nd-id: N of neuron<N>, which was there; nullopt: the line names none
  std::optional<int> core;               // nc-id; nullopt also where no device is named
  std::optional<std::string> serial;     // serial-num, 16 hex digits, lower case
  std::string action;                    // "TERMINATE_INSTANCE"; "" where the first line names none
  std::uint64_t lines = 0;               // how many there were
  std::chrono::microseconds first_at{};  // of the first and the newest of them; the kernel's clock, since boot
  std::chrono::microseconds last_at{};
  friend bool operator==(const KernelLogError&, const KernelLogError&) = default;
};

enum class KernelLogState {
  off,      // not requested
  reading,  // as far as the kernel still had it when it was read
  denied,   // it may not be opened
  broken,   // it is not there, or a read failed
};

[[nodiscard]] std::string_view to_string(KernelLogState state);  // the enumerator's name

// Neuron hardware errors in the kernel log since the driver was loaded (agent/host/kernel_log.h). Passive data.
struct KernelLog {
  KernelLogState state = KernelLogState::off;
  std::optional<ReadProblem> problem;  // why it is denied or broken; in HostScan::problems too
  std::uint64_t lost_records = 0;      // that the kernel overwrote before they were read, since reading began
  std::uint64_t ignored_lines = 0;     // NEURON_HW_ERR= lines that are malformed or name missing hardware, likewise
  std::vector<KernelLogError> errors;  // ascending device (none first), kind, core; at most one of each
  // Assessed (agent/health/assess.h): the verdict on the node by the lines that name no device. They withhold no
  // device. Not assessed unless the log is read.
  Health node_health;
  friend bool operator==(const KernelLog&, const KernelLog&) = default;
};

}  // namespace neuron::model
