#pragma once

#include <CLI/CLI.hpp>
#include <iosfwd>
#include <string>

namespace neuron::sim {

// Adds the subcommand `show` to `app`. When it is chosen, parsing runs it with the process's standard streams and
// leaves its exit code in `exit_code`, which must outlive `app`.
void add_show_command(CLI::App& app, int& exit_code);

// Says on `out` what a container was given of Neuron and EFA: the variables NEURON_RT_* and, of the device nodes
// dev/neuron<N> and dev/infiniband/* below `root`, each with its numbers; a simulated one (which is like /dev/null)
// also with whether it may be opened. A real one is not opened. Returns the exit code: 0; 1 when there is nothing, or a
// simulated device may not be opened.
[[nodiscard]] int run_show_command(const std::string& root, std::ostream& out, std::ostream& errors);

}  // namespace neuron::sim
