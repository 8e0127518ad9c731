#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "agent/base/result.h"

// Small programs of ours that do for a moment what the calling one should not: link a large library, or read what may
// hang or crash.
namespace neuron {

// How a helper ended, and what it said. Passive data.
struct HelperAnswer {
  std::string output;   // standard output
  std::string errors;   // standard error, its first 4096 bytes
  bool is_cut = false;  // it said more than the bound, and was killed
  int status = 0;       // its exit status; minus the signal that ended it; meaningless when is_cut
};

// Where the helper program is: ../libexec/neuron-node-agent/NAME seen from the running program. Errors: not_found.
[[nodiscard]] Result<std::string> find_helper(const std::string& name);

// Runs words[0], a path, with the others as arguments, with empty standard input and the signals as they are by
// default. It is killed when it takes longer than `budget` or says more than `max_bytes`; one that cannot even be
// killed, deep in a driver, is left behind. Safe where other threads run; blocks for at most budget and a second.
// Errors: deadline_exceeded; internal or what the kernel says (it could not be started).
[[nodiscard]] Result<HelperAnswer> run_helper(const std::vector<std::string>& words, std::chrono::milliseconds budget,
                                              std::size_t max_bytes);

// The last line of what a helper said on standard error, made printable; before it a library may have logged something.
[[nodiscard]] std::string complaint_of(const HelperAnswer& answer);

}  // namespace neuron
