#pragma once

#include <string>

#include "agent/base/result.h"
#include "agent/kube/cluster_access.h"

namespace CLI {
class App;
}

namespace neuron::agent {

// Options of `neuron-agent withdraw`.
struct WithdrawOptions {
  std::string node_name;  // --node-name, NODE_NAME
  kube::ApiFlags api;     // --api-server, --api-token-file, --api-ca-file
};

// Adds those flags to a CLI11 command, writing into `options`, which must outlive the parse.
void add_withdraw_options(CLI::App& command, WithdrawOptions& options);

// Removes the labels and conditions that an agent wrote on that node (docs/node-status.md); nothing where there are
// none. Errors: invalid_argument (no name of a node, no URL), and those of agent/status/node_object.h. Blocks for three
// calls.
[[nodiscard]] Result<void> withdraw_node_status(const WithdrawOptions& options);

}  // namespace neuron::agent
