#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <iosfwd>
#include <string>
#include <vector>

#include "agent/kube/cluster_access.h"
#include "tools/neuron-sim/host_plan.h"

namespace neuron::sim {

// The flags of `neuron-sim node` as given. Passive data.
struct NodeCommand {
  std::string directory;
  HostPlan plan;                                             // its `without` stays empty: see the next member
  std::vector<std::string> without;                          // names of parts, not yet checked
  std::string ultraserver;                                   // --ultraserver, "" = as the platform has it
  std::string type_from_node;                                // --type-from-node, "" = nobody is asked
  kube::InClusterPlaces places = kube::in_cluster_places();  // of the API server that is asked
  std::chrono::milliseconds label_budget{5000};              // an init container that waits longer looks as if it hung
  std::string machine = "/";                                 // the root of the real machine
  bool beside_hardware = false;                              // --beside-hardware
  bool keep = false;
  bool list = false;
};

// Adds the subcommand `node` to `app`. When it is chosen, parsing runs it with the process's standard streams and
// leaves its exit code in `exit_code`, which must outlive `app`.
void add_node_command(CLI::App& app, int& exit_code);

// Writes a simulated host, or leaves the one that is there, and says on `out` which. With type_from_node the API server
// is asked for the node's label, for at most label_budget, and the label's value goes before plan.instance_type; why it
// could not be asked is said on `errors` and is no failure. With type_from_node, a machine that has Neuron devices or
// EFA interfaces of its own is refused, unless beside_hardware. Returns the exit code: 0 written or kept; 1 the file
// system refused, the directory holds something else, a load plays on it, or the machine has hardware; 2 a flag's or
// the label's value is wrong.
[[nodiscard]] int run_node_command(NodeCommand command, std::ostream& out, std::ostream& errors);

}  // namespace neuron::sim
