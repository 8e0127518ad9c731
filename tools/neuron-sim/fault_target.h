#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/base/result.h"

namespace neuron::sim {

enum class TargetKind { host, device, core, efa };

// A file that `neuron-sim set` knows by a short name. Passive.
struct FaultKey {
  std::string name;  // "sram_ecc_uncorrected"
  TargetKind kind = TargetKind::host;
  std::string path;  // below the target's folder, "" when more than one value makes the file; a leading "@" stands for
                     // infiniband/<name> of an EFA function
  std::string meaning;  // one phrase, for --list
  std::string before;   // put before the value in the file
  std::string after = "\n";
  bool may_create = false;  // the file may be absent on a healthy host
};

// Sorted by kind, then as the reference lists them. Static lifetime.
[[nodiscard]] const std::vector<FaultKey>& fault_keys();

// Also accepts the short forms "heartbeat" and "rx_dropped". nullptr when unknown.
[[nodiscard]] const FaultKey* find_fault_key(TargetKind kind, std::string_view name);

// The text of `neuron-sim set --list`.
[[nodiscard]] std::string list_faults();

// A part of a simulated host that takes faults. All paths are relative to the host's directory.
struct FaultTarget {
  TargetKind kind = TargetKind::host;
  std::string name;                // as the user gave it
  std::string folder;              // where its keys' paths start; "" for the host
  std::string rdma_folder;         // EFA: the folder that "@" stands for
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
