#pragma once

#include <string>

#include "agent/grant/grant.h"
#include "agent/grant/node_units.h"

// Container Device Interface: the names in an Allocate answer mean something only to a runtime that finds them in a
// spec file (docs/reference/kubelet.md#cdi). Both describe the same device nodes, so a runtime without CDI loses
// nothing.
namespace neuron::grant {

// The kinds that our specs are of.
inline constexpr const char* kCdiNeuronKind = "aws.amazon.com/neuron";
inline constexpr const char* kCdiEfaKind = "vpc.amazonaws.com/efa";

// The spec of one kind as text: one CDI device per unit, named by its id. Version 0.5.0, the lowest that has hostPath.
// "" when the node has no such unit. Pure.
[[nodiscard]] std::string cdi_spec(const NodeUnits& node, model::Resource resource, const GrantOptions& options);

}  // namespace neuron::grant
