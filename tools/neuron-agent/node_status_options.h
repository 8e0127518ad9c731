#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/base/result.h"
#include "plugin/daemon/node_daemon.h"

namespace CLI {
class App;
}

namespace neuron::agent {

using plugin::NodeStatusOptions;

// Adds those flags to a CLI11 command, writing into `options`, which must outlive the parse.
void add_node_status_options(CLI::App& command, NodeStatusOptions& options);

// Errors: invalid_argument when it is on and the node's name is not known, or is none.
[[nodiscard]] Result<void> check_node_status_options(const NodeStatusOptions& options, std::string_view node_name);

// As describe() of options.h.
[[nodiscard]] std::vector<std::string> describe_node_status(const NodeStatusOptions& options);

}  // namespace neuron::agent
