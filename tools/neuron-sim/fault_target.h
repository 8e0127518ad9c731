#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/base/result.h"
#include "tools/neuron-sim/fault_keys.h"

namespace neuron::sim {

// A thing of a simulated host that faults are put into. All paths are relative to the host's directory.
struct FaultTarget {
  TargetKind kind = TargetKind::host;
  std::string name;                // as the user gave it
  std::string folder;              // where its keys' paths start; "" for the host
  std::string rdma_folder;         // EFA: what "@" stands for
  std::vector<std::string> nodes;  // in dev/
  std::vector<std::string> links;  // in class directories; these go first when it vanishes
  std::string answers;             // neuron<N>: its recorded driver answers
  std::string driver_link;         // EFA: sys/bus/pci/drivers/efa/<bdf>
  std::string bus_link;            // EFA: sys/bus/pci/devices/<bdf>
};

// Finds "host", "neuron<N>", "neuron<N>/core<M>" or an RDMA name of an EFA interface below `dir`.
// Errors: invalid_argument (no such form of name); not_found (not there now, with the names that are).
[[nodiscard]] Result<FaultTarget> find_target(const std::string& dir, const std::string& name);

// Path of the file that `key` (a name of fault_keys, or a path below the target) stands for.
// Errors: invalid_argument (unknown, with near matches; leads out of the directory).
[[nodiscard]] Result<std::string> path_of_key(const std::string& dir, const FaultTarget& target,
                                              const std::string& key);

}  // namespace neuron::sim
