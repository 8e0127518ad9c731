#pragma once

#include <CLI/CLI.hpp>
#include <iosfwd>
#include <string>
#include <vector>

namespace neuron::sim {

// The flags of `neuron-sim kubelet` as given. Passive data.
struct KubeletCommand {
  std::string kubelet_dir;
  std::string root;                   // the host directory that the agent reads; empty: unknown, no reasons
  std::vector<std::string> wait_for;  // RESOURCE=N each
  std::string timeout = "10s";        // of --wait-for and of each wait command
  std::string numa_policy = "none";
  unsigned seed = 1;
  bool verbose = false;  // events on stderr
  std::string script;    // empty or "-": standard input
};

// Adds the subcommand `kubelet` to `app`. When it is chosen, parsing runs it with the process's standard streams and
// leaves its exit code in `exit_code`, which must outlive `app`.
void add_kubelet_command(CLI::App& app, int& exit_code);

// Runs the kubelet until the script ends. Blocks. Returns the exit code: 0 done; 1 a line was wrong or failed, a wait
// ran out, or the kubelet could not start; 2 a flag's value is wrong.
[[nodiscard]] int run_kubelet_command(const KubeletCommand& command, std::istream& input, std::ostream& out,
                                      std::ostream& errors);

}  // namespace neuron::sim
