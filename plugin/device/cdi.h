#pragma once

#include <string>

#include "agent/base/result.h"
#include "plugin/device/allocate_response.h"
#include "plugin/device/node_view.h"

// Container Device Interface: the names in an Allocate answer mean something only to a runtime that finds them in a
// spec file (docs/reference/kubelet.md#cdi). Both describe the same device nodes, so a runtime without CDI loses
// nothing.
namespace neuron::plugin {

// Kinds, and the file names of their specs: "aws.amazon.com/neuron" is in "aws.amazon.com-neuron.json".
inline constexpr const char* kCdiNeuronKind = "aws.amazon.com/neuron";
inline constexpr const char* kCdiEfaKind = "vpc.amazonaws.com/efa";

// The spec of one kind as text: one CDI device per unit, named by its id. Version 0.5.0, the lowest that has hostPath.
// "" when the node has no such unit.
[[nodiscard]] std::string cdi_spec(const NodeView& view, model::Resource resource, const ResponseOptions& options);

// Writes both specs into `directory` (made if missing), each by rename, so that no reader sees half a file and one that
// says the same already stays; removes the
// spec of a kind the node has none of. Blocks on file writes: not for an RPC. Errors: from errno, naming the path.
[[nodiscard]] Result<void> write_cdi_specs(const NodeView& view, const ResponseOptions& options,
                                           const std::string& directory);

}  // namespace neuron::plugin
