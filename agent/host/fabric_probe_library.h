#pragma once

#include <string>
#include <vector>

namespace neuron::host {

// Loads the first of `libraries` that loads, asks it for the interfaces of `provider` and writes the answer to `output`
// in the form that parse_fabric_answer reads. Returns an exit status. Runs foreign code: only in a child of
// run_in_child. The library's own warnings go to standard error.
[[nodiscard]] int ask_fabric_library(const std::vector<std::string>& libraries, const std::string& provider,
                                     int output);

}  // namespace neuron::host
