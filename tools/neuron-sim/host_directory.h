#pragma once

#include <string>
#include <string_view>

#include "agent/base/fd.h"
#include "agent/base/result.h"

// A directory that is known to be a simulated host, by its marker file. Nothing is ever changed in any other directory.
namespace neuron::sim {

// Where a simulated host keeps what is not part of the host, relative to it.
inline constexpr const char* kMarkerFile = ".neuron-sim/host";
inline constexpr const char* kPlanFile = ".neuron-sim/plan";  // written_plan.h
inline constexpr const char* kClaimFile = ".neuron-sim/claim";
inline constexpr const char* kSavedFolder = ".neuron-sim/saved";

// Checks that `dir` may become a simulated host, and creates it (parents too) if absent; its content stays.
// Errors: failed_precondition (not empty and no marker, or no directory at all); permission_denied, internal.
[[nodiscard]] Result<void> prepare_directory(const std::string& dir);

// Errors: failed_precondition when `dir` is no simulated host.
[[nodiscard]] Result<void> require_simulated(const std::string& dir);

// Whether `dir` is a simulated host that was written to the end, whatever its type.
[[nodiscard]] bool is_whole_host(const std::string& dir);

// Makes the caller the only one that plays a load on `dir` or rewrites it, until the handle is closed. `neuron-sim set`
// is not kept away. Errors: failed_precondition (no simulated host, or another process has it; the message names it);
// permission_denied, internal.
[[nodiscard]] Result<Fd> claim_host(const std::string& dir);

// Whether a path stays below the directory it is relative to, as text: not empty, not absolute, no "..".
[[nodiscard]] bool stays_below(std::string_view path);

}  // namespace neuron::sim
