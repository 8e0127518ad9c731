#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "agent/allocator/allocator.h"
#include "tools/neuron-agent/explain_pod.h"

// How near to each other what a container holds is, beside what the node could give. Internal to explain. Pure.
namespace neuron::agent {

// Hardware of one container, through any resource or claim.
struct Hardware {
  std::map<int, std::set<int>> cores;  // by device index: global logical ids; empty: their number is unknown
  std::set<std::string> efas;          // RDMA names
};

// Devices that are healthy enough to be given and of which no container but `holder` has a core. Ascending.
[[nodiscard]] std::vector<int> free_devices(const model::HostScan& host, const std::map<std::string, Hardware>& all,
                                            const std::string& holder);

[[nodiscard]] Nearness nearness_of(const model::HostScan& host, const allocator::NodeTopology& topology,
                                   const Hardware& hardware, const std::vector<int>& free);

}  // namespace neuron::agent
