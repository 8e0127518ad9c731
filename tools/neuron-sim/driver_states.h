#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/base/result.h"
#include "tools/neuron-sim/fault_target.h"

// Output of the Neuron driver beside single values: states in several files at once (docs/reference/driver.md), the
// kernel log, recorded answers.
namespace neuron::sim {

// A file as it is in that state; nullopt: there is none.
struct StateFile {
  std::string path;  // below the simulated directory
  std::optional<std::string> text;
};

// The HBM error registers of a device, and the state of its repair: 0 none, 1 pending, 2 failed.
struct HbmRegisters {
  unsigned uncorrectable = 0;
  unsigned repairable = 0;
  unsigned repair_state = 0;
};

// The two counts as driver 2.<minor> prints them: mem_ecc_uncorrected, mem_ecc_repairable_uncorrected. `repairs`:
// Trainium2 or 3.
[[nodiscard]] std::pair<unsigned, unsigned> printed_hbm(int minor, bool repairs, const HbmRegisters& registers);

// Whether that key stands for such a state: "hbm" and "off-bus" of a device, "nmetric_log_posts" and
// "enable_sysfs_health_status_nodes" of the host.
[[nodiscard]] bool is_driver_state(TargetKind kind, std::string_view key);

// Its files below `dir`, those that the driver there has. Errors: invalid_argument (the value is not of the key's
// form).
[[nodiscard]] Result<std::vector<StateFile>> files_of_state(const std::string& dir, const FaultTarget& target,
                                                            std::string_view key, std::string_view value);

// A regular file of records, one per line (docs/fixtures.md#the-kernel-log).
inline constexpr const char* kKernelLogPath = "dev/kmsg";

// The kernel log line of a hardware error ("hw_err" of a device or core), which the runtime has the driver write:
// `kind` is for example SRAM_UNCORRECTABLE_ERROR, alone or followed by a blank and fields that are copied unchanged.
[[nodiscard]] std::string hardware_error_line(const std::string& dir, const FaultTarget& target, std::string_view kind);

// The text of dev/kmsg, `log`, with one more record: the next number, and the time since boot of this machine. Other
// bytes than printable ASCII are written as \xNN. A long log loses its oldest records, as the kernel's does.
[[nodiscard]] std::string with_kernel_line(std::string log, std::string_view line);

// The same without the lines that name the device or core `target` ("neuron3", "neuron3/core1").
[[nodiscard]] std::string without_kernel_lines(const std::string& log, std::string_view target);

// Recorded driver answers (docs/fixtures.md#recorded-answers, as neuron_tree.cpp writes them) with the list of
// processes replaced. `processes` is "PID[:CORE_MASK[:HOST_BYTES[:DEVICE_BYTES]]],..." in decimal, "" = none. Errors:
// invalid_argument (the list), data_corrupt (the answers hold no "apps").
[[nodiscard]] Result<std::string> with_processes(const std::string& answers, const std::string& processes);

}  // namespace neuron::sim
