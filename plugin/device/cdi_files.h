#pragma once

#include <string>

#include "agent/base/result.h"
#include "agent/grant/grant.h"
#include "agent/grant/node_units.h"

namespace neuron::plugin {

// Writes the specs of both kinds (agent/grant/cdi.h) into `directory`, made if missing: "aws.amazon.com/neuron" into
// "aws.amazon.com-neuron.json". Each by rename (agent/base/file_text.h); removes the spec of a kind the node has
// none of. Blocks on file writes: not for an RPC. Errors: from errno, naming the path.
[[nodiscard]] Result<void> write_cdi_specs(const grant::NodeUnits& node, const grant::GrantOptions& options,
                                           const std::string& directory);

}  // namespace neuron::plugin
