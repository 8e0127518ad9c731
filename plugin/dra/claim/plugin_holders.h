#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/base/result.h"
#include "agent/grant/node_units.h"
#include "agent/model/allocation.h"
#include "plugin/dra/claim/hardware.h"
#include "plugin/dra/slices/pool.h"

// Hardware that containers hold through a device plugin on a node that now serves claims: pods that ran before the
// change continue (docs/dra.md#moving-over). Neither claims nor schedulers know of it, so the pool is tainted and
// Prepare refuses it until they end. The same of claims of another driver whose devices have this driver's names, as
// after a rename. Pure.
namespace neuron::plugin::dra {

struct PluginHolder {
  std::string container;  // "namespace/pod/container", or "pod <uid>/container"
  std::string resource;   // "aws.amazon.com/neuron"; of a claim its driver
  bool is_claim = false;
  Hardware hardware;
  friend bool operator==(const PluginHolder&, const PluginHolder&) = default;
};
using PluginHolders = std::vector<PluginHolder>;

// From the kubelet's list: this agent's resources, with ids that this node has; claims of another driver than `driver`,
// with devices whose names are those of this driver's pool. In the order of the list.
[[nodiscard]] PluginHolders plugin_holders(const grant::NodeUnits& node, const std::vector<model::Allocation>& listed,
                                           const std::string& driver);

// Taints whatever of the pool overlaps with what they hold, NoSchedule, with "<driver>/held=device-plugin" or
// "=other-driver"; for a server that keeps no taints such a device counts as unhealthy, and is left out.
void taint_held(Pool& pool, const grant::NodeUnits& node, const PluginHolders& holders, const std::string& driver);

// failed_precondition when one of them has some of the hardware, with who, for the event of the pod.
[[nodiscard]] std::optional<Error> conflict(const PluginHolders& holders, const Hardware& hardware);

}  // namespace neuron::plugin::dra
