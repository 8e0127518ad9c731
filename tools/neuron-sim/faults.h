#pragma once

#include <string>
#include <vector>

#include "agent/base/result.h"

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

}  // namespace neuron::sim
