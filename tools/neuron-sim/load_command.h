#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>

namespace neuron::sim {

// The flags of `neuron-sim load` as given. Passive data.
struct LoadCommand {
  std::string directory;
  std::string length;  // --for, "" = until a signal
  std::string step = "100ms";
  std::optional<int> steps;  // so many steps at once, without waiting
  std::uint64_t seed = 1;
};

// Adds the subcommand `load` to `app`. When it is chosen, parsing runs it with the process's standard streams and
// leaves its exit code in `exit_code`, which must outlive `app`.
void add_load_command(CLI::App& app, int& exit_code);

// Plays a workload on a simulated host: in real time until `length` has passed or SIGINT, SIGTERM or SIGHUP comes, or
// `steps` steps at once. Says on `out` what it plays: at the start, when processes come and go, every few seconds.
// Blocks; the three signals are blocked meanwhile. Returns the exit code: 0 played; 1 no simulated host, another
// neuron-sim load runs on it, or it or `out` cannot be written; 2 a flag's value is wrong.
[[nodiscard]] int run_load_command(const LoadCommand& command, std::ostream& out, std::ostream& errors);

}  // namespace neuron::sim
