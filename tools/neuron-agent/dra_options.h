#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/base/result.h"
#include "plugin/dra/slices/pool.h"
#include "plugin/dra/slices/slice_layout.h"

namespace CLI {
class App;
}

namespace neuron::agent {

// Further options of `neuron-agent run --mode dra`, parsed once, then const. Flag over environment over default.
struct DraOptions {
  plugin::dra::PoolOptions pool;        // --dra-driver-name, --dra-partitions, --dra-taint-effect, --dra-ultraserver
  std::string pool_name;                // --dra-pool; "" = the node's name
  std::string server;                   // --dra-server, for --once; "" = one that takes everything
  plugin::dra::LayoutOptions layout{};  // what that server takes
  std::string pod_uid;                  // --pod-uid, POD_UID; "" = this instance is never beside another
};

// Adds those flags to a CLI11 command, writing into `options`, which must outlive the parse.
void add_dra_options(CLI::App& command, DraOptions& options);

// Checks across flags. Errors: invalid_argument for a node's name that is none.
[[nodiscard]] Result<void> check_dra_options(std::string_view node_name);

// As describe() of options.h.
[[nodiscard]] std::vector<std::string> describe_dra(const DraOptions& options, const std::string& node_name);

}  // namespace neuron::agent
