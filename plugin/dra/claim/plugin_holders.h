#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/base/result.h"
#include "agent/grant/node_units.h"
#include "agent/model/allocation.h"
#include "plugin/dra/claim/hardware.h"
#include "plugin/dra/slices/pool.h"

// What containers hold through a device plugin on a node that serves claims now: pods that ran when it changed over run
// on (docs/dra.md#moving-over). No claim and no scheduler knows of it, so the pool says it and Prepare refuses it until
// they end. The same of claims of another driver whose devices have the names of ours, as when this one was renamed.
// Pure.
namespace neuron::plugin::dra {

struct PluginHolder {
  std::string container;  // "namespace/pod/container", or "pod <uid>/container"
  std::string resource;   // "aws.amazon.com/neuron"; of a claim its driver
  bool is_claim = false;
  Hardware hardware;
  friend bool operator==(const PluginHolder&, const PluginHolder&) = default;
};
using PluginHolders = std::vector<PluginHolder>;

// Of what the kubelet lists: resources of ours, and ids of them that this node has; claims of another driver than ours,
// `driver`, and their devices whose names are those of a pool of ours. In the order of the list.
[[nodiscard]] PluginHolders plugin_holders(const grant::NodeUnits& node, const std::vector<model::Allocation>& listed,
                                           const std::string& driver);

// Taints whatever of the pool overlaps with what they hold, NoSchedule, with "<driver>/held=device-plugin" or
// "=other-driver"; for a server that keeps no taints such a device counts as unhealthy, and is left out.
void taint_held(Pool& pool, const grant::NodeUnits& node, const PluginHolders& holders, const std::string& driver);

// failed_precondition when one of them has some of the hardware, with who, for the event of the pod.
[[nodiscard]] std::optional<Error> conflict(const PluginHolders& holders, const Hardware& hardware);

}  // namespace neuron::plugin::dra
