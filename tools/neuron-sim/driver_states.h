#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/base/result.h"
#include "tools/neuron-sim/fault_target.h"

// States of the Neuron driver that show in several files at once (docs/reference/driver.md).
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

}  // namespace neuron::sim
