#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <functional>
#include <iosfwd>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "agent/base/result.h"
#include "agent/model/host_scan.h"
#include "tools/neuron-sim/kubelet/kubelet.h"
#include "tools/neuron-sim/kubelet/script.h"

namespace neuron::sim {

// Carries out the commands of a script on a kubelet. One thread at a time.
class Shell {
 public:
  // The node as it is now, completed; called for every pod. May be empty: then answers come without reasons.
  using HostReader = std::function<model::HostScan()>;

  // `wait_timeout` is the longest a wait command waits. The references outlive this.
  Shell(Kubelet& kubelet, std::ostream& out, std::ostream& errors, std::chrono::milliseconds wait_timeout,
        HostReader read_host = {});

  // Until the input ends or the command quit; `prompt` is printed before each line. A wrong line is reported on
  // `errors` with its number and does not stop the rest. A pod that is refused is an answer, not an error. Returns 0,
  // or 1 if any line was wrong or failed.
  [[nodiscard]] int run(std::istream& input, std::string_view prompt);

  // Waits until exactly so many units are allocatable and prints the result.
  // Errors: deadline_exceeded, with the allocatable units instead.
  [[nodiscard]] Result<void> wait(const std::map<std::string, int>& counts);

 private:
  [[nodiscard]] Result<void> execute(const Command& command);
  void admit(const PodSpec& pod);
  [[nodiscard]] Result<void> start(const PodSpec& pod);

  Kubelet& kubelet_;
  std::ostream& out_;
  std::ostream& errors_;
  const std::chrono::milliseconds wait_timeout_;
  const HostReader read_host_;
};

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
