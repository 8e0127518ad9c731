#pragma once

#include <memory>
#include <string>

#include "agent/base/result.h"
#include "tools/kubectl-neuron/documents.h"

// The cluster as the user's own kubectl reaches it: its contexts, logins and proxies.
namespace neuron::fleet {

// The path of the program `name` on PATH. Errors: not_found, with the remedy.
[[nodiscard]] Result<std::string> find_on_path(const std::string& name);

// Calls to the API server through kubectl. A child `kubectl proxy` serves them on a socket in a private directory, and
// ends with this process; where it cannot be started, each call runs `kubectl get --raw`. Before any other thread.
// Errors: not_found (no kubectl on PATH).
[[nodiscard]] Result<std::unique_ptr<ClusterReader>> open_kubectl(const ClusterFlags& flags);

}  // namespace neuron::fleet
