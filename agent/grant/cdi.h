#pragma once

#include <string>

#include "agent/grant/grant.h"
#include "agent/grant/node_units.h"

// Container Device Interface: the names in an Allocate answer mean something only to a runtime that finds them in a
// spec file (docs/reference/kubelet.md#cdi). The answer names the same device nodes without CDI as well, so a runtime
// without it loses nothing.
namespace neuron::grant {

// The kinds of our specs: the part of a CDI name before "=".
inline constexpr const char* kCdiNeuronKind = "aws.amazon.com/neuron";
inline constexpr const char* kCdiEfaKind = "vpc.amazonaws.com/efa";

// The spec of one kind as text: one CDI device per unit, named by its id. Version 0.5.0, the lowest that has hostPath.
// "" when the node has no such unit. Pure.
[[nodiscard]] std::string cdi_spec(const NodeUnits& node, model::Resource resource, const GrantOptions& options);

}  // namespace neuron::grant
