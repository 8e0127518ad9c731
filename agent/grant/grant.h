#pragma once

#include <map>
#include <string>
#include <vector>

#include "agent/grant/node_units.h"

namespace neuron::grant {

// The LNC of a container's runtime, over the node's file (docs/reference/driver.md).
inline constexpr const char* kLncVariable = "NEURON_LOGICAL_NC_CONFIG";

// How NEURON_RT_VISIBLE_CORES counts (docs/resources.md#what-allocate-answers).
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

// Contents of Allocate's answer (docs/resources.md#what-allocate-answers). Pure; any thread.
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

}  // namespace neuron::grant
