#pragma once

#include <string>
#include <vector>

#include "agent/base/result.h"
#include "agent/kube/cluster_access.h"

namespace CLI {
class App;
}

namespace neuron::agent {

// Adds --api-server, --api-token-file and --api-ca-file to a CLI11 command, writing into `api`, which must outlive the
// parse.
void add_api_options(CLI::App& command, kube::ApiFlags& api);

// Errors: invalid_argument for an API server's URL that is none.
[[nodiscard]] Result<void> check_api_options(const kube::ApiFlags& api);

// As describe() of options.h.
[[nodiscard]] std::vector<std::string> describe_api(const kube::ApiFlags& api);

}  // namespace neuron::agent
