#pragma once

#include <string>

#include "agent/base/result.h"

namespace neuron::sim {

// Recorded driver answers (docs/fixtures.md#recorded-answers, as neuron_tree.cpp writes them) with the list of
// processes replaced. `processes` is "PID[:CORE_MASK[:HOST_BYTES[:DEVICE_BYTES]]],..." in decimal, "" = none. Errors:
// invalid_argument (the list), data_corrupt (the answers hold no "apps").
[[nodiscard]] Result<std::string> with_processes(const std::string& answers, const std::string& processes);

}  // namespace neuron::sim
