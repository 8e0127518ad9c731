#pragma once

#include <map>
#include <string>

#include "agent/base/result.h"
#include "agent/model/host_scan.h"

// UltraServers: two or four nodes that work as one (docs/reference/kubernetes-stack.md#ultraservers). Pure.
namespace neuron::plugin::dra {

// The variables of a container on a node that works with `nodes` - 1 others, nodes being 1, 2 or 4.
// NEURON_GLOBAL_TOPOID and NEURON_GLOBAL_TOPOID0_HOST, which depend on the others, are unknown here: the workload has
// to set them. A part of a partition gets the ids of the whole, as AWS's script gives them: the driver maps them to the
// part itself. Errors: failed_precondition when the node cannot work so, unavailable while its election has not ended;
// the message names the devices that keep it from beginning.
[[nodiscard]] Result<std::map<std::string, std::string>> ultraserver_environment(const model::HostScan& host,
                                                                                 int nodes);

}  // namespace neuron::plugin::dra
