#pragma once

#include <cstdint>
#include <string>

#include "tools/neuron-top/view_model.h"

namespace neuron::top {

inline constexpr const char* kReportSchema = "neuron-top/1";

// One line of JSON, ended by a line feed: the groups of neuron-monitor's report where it has them (its names, units and
// places), and under "neuron_top" what it lacks, with its version in "schema". A value that nobody knows is null in
// ours and left out in neuron-monitor's groups, whose "error" then says why. `time_ms`: wall clock, milliseconds since
// 1970. Pure.
[[nodiscard]] std::string report_line(const ViewModel& model, std::int64_t time_ms);

}  // namespace neuron::top
