#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "agent/kube/cluster_access.h"
#include "tools/neuron-sim/host_plan.h"

// The subcommands of neuron-sim, except `set` (main.cpp) and `kubelet` (kubelet/shell.h).
namespace neuron::sim {

// Exit codes, as in neuron-sim(1).
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;

// Each adds its subcommand to `app`. When it is chosen, parsing runs it with the process's standard streams and leaves
// its exit code in `exit_code`, which must outlive `app`.
void add_node_command(CLI::App& app, int& exit_code);
void add_show_command(CLI::App& app, int& exit_code);
void add_load_command(CLI::App& app, int& exit_code);

// The label of a Kubernetes node with the instance type to simulate on it, and the type without a label.
inline constexpr const char* kTypeLabel = "neuron-agent/simulate";
inline constexpr const char* kDefaultType = "trn1.32xlarge";

// The API server's answer about one node. Passive data.
struct LabelAnswer {
  std::optional<std::string> type;  // the label's value; nullopt when there is none, or the request failed
  std::string why_unknown;          // why the request failed, one sentence; "" when it did not
  bool may_work_later = false;      // of why_unknown: the API server was not reached, or was busy
};

// Reads the label of `node`, and retries for at most `budget` while the API server is busy or unreachable. A failure is
// an answer, since a host has to be written anyway. Any thread; blocks up to `budget`.
[[nodiscard]] LabelAnswer ask_type_label(const kube::InClusterPlaces& places, const std::string& node,
                                         std::chrono::milliseconds budget);

// The flags of `neuron-sim node` as given. Passive data.
struct NodeCommand {
  std::string directory;
  HostPlan plan;                                             // its `without` stays empty: see the next member
  std::vector<std::string> without;                          // names of parts, not yet checked
  std::string ultraserver;                                   // --ultraserver, "" = as the platform has it
  std::string type_from_node;                                // --type-from-node, "" = no API server is asked
  kube::InClusterPlaces places = kube::in_cluster_places();  // of the API server
  std::chrono::milliseconds label_budget{5000};              // an init container that waits longer seems to hang
  std::string machine = "/";                                 // the root of the real machine
  bool beside_hardware = false;                              // --beside-hardware
  bool keep = false;
  bool list = false;
};

// Writes a simulated host, or keeps the existing one, and prints on `out` which. With type_from_node the value of that
// node's label takes precedence over plan.instance_type; a failed request is reported on `errors` and is no failure of
// the command. With type_from_node, a machine with Neuron devices or EFA interfaces of its own is refused, unless
// beside_hardware. Returns the exit code: 0 written or kept; 1 the file system refused, the directory holds something
// else, a load plays on it, or the machine has hardware; 2 a flag's or the label's value is wrong.
[[nodiscard]] int run_node_command(NodeCommand command, std::ostream& out, std::ostream& errors);

// Prints on `out` the Neuron devices and EFA interfaces of a container: the variables NEURON_RT_*, and the device nodes
// dev/neuron<N> and dev/infiniband/* below `root` with their numbers; for a simulated node (like /dev/null) also
// whether it opens. A real one is not opened. Returns the exit code: 0; 1 when there are none, or a simulated one does
// not open.
[[nodiscard]] int run_show_command(const std::string& root, std::ostream& out, std::ostream& errors);

}  // namespace neuron::sim
