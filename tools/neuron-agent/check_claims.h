#pragma once

#include "agent/host/fs_root.h"
#include "agent/preflight/preflight.h"
#include "tools/neuron-agent/check_options.h"

namespace neuron::agent {

// Prerequisites of claims on this node and remains of the other mode, with the sockets on which a process listens: each
// is connected to and closed at once. The kubelet's directory is read as by check_node.
[[nodiscard]] preflight::ClaimFacts look_at_claims(const CheckOptions& options, const host::FsRoot& root);

}  // namespace neuron::agent
