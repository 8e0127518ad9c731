#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/base/result.h"

// Faults and values that `neuron-sim set` puts into a simulated host.
namespace neuron::sim {

// Changes values of a simulated host, or breaks parts of it, for `neuron-sim set`. `target` is "host",
// "neuron<N>", "neuron<N>/core<M>" or an RDMA name; `actions` are "KEY=VALUE", a verb ("vanish", "heal", "unbind",
// "drop-node"), or a verb and a KEY as two elements ("garbage", "sram_ecc_uncorrected"). list_faults() names all.
//
// All actions are checked for form before the first takes effect. A changed value appears atomically (rename).
// Errors: failed_precondition (`dir` is no simulated host); invalid_argument (unknown target, key or verb; missing
// KEY); not_found (target or file not there now); internal, permission_denied. Calls on one directory wait for each
// other.
[[nodiscard]] Result<void> apply_fault(const std::string& dir, const std::string& target,
                                       const std::vector<std::string>& actions);

enum class TargetKind { host, device, core, efa };

// A file that `neuron-sim set` knows by a short name. Passive.
struct FaultKey {
  TargetKind kind = TargetKind::host;
  std::string name;  // "sram_ecc_uncorrected"
  std::string path;  // below the target's folder, "" when more than one value makes the file; a leading "@" stands for
                     // infiniband/<name> of an EFA function
  std::string meaning;          // one phrase, for --list
  std::string format = "{}\n";  // text of the file for a value
  bool may_create = false;      // the file may be absent on a healthy host
};

// Sorted by kind, then as the reference lists them. Static lifetime.
[[nodiscard]] const std::vector<FaultKey>& fault_keys();

// Also accepts the short forms "heartbeat" and "rx_dropped". nullptr when unknown.
[[nodiscard]] const FaultKey* find_fault_key(TargetKind kind, std::string_view name);

// The text of `neuron-sim set --list`.
[[nodiscard]] std::string list_faults();

// A part of a simulated host that takes faults. All paths are relative to the host's directory.
struct FaultTarget {
  TargetKind kind = TargetKind::host;
  std::string name;                // as the user gave it
  std::string folder;              // where its keys' paths start; "" for the host
  std::string rdma_folder;         // EFA: the folder that "@" stands for
  std::vector<std::string> nodes;  // in dev/
  std::vector<std::string> links;  // in class directories; these go first when it vanishes
  std::string answers;             // neuron<N>: its recorded driver answers
  std::string driver_link;         // EFA: sys/bus/pci/drivers/efa/<bdf>
  std::string bus_link;            // EFA: sys/bus/pci/devices/<bdf>
};

// Finds "host", "neuron<N>", "neuron<N>/core<M>" or an RDMA name of an EFA interface below `dir`.
// Errors: invalid_argument (no such form of name); not_found (not there now, with the names that are).
[[nodiscard]] Result<FaultTarget> find_target(const std::string& dir, const std::string& name);

// Path of the file that `key` (a name of fault_keys, or a path below the target) stands for.
// Errors: invalid_argument (unknown, with near matches; leads out of the directory).
[[nodiscard]] Result<std::string> path_of_key(const std::string& dir, const FaultTarget& target,
                                              const std::string& key);

// Output of the Neuron driver beside single values: states in several files at once (docs/reference/driver.md), the
// kernel log, recorded answers.

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

// The kernel log without the lines that name the device or core `target` ("neuron3", "neuron3/core1").
[[nodiscard]] std::string without_kernel_lines(const std::string& log, std::string_view target);

// Recorded driver answers (docs/fixtures.md#recorded-answers, as neuron_tree.cpp writes them) with the list of
// processes replaced. `processes` is "PID[:CORE_MASK[:HOST_BYTES[:DEVICE_BYTES]]],..." in decimal, "" = none. Errors:
// invalid_argument (the list), data_corrupt (the answers hold no "apps").
[[nodiscard]] Result<std::string> with_processes(const std::string& answers, const std::string& processes);

}  // namespace neuron::sim
