#pragma once

#include <map>
#include <string>

#include "agent/base/result.h"

// UltraServers: two or four nodes that work as one (docs/reference/kubernetes-stack.md#ultraservers). Pure.
namespace neuron::plugin::dra {

// The class files, trimmed; "" where there is none, so of a node that is in no UltraServer all are
// (docs/reference/driver.md#class-files).
struct UltraServerFacts {
  std::string modes;                     // sys/class/neuron_device/ultraserver_mode: "1,2,4", "busy"
  std::map<int, std::string> server_id;  // by number of nodes, 2 or 4: server_id_<N>, else reservation_id for both
  std::map<int, std::string> node_id;    // by number of nodes: node_id_<N>, else node_id for both
};

// The variables of a container on a node that works with `nodes` - 1 others, nodes being 1, 2 or 4. What depends on the
// others, NEURON_GLOBAL_TOPOID and NEURON_GLOBAL_TOPOID0_HOST, is not known here: the workload has to set it.
// Errors: failed_precondition when the node cannot work so, unavailable when it does not know yet; with what the file
// says.
[[nodiscard]] Result<std::map<std::string, std::string>> ultraserver_environment(const UltraServerFacts& facts,
                                                                                 int nodes);

}  // namespace neuron::plugin::dra
