#pragma once

#include <string>

#include "tools/neuron-agent/check_options.h"

namespace neuron::agent {

// Exit codes of `neuron-agent check`, as its man page lists them.
enum class CheckVerdict { nothing_wrong = 0, findings = 1, cannot_tell = 2 };

// The output and the exit status.
struct CheckReport {
  CheckVerdict verdict = CheckVerdict::cannot_tell;
  std::string output;  // for standard output: text, or one JSON document with a line end
  std::string error;   // for standard error of an undetermined check: one line without line end; else ""
};

// Reads the machine and judges it (preflight::preflight). Reading, and the query of libfabric, happen in child
// processes, so that a driver that hangs costs `options.timeout` and no more; libfabric has half of it. Call it only
// while this process has one thread. With JSON, `cannot_tell` has a document too.
[[nodiscard]] CheckReport check_node(const CheckOptions& options);

}  // namespace neuron::agent
