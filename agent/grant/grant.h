#pragma once

#include <map>
#include <string>
#include <vector>

#include "agent/grant/node_units.h"

namespace neuron::grant {

// The LNC of a container's runtime, over the node's file (docs/reference/driver.md).
inline constexpr const char* kLncVariable = "NEURON_LOGICAL_NC_CONFIG";

// How NEURON_RT_VISIBLE_CORES counts (docs/resources.md#answers-to-allocate).
enum class CoreNumbering { container, host };

struct GrantOptions {
  std::string host_path_prefix;  // prepended to "/dev/…" on the host side; "" on a live node
  CoreNumbering numbering = CoreNumbering::container;
  bool cdi_names = false;  // "aws.amazon.com/neuron=0" in addition to the device nodes
};

// Grant to one container for one resource. Paths and variables are in the order of the answer to the kubelet.
struct Grant {
  struct DeviceNode {
    std::string host_path;
    std::string container_path;
  };
  std::map<std::string, std::string> envs;
  std::vector<DeviceNode> device_nodes;  // permissions are always "rw"
  std::vector<std::string> cdi_names;
};

// Contents of Allocate's answer (docs/resources.md#answers-to-allocate). Pure; any thread.
//
// NEURON_RT_VISIBLE_CORES for `cores` (global ids, ascending) in a container that sees `devices` (indices, ascending).
// Numbered by the container, the k-th device it sees has the numbers k*n … k*n+n-1, n being the cores per device.
[[nodiscard]] std::string visible_cores(const NodeUnits& node, const std::vector<int>& devices,
                                        const std::vector<int>& cores, CoreNumbering numbering);

// That variable, and /dev/neuron<N> of each device. `devices`: all that `cores` are on. kLncVariable in addition where
// the numbers are of another LNC than a runtime would read on the node (NodeUnits::runtime_lnc), and only then.
[[nodiscard]] Grant grant_of_cores(const NodeUnits& node, const std::vector<int>& devices,
                                   const std::vector<int>& cores, const GrantOptions& options);

// /dev/infiniband/uverbs<N> of each interface; one without a verbs device adds none. No variables. `efa_units`: units
// of NodeUnits.
[[nodiscard]] Grant grant_of_efas(const NodeUnits& node, const std::vector<int>& efa_units,
                                  const GrantOptions& options);

// Container Device Interface: the names in an Allocate answer mean something only to a runtime that finds them in a
// spec file (docs/reference/kubelet.md#cdi). The answer names the same device nodes without CDI as well, so a runtime
// without it loses nothing.

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
