#pragma once

#include "agent/host/fs_root.h"
#include "agent/preflight/preflight.h"
#include "tools/neuron-agent/check_options.h"

namespace neuron::agent {

// What claims need of this node and what is left of the other way to offer its devices, sockets with whether somebody
// listens on them: each is connected to and closed at once. The kubelet's directory is looked at as by check_node.
[[nodiscard]] preflight::ClaimFacts look_at_claims(const CheckOptions& options, const host::FsRoot& root);

}  // namespace neuron::agent
