#pragma once

#include <map>
#include <optional>
#include <string>

#include "agent/base/result.h"
#include "agent/model/ultraserver.h"

// UltraServers: two or four nodes that work as one (docs/reference/kubernetes-stack.md#ultraservers). Pure.
namespace neuron::plugin::dra {

// The variables of a container on a node that works with `nodes` - 1 others, nodes being 1, 2 or 4. What depends on the
// others, NEURON_GLOBAL_TOPOID and NEURON_GLOBAL_TOPOID0_HOST, is not known here: the workload has to set it.
// Errors: failed_precondition when the node cannot work so, unavailable when it does not know yet.
[[nodiscard]] Result<std::map<std::string, std::string>> ultraserver_environment(
    const std::optional<model::UltraServer>& node, int nodes);

}  // namespace neuron::plugin::dra
