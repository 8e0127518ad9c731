#pragma once

#include <string>
#include <string_view>

#include "agent/base/result.h"
#include "tools/neuron-sim/fault_target.h"

// dev/kmsg of a simulated host: a regular file of records, one per line (docs/fixtures.md#the-kernel-log).
namespace neuron::sim {

inline constexpr const char* kKernelLogPath = "dev/kmsg";

// The line that the runtime has the driver write at an error of hardware ("hw_err" of a device or core): `kind` is e.g.
// SRAM_UNCORRECTABLE_ERROR, alone or with fields after a blank that are written as they are.
[[nodiscard]] std::string hardware_error_line(const std::string& dir, const FaultTarget& target, std::string_view kind);

// The text of dev/kmsg, `log`, with one record more: the next number, and the time since boot of this machine. What a
// record cannot hold stands as \xNN. Of a long log the oldest records are left out, as of the kernel's own.
[[nodiscard]] std::string with_kernel_line(std::string log, std::string_view line);

// The same without the lines that name the device or core `target` ("neuron3", "neuron3/core1"), of nobody else's.
[[nodiscard]] std::string without_kernel_lines(const std::string& log, std::string_view target);

}  // namespace neuron::sim
