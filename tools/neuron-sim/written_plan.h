#pragma once

#include <string>

#include "agent/base/result.h"
#include "tools/neuron-sim/machine_plan.h"

// What a simulated host was written from, in DIR/.neuron-sim/plan, so that the same host need not be written again. The
// file is there exactly while the host is whole: it goes before the first change and comes after the last.
namespace neuron::sim {

// One line that is the same for two plans exactly when this version of neuron-sim writes the same host. Pure.
[[nodiscard]] std::string plan_line(const MachinePlan& machine);

// Whether `dir` was written from a plan with this line, and whole. Also false for no directory and for an unreadable
// file.
[[nodiscard]] bool is_written_from(const std::string& dir, const std::string& line);

// Errors: permission_denied, internal. No error when there is no such file, or no directory.
[[nodiscard]] Result<void> forget_plan(const std::string& dir);

// Appears whole or not at all. Errors: not_found (no simulated host), permission_denied, internal.
[[nodiscard]] Result<void> record_plan(const std::string& dir, const std::string& line);

}  // namespace neuron::sim
