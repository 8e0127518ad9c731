#pragma once

#include <map>
#include <string>
#include <vector>

#include "agent/grant/grant.h"
#include "agent/grant/node_units.h"

// Container Device Interface: the names in an Allocate answer mean something only to a runtime that finds them in a
// spec file (docs/reference/kubelet.md#cdi). The answer names the same device nodes without CDI as well, so a runtime
// without it loses nothing.
namespace neuron::grant {

// The kinds of our specs: the part of a CDI name before "=".
inline constexpr const char* kCdiNeuronKind = "aws.amazon.com/neuron";
inline constexpr const char* kCdiEfaKind = "vpc.amazonaws.com/efa";

// One device of a spec: what a container that names it gets.
struct CdiDevice {
  std::string name;
  std::vector<Grant::DeviceNode> device_nodes;
  std::string permissions = "rw";  // of all nodes: of r, w, m
  std::map<std::string, std::string> envs;
};

// A spec as text, in the order given. A device that gives nothing is left out, since an empty one makes runtimes refuse
// the whole file; "" when there is none. Version 0.5.0, the lowest that has hostPath. Pure.
[[nodiscard]] std::string cdi_text(const std::string& kind, const std::vector<CdiDevice>& devices);

// The spec of one kind as text: one CDI device per unit, named by its id. "" when the node
// has no such unit. Pure.
[[nodiscard]] std::string cdi_spec(const NodeUnits& node, model::Resource resource, const GrantOptions& options);

}  // namespace neuron::grant
